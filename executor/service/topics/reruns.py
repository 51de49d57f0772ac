"""Edit, then continue: a run that has ended is continued with another version, a draft or a document, as a new run that
takes over what is unchanged; and a preview of that. See `executor.kernel.journal.outcomes` for what is unchanged."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, Literal

import orjson
from msgspec import Struct

from compiler.keys import split_key
from compiler.plan import Plan
from executor.errors import BadRequest, NotFound
from executor.kernel.core.fork import before, followers, root_of
from executor.kernel.handler.base import sees_all
from executor.kernel.journal.outcomes import Outcome, SeesAll, Signatures, outcomes_of
from executor.kernel.journal.reader import load_plan
from executor.kernel.read.find import find_version
from executor.kernel.run.move import containers_of
from executor.kernel.run.new_run import Origin, origin_of
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.topics.drafts import DraftHead, DraftRow
from executor.service.parts import Parts

DRAFTS_LOOKED_AT = 1_000

Fate = Literal["kept", "maybe", "again", "new", "skipped"]


class Target(Struct, frozen=True):
    """The definition to continue with: a version of the run's workflow, `active` or `draft` (its own draft, else the
    newest of its workflow), a draft by id, or a document."""

    version: int | Literal["active", "draft"] | None = None
    draft: str | None = None
    document: Mapping[str, Any] | None = None


class BlockFate(Struct, frozen=True):
    """A block in a continued run. `kept` outputs are taken over, and `calls` of nodes that had begun; `effect` is what
    the rest may do outside. `why`: changed, failed, asked, input, branch, new, chosen or always."""

    block: str
    name: str
    fate: Fate
    effect: str
    kept: int = 0
    calls: int = 0
    why: str = ""


class Continuation(Struct, frozen=True):
    """The blocks of a continued run with their fates: `kept` is not run; `maybe` is run where its input comes out
    otherwise, or (`why`: branch) where a block before it takes its branch; `again` has run, or began, and runs again;
    `new` did not run before, and runs; `skipped` is on a branch that is not taken, as before."""

    run: str
    workflow: str
    version: int | None
    draft: str | None
    blocks: tuple[BlockFate, ...]


async def resolve(parts: Parts, row: RunRow, plan: Plan, target: Target) -> tuple[Plan, Origin]:
    """Return the plan and the origin to continue with. Raises NotFound, BadRequest, CompileError."""
    given = [name for name in ("version", "draft", "document") if getattr(target, name) is not None]
    if len(given) != 1:
        message = f"give one of version, draft and document, not {' and '.join(given) or 'none'}"
        raise BadRequest(message, code="target_invalid", pointer=f"/{given[-1]}" if given else "/version")
    if target.document is not None:
        document = orjson.dumps(target.document)
        new = await parts.compiler.plan(document, plan.trigger)
        return new, origin_of(document, new)
    if target.draft is not None or target.version == "draft":
        draft = await _draft(parts, row, target.draft)
        new = await parts.compiler.plan(draft.document, plan.trigger)
        return new, origin_of(draft.document, new, draft)
    number = target.version if isinstance(target.version, int) else None
    version = await find_version(parts.store, row.workflow, number)
    return await parts.compiler.plan(version.document, plan.trigger), Origin(version.name, version.version)


async def _draft(parts: Parts, row: RunRow, id: str | None) -> DraftRow:
    wanted = id or row.draft_id
    if wanted is None or (found := await parts.store.get_draft(wanted)) is None:
        if id is not None:
            raise NotFound(f"there is no draft '{id}'", code="draft_not_found")
        heads = await parts.store.list_drafts(limit=DRAFTS_LOOKED_AT)
        head = next((head for head in heads if _is_of(head, row.workflow)), None)
        found = None if head is None else await parts.store.get_draft(head.id)
        if found is None:
            hint = "open the workflow in the editor, or name a version"
            raise NotFound(f"there is no draft of workflow '{row.workflow}'", code="draft_not_found", hint=hint)
    return found


def _is_of(head: DraftHead, workflow: str) -> bool:
    return head.base_name == workflow if head.base_name is not None else head.name == workflow


def blocks_from(plan: Plan, number: int) -> set[str]:
    """Return the blocks that run after a node of the root, with it and with what is in containers."""
    again = followers(plan, number)
    return {node.block for other, node in enumerate(plan.nodes) if root_of(plan, other) in again}


def check_blocks(plan: Plan, again: Collection[str]) -> None:
    known = {node.block for node in plan.nodes}
    for n, block in enumerate(again):
        if block not in known:
            message = f"the workflow has no block '{block}'"
            raise BadRequest(message, code="node_not_found", pointer=f"/again/{n}", hint="use the id of a block")


async def preview(parts: Parts, row: RunRow, new: Plan, origin: Origin, again: Collection[str]) -> Continuation:
    sees = partial(sees_all, parts.registry)
    outcomes = await outcomes_of(parts.store, row, sees)
    fates = _Fates(await load_plan(parts.store, row.plan_hash), new, sees, outcomes, again)
    return Continuation(row.id, origin.workflow, origin.version, origin.draft_id, fates.listed())


class _Fates:
    """Decides the fate of each block from the definitions and from what there is to take over. What a block reads may
    come out otherwise only if something that puts it out runs again."""

    def __init__(
        self, old: Plan, new: Plan, sees: SeesAll, outcomes: Mapping[str, list[Outcome]], again: Collection[str]
    ) -> None:
        self._old, self._new, self._sees, self._again = old, new, sees, again
        self._blocks = Signatures(old, sees), Signatures(new, sees)
        self._known: dict[str, list[Outcome]] = {}
        for key, known in outcomes.items():
            best = next((outcome for outcome in known if outcome.seq), known[0])
            self._known.setdefault(split_key(key)[0], []).append(best)
        self._why = {n: why for n in range(len(new.nodes)) if (why := self._own_reason(n))}
        while more := {n: why for n in range(len(new.nodes)) if n not in self._why and (why := self._read_reason(n))}:
            self._why |= more

    def _own_reason(self, number: int) -> str:
        node, other = self._new.nodes[number], self._old.node_index(self._new.nodes[number].id)
        if other is None or containers_of(self._old, other) != containers_of(self._new, number):
            return "new"
        if self._blocks[0].block(other) != self._blocks[1].block(number):
            return "changed"
        if node.block in self._again:
            return "chosen"
        if node.sentinel is not None:
            return ""
        known = self._known.get(node.id, ())
        chain = self._new.chains[self._new.region_of[number]]
        if node.ends_run or any(self._new.regions[region].kind == "cleanup" for region in chain):
            return "always"
        return "" if any(outcome.seq for outcome in known) else "failed" if known else "new"

    def _read_reason(self, number: int) -> str:
        plan, node = self._new, self._new.nodes[number]
        if any(outcome.asked for outcome in self._known.get(node.id, ())) and self._why.keys() & before(plan, number):
            return "asked"
        if plan.variables and (self._sees(node.type) or any(ref.kind == "variable" for ref in node.needs)):
            changed = [plan.nodes[other] for other in self._why]
            if plan.variables != self._old.variables or any(o.policy.assign or o.type == "variables" for o in changed):
                return "input"
        sources = {plan.regions[ref.region].start if ref.kind == "scope" else ref.node for ref in node.needs}
        if node.sentinel == "end":
            sources |= {other for other, region in enumerate(plan.region_of) if node.body in plan.chains[region]}
        return "input" if self._why.keys() & sources else ""

    def _reached(self) -> list[bool | None]:
        """Return for each node if its branch is taken, None where that is decided anew."""
        plan, reached = self._new, list[bool | None]()
        for number, node in enumerate(plan.nodes):  # after all that lead to it
            region = plan.regions[plan.region_of[number] if node.sentinel != "end" else node.body]
            if node.sentinel == "end" or not plan.sources[number]:
                reached.append(region.start < 0 or reached[region.start])
                continue
            ways = [
                self._way(other, edge.handle, reached[other])
                for other in plan.sources[number]
                for edge in plan.nodes[other].out
                if edge.target == number
            ]
            reached.append(True if True in ways else None if None in ways else False)
        return reached

    def _way(self, number: int, handle: str, reached: bool | None) -> bool | None:
        node = self._new.nodes[number]
        if not reached:
            return reached
        if node.sentinel is not None or number in self._why:
            return True if all(edge.handle == handle for edge in node.out) else None
        return any((outcome.route or "out") == handle for outcome in self._known.get(node.id, ()))

    def listed(self) -> tuple[BlockFate, ...]:
        found, reached = [], self._reached()
        for number, node in enumerate(self._new.nodes):
            if node.sentinel is not None:
                continue
            known, why = self._known.get(node.id, []), self._why.get(number, "")
            fate: Fate = "kept" if not why else "maybe" if why == "input" else "again" if known else "new"
            if not known and reached[number] is not True:
                fate, why = "maybe" if reached[number] is None else "skipped", "branch"
            takes = known if why in ("", "input", "failed") else []
            kept = sum(bool(outcome.seq) for outcome in takes)
            calls = sum(len(outcome.steps_kept) for outcome in takes if not outcome.seq)
            found.append(BlockFate(node.block, node.name, fate, node.effect, kept, calls, why))
        return tuple(found)
