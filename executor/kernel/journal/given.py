"""Answers of people in a run, and whether they count for a run that continues it.

An answer counts for what it was given for: what was shown, and all outputs before the question. Where any of these
differs, the question is asked again. An answer that someone other than the starter must give counts for its run alone:
a run that continues it is another run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import orjson
from msgspec import Struct

from compiler.keys import NodeKey
from compiler.plan import Node, Plan
from executor.errors import Conflict
from executor.kernel.core.events import RunStarted
from executor.kernel.core.fork import before, follows, root_of
from executor.kernel.journal.codec import Codec
from executor.kernel.journal.reader import Records
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.waits import WaitRow

ASKS: Final = frozenset({"approval", "form"})  # kinds of waits
PAGE: Final = 500


class Given(Struct, frozen=True):
    """The answers in one node of a run. `inner`: they are not its output, but of a run that it started, or of a call
    inside it. `bound`: only certain people could answer; `once`: not who started the run. `at`: where it is asked,
    among the root nodes of the plan."""

    node: str
    path: str
    root: int
    inner: bool
    bound: bool
    once: bool

    @property
    def alone(self) -> bool:
        return not self.inner and not self.path


async def answers_in(store: Store, plan: Plan, run: str) -> list[Given]:
    """Return the answers of the run, of those below it, and of those that it reuses outputs of."""
    found: list[Given] = []
    for row in await _waits(store, run):
        number = plan.node_index(row.node)
        if number is None:
            continue
        flags = await flags_of(store, row)
        if flags is not None:
            inner = plan.nodes[number].type not in ASKS
            found.append(Given(row.node, row.path, root_of(plan, number), inner, *flags))
    records = await store.read_events(run, limit=1)
    started = Codec(plan).to_event(records[0]) if records else None
    if isinstance(started, RunStarted) and started.source_run is not None and (started.reuse or started.keeps):
        taken = await taken_over(store, run) if started.keeps else set()
        for given in await answers_in(store, plan, started.source_run):
            if given.root in started.reuse or (given.node, given.path) in taken:
                found.append(given)
    return found


async def taken_over(store: Store, run: str) -> set[tuple[str, str]]:
    """Return node and path of all that have an output, or a step, of another run."""
    ended = Records(store, run, types=("node.succeeded", "step.finished"))
    return {(record.node or "", record.path) async for record in ended if b'"from_run"' in (record.data or b"")}


async def flags_of(store: Store, row: WaitRow) -> tuple[bool, bool] | None:
    """Return `bound` and `once` of an answered question, or of those in the run that is waited for; None without an
    answer."""
    if row.kind == "child":
        return await below(store, orjson.loads(row.request).get("run"))
    return bounds_of(row) if row.kind in ASKS and row.status == "answered" else None


def bounds_of(row: WaitRow) -> tuple[bool, bool]:
    request = orjson.loads(row.request)
    once = bool(request.get("not_starter"))
    return once or bool(request.get("by")), once


async def below(store: Store, run: object) -> tuple[bool, bool] | None:
    """Return `bound` and `once` of the answers in this run and those below it; None without an answer."""
    if not isinstance(run, str):
        return None
    flags = [found for row in await _waits(store, run) if (found := await flags_of(store, row)) is not None]
    return (any(bound for bound, _ in flags), any(once for _, once in flags)) if flags else None


async def _waits(store: Store, run: str) -> list[WaitRow]:
    rows: list[WaitRow] = []
    behind: tuple[str, str] | None = None
    while page := await store.list_waits(None, run, PAGE, before=behind):
        rows += page
        behind = run, page[-1].id
        if len(page) < PAGE:
            break
    return rows


def is_changed_for(plan: Plan, key: NodeKey, changed: Collection[NodeKey]) -> bool:
    """Returns True if one of the changed outputs is the node's own, was there when node `key` ran, or is read by it."""
    read = {ref.node for ref in plan.nodes[key[1]].needs if ref.kind == "block"}
    return any(
        other == key or other[1] in read or follows(plan, other, key) or _holds(plan, other, key) for other in changed
    )


def _holds(plan: Plan, container: NodeKey, key: NodeKey) -> bool:
    """Return True if `container` is the end of a container whose results include the output of the node."""
    path, number = container
    body = plan.nodes[number].body
    return len(key[0]) > len(path) and key[0][: len(path)] == path and key[0][len(path)][0] == body


# --- a run from a block


class Continued(Struct, frozen=True):
    """The difference of a run from a block to the run before. `again` are root nodes that run again in any case."""

    again: Collection[int]
    has_new_input: bool = False
    has_new_variables: bool = False


async def kept(
    store: Store, plan: Plan, run: str, reuse: Mapping[int, str | None], new: Continued
) -> dict[int, str | None]:
    """Return the part of `reuse` that a run may take over: questions whose answer does not count are asked again.
    Raises Conflict if more would be done again."""
    left = dict(reuse)
    todo = [given for given in await answers_in(store, plan, run) if given.root in reuse]
    while stale := next(
        (given for given in todo if given.root in left and _differs(plan, given, left, reuse, new)), None
    ):
        if not stale.alone:
            block = plan.nodes[stale.root].block
            raise Conflict(
                f"the answers in '{block}' do not count for this run, and asking again would repeat all of it",
                code="answer_not_carried",
                hint=f"run from '{block}'",
                node=block,
            )
        del left[stale.root]
    return left


def _differs(plan: Plan, given: Given, left: Collection[int], reuse: Collection[int], new: Continued) -> bool:
    if given.once or new.has_new_input:
        return True
    if any(other in reuse and other not in left for other in before(plan, given.root)):
        return True  # another answer comes before it
    return any(
        (ref.kind == "block" and root_of(plan, ref.node) in new.again)
        or (ref.kind == "variable" and new.has_new_variables)
        for ref in plan.nodes[given.root].needs
    )


# --- another version


async def misfits(store: Store, old: Plan, new: Plan, run: str) -> list[tuple[str, str]]:
    """Blocks of `old` whose answers do not count under `new`, and why."""
    found: dict[str, str] = {}
    for given in await answers_in(store, old, run):
        number = old.node_index(given.node)
        assert number is not None, "it is where it was answered"
        block = old.nodes[number].block
        if given.once:
            found[block] = "someone other than the starter has answered it, for the version that the run uses"
        elif old.variables != {name: new.variables.get(name) for name in old.variables}:
            found[block] = "it was answered, and variables have other values at the start"
        else:
            other = [block for block in map(old.node, (number, *sorted(before(old, number)))) if _is_other(block, new)]
            if other:
                where = "it shows" if other[0].id == given.node else f"'{other[0].block}' before it does"
                found[block] = f"it was answered, and {where} something else"
    return list(found.items())


def _is_other(node: Node, plan: Plan) -> bool:
    number = plan.node_index(node.id)
    return number is None or meaning(node) != meaning(plan.nodes[number])


def meaning(node: Node) -> tuple[object, ...]:
    return node.type, bytes(node.params), node.policy.skip_if, node.policy.assign


def is_same(one: Any, two: Any) -> bool:
    return orjson.dumps(one, option=orjson.OPT_SORT_KEYS) == orjson.dumps(two, option=orjson.OPT_SORT_KEYS)
