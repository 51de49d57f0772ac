"""Drafts: documents while they are edited. They may be wrong in any way; a version of a workflow may not.

A draft is replaced as a whole, by a caller who names its newest revision. Any other revision is a Conflict, which has
the stored draft in it, so neither text is lost.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from compiler.catalog import Catalog
from compiler.diagnostics import Diagnostic
from compiler.document import NESTING_MAX
from compiler.setup import Task
from executor.errors import BadRequest, Conflict, NotFound, NoWorkflow
from executor.kernel.process.threads import aside
from executor.kernel.run.imports import as_ours
from executor.kernel.store.topics.drafts import DraftHead, DraftRow
from executor.service.parts import Parts, Topic
from executor.service.topics.runs import Runs
from executor.service.topics.workflows import Workflows
from executor.service.views import SavedWorkflow, Submitted, view_of

NAME_LENGTH_MAX = 200
TO_DO_MAX = 8_000  # the characters of an import's to-do list
_TITLES = {"sim": "Sim"}


class DraftView(DraftHead, frozen=True):
    """A draft, its diagnostics, and the tasks that are left before it runs. Times are Unix milliseconds. See DraftHead
    for its base."""

    document: Any
    diagnostics: tuple[Diagnostic, ...] = ()
    tasks: tuple[Task, ...] = ()


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """A block that runs alone. `given`: outputs by block id, of the blocks that it reads; of a container around it, the
    fields that its references read, such as {"index": 1, "item": "b"}. `variables`: in place of those of the draft."""

    block: str
    given: dict[str, Any] = {}
    variables: dict[str, Any] = {}


class Drafts(Topic):
    """The operations on drafts; `engine.drafts`. `rev` None stands for any revision."""

    def __init__(self, parts: Parts, runs: Runs, workflows: Workflows) -> None:
        super().__init__(parts)
        self._runs = runs
        self._workflows = workflows

    async def create(
        self, document: Mapping[str, Any], name: str | None = None, base_version: int | None = None
    ) -> DraftView:
        """Store a draft. A document of another format is converted as far as possible: its diagnostics and description
        list the losses. Raises NoWorkflow for JSON that has nothing of a workflow."""
        env_names = self._parts.services.names
        ours = await aside(partial(as_ours, document, env_names, self._parts.registry))
        if ours.format is None and not any(name in document for name in ("format", "blocks", "state")):
            hint = (
                'Import a weft workflow ({"format": "weft/1", "blocks": {...}}) or a workflow exported from n8n or Sim.'
            )
            raise NoWorkflow(pointer="/document", hint=hint)
        if ours.format is not None and ours.diagnostics:
            ours.document["description"] = _to_do(ours.format, ours.diagnostics)
        id, data = secrets.token_hex(8), orjson.dumps(ours.document)
        row, written = await self._store.put_draft(
            id, 0, _name(name, ours.document), data, self._clock.now_ms(), base_version
        )
        assert written and row is not None, "two drafts cannot have one random id"
        return await self._view(row, tuple(ours.diagnostics))

    async def get(self, id: str) -> DraftView:
        return await self._view(await self._row(id))

    async def put(self, id: str, rev: int, document: Mapping[str, Any], name: str | None = None) -> DraftView:
        """Store the next revision. Raises NotFound, and Conflict (draft_changed, `current`) if `rev` is not the newest.
        The same document sent twice for one revision is one revision: the first answer may have been lost."""
        data = orjson.dumps(document)
        wanted = _name(name, document)
        row, written = await self._store.put_draft(id, rev, wanted, data, self._clock.now_ms())
        if row is None:
            raise _not_found(id)
        if not written and (row.rev, row.document, row.name) != (rev + 1, data, wanted):
            raise await self._changed(row, rev)
        return await self._view(row)

    async def delete(self, id: str, rev: int | None = None) -> None:
        """Delete a draft; its runs and versions stay. Raises NotFound, Conflict (draft_changed)."""
        if not await self._store.delete_draft(id, rev):
            row = await self._row(id)
            raise await self._changed(row, rev)

    async def put_in_folder(self, id: str, folder: str) -> None:
        """Show a draft in a folder of the front page, '' for none; no new revision. Raises NotFound."""
        if not await self._store.put_draft_in_folder(id, folder):
            raise _not_found(id)

    async def run(
        self,
        id: str,
        *,
        rev: int | None = None,
        input: Any = None,
        trigger: str | None = None,
        stop_after: str | None = None,
        step: Step | None = None,
        idempotency_key: str | None = None,
    ) -> tuple[Submitted, int]:
        """Run the stored draft, or one `step` of it; also returns the revision that runs. Raises NotFound, BadRequest,
        Conflict (draft_changed), and the errors of Runs.submit."""
        row = await self._row(id, rev)
        document = orjson.loads(row.document)
        submitted = await self._runs.submit(
            document if step is None else _step_document(document, step, self._parts.registry),
            input=input,
            trigger=trigger if step is None else None,
            stop_after=stop_after if step is None else None,
            idempotency_key=idempotency_key,
            draft=row if step is None else replace(row, name=f"{row.name}/{step.block}"),
        )
        if submitted.created:
            return submitted, row.rev
        started = await self._runs.row(submitted.run)  # by the first request, of an earlier revision perhaps
        return submitted, started.draft_rev or row.rev

    async def save_version(
        self,
        id: str,
        *,
        rev: int | None = None,
        name: str | None = None,
        activate_triggers: bool = False,
        replaces: int | None = None,
    ) -> tuple[SavedWorkflow, int]:
        """Store the draft as a version of workflow `name` (by default its own name), on which it is based from then on;
        also returns the revision. It replaces the version on which it is based; another one only if `replaces` is that
        version. Raises like `Workflows.save`, NotFound, Conflict (draft_changed)."""
        row = await self._row(id, rev)
        document = orjson.loads(row.document)
        name = await self._store.named(name or row.name or row.base_name or "")
        if replaces is None:
            replaces = (row.base_version or 0) if name == row.base_name else 0
        saved = await self._workflows.save(document, name, activate_triggers=activate_triggers, replaces=replaces)
        await self._store.rebase_draft(id, row.rev, saved.name, saved.version)
        return saved, row.rev

    async def _row(self, id: str, rev: int | None = None) -> DraftRow:
        row = await self._store.get_draft(id)
        if row is None:
            raise _not_found(id)
        if rev not in (None, row.rev):
            raise await self._changed(row, rev)
        return row

    async def _view(self, row: DraftRow, found: tuple[Diagnostic, ...] = ()) -> DraftView:
        document = orjson.loads(row.document)
        checked = await self._workflows.validate(row.document)
        tasks = await self._workflows.setup(document, checked)
        if found:  # the import has the same findings about its blocks
            checked = [each for each in checked if each.code != "not_imported"]
        diagnostics = (*found, *checked)
        return view_of(DraftView, row, document=document, diagnostics=diagnostics, tasks=tasks)

    async def _changed(self, row: DraftRow, rev: int | None) -> Conflict:
        return Conflict(
            f"the draft is at revision {row.rev}, not {rev}",
            code="draft_changed",
            hint="`current` is the stored draft; compare it with yours, then save with its revision",
            current=await self._view(row),
        )


def _step_document(document: Mapping[str, Any], step: Step, catalog: Catalog) -> dict[str, Any]:
    """Return a workflow of this one block: what it reads are blocks before it with pinned outputs, under the names that
    its references have. The scope of a container around it is such a block as well."""
    blocks, settings, variables = (dict(_object(document.get(part))) for part in ("blocks", "settings", "variables"))
    unknown = next((id for id in (step.block, *step.given) if not isinstance(blocks.get(id), dict)), None)
    if unknown is not None:
        raise NotFound(f"the draft has no block '{unknown}'", code="node_not_found")
    own = blocks[step.block]
    spec = catalog.get(str(own.get("type")))
    if spec is None or spec.trigger or spec.container or spec.inside or spec.continues or step.block in step.given:
        hint = "It must be a block that acts by itself, and is not among `given`. Run others with `stop_after`."
        message = f"the block '{step.block}' cannot run alone"
        raise BadRequest(message, code="step_not_possible", pointer="/step/block", hint=hint)
    made: dict[str, Any] = {"step.start": {"type": "start"}}
    around, depth = str(own.get("parent")), 0
    while around in step.given and depth < NESTING_MAX:
        found = catalog.get(str(blocks[around].get("type")))
        kind = found.container if found is not None else None
        made.setdefault(f"step.{kind}", _pinned(str(kind), step.given[around]))  # `<loop.item>` reads the innermost
        around, depth = str(blocks[around].get("parent")), depth + 1
    made |= {id: _pinned(blocks[id].get("name") or id, output) for id, output in step.given.items()}
    made[step.block] = {key: value for key, value in own.items() if key not in ("parent", "pin", "enabled")}
    settings = {name: value for name, value in settings.items() if name not in ("alerts", "error_workflow")}
    variables |= step.variables
    edges = [{"source": source, "target": target} for source, target in pairwise(made)]
    return {**document, "input": None, "settings": settings, "variables": variables, "blocks": made, "edges": edges}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _pinned(name: str, output: Any) -> dict[str, Any]:
    return {"type": "set", "name": name, "pin": {"output": output}}


def _name(name: str | None, document: Mapping[str, Any]) -> str:
    """Return the given name, else the document's own, cut to the length that a list shows."""
    own = document.get("name")
    return (name or (own if isinstance(own, str) else ""))[:NAME_LENGTH_MAX]


def _not_found(id: str) -> NotFound:
    return NotFound(f"there is no draft '{id}'", code="draft_not_found")


def _to_do(format: str, findings: Sequence[Diagnostic]) -> str:
    """List for people what an import left out or changed. Findings about a draft are those of its present document:
    these would be seen once."""
    lines = [f"- {found.message} {found.hint}".rstrip() for found in findings]
    return "\n".join((f"Imported from {_TITLES.get(format, format)}. To do:", *lines))[:TO_DO_MAX]
