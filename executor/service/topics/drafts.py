"""Drafts: documents while they are edited. They may be wrong in any way; a version of a workflow may not.

A draft is replaced as a whole, by a caller who names its newest revision. Any other revision is a Conflict, which has
the stored draft in it, so neither text is lost.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import orjson
from msgspec import Struct

from compiler.diagnostics import Diagnostic
from executor.errors import Conflict, NotFound, NoWorkflow
from executor.kernel.process.threads import aside
from executor.kernel.run.imports import as_ours
from executor.kernel.store.topics.drafts import DraftRow
from executor.service.parts import Parts, Topic
from executor.service.topics.runs import Runs
from executor.service.topics.workflows import Workflows
from executor.service.views import SavedWorkflow, Submitted, view_of

NAME_LENGTH_MAX = 200
TO_DO_MAX = 8_000  # the characters of an import's to-do list


class DraftView(Struct, frozen=True):
    """A draft and its diagnostics. Times are Unix milliseconds. See DraftHead for its base."""

    id: str
    name: str
    document: Any
    rev: int
    base_name: str | None
    base_version: int | None
    base_rev: int | None
    created_at_ms: int
    updated_at_ms: int
    diagnostics: tuple[Diagnostic, ...] = ()


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
            hint = 'Import a weft workflow ({"format": "weft/1", "blocks": {...}}) or a workflow exported from Sim.'
            raise NoWorkflow(pointer="/document", hint=hint)
        if ours.format is not None and ours.diagnostics:
            ours.document["description"] = _to_do(ours.diagnostics)
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

    async def run(
        self,
        id: str,
        *,
        rev: int | None = None,
        input: Any = None,
        trigger: str | None = None,
        stop_after: str | None = None,
        idempotency_key: str | None = None,
    ) -> tuple[Submitted, int]:
        """Run the stored draft; also returns the revision that runs. Raises NotFound, Conflict (draft_changed), and the
        errors of Runs.submit."""
        row = await self._row(id, rev)
        submitted = await self._runs.submit(
            orjson.loads(row.document),
            input=input,
            trigger=trigger,
            stop_after=stop_after,
            idempotency_key=idempotency_key,
            draft=row,
        )
        if submitted.created:
            return submitted, row.rev
        started = await self._runs.row(submitted.run)  # by the first request, of an earlier revision perhaps
        return submitted, started.draft_rev or row.rev

    async def save_version(
        self, id: str, *, rev: int | None = None, name: str | None = None, activate_triggers: bool = False
    ) -> tuple[SavedWorkflow, int]:
        """Store the draft as a version of workflow `name` (by default its own name), on which it is based from then on;
        also returns the revision. Raises like `Workflows.save`, NotFound, Conflict (draft_changed)."""
        row = await self._row(id, rev)
        document = orjson.loads(row.document)
        saved = await self._workflows.save(document, name or row.name or None, activate_triggers=activate_triggers)
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
        checked = await self._workflows.validate(row.document)
        if found:  # the import has the same findings about its blocks
            checked = [each for each in checked if each.code != "not_imported"]
        diagnostics = (*found, *checked)
        return view_of(DraftView, row, document=orjson.loads(row.document), diagnostics=diagnostics)

    async def _changed(self, row: DraftRow, rev: int | None) -> Conflict:
        return Conflict(
            f"the draft is at revision {row.rev}, not {rev}",
            code="draft_changed",
            hint="`current` is the stored draft; compare it with yours, then save with its revision",
            current=await self._view(row),
        )


def _name(name: str | None, document: Mapping[str, Any]) -> str:
    """Return the given name, else the document's own, cut to the length that a list shows."""
    own = document.get("name")
    return (name or (own if isinstance(own, str) else ""))[:NAME_LENGTH_MAX]


def _not_found(id: str) -> NotFound:
    return NotFound(f"there is no draft '{id}'", code="draft_not_found")


def _to_do(findings: Sequence[Diagnostic]) -> str:
    """List for people what an import left out or changed. Findings about a draft are those of its present document:
    these would be seen once."""
    lines = [f"- {found.message} {found.hint}".rstrip() for found in findings]
    return "\n".join(("Imported from Sim. To do:", *lines))[:TO_DO_MAX]
