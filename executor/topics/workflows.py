"""Versions of stored workflows: which one is active, and how a workflow is deleted; `engine.workflows`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from compiler.compile import Compiled
from compiler.diagnostics import CompileError
from executor.errors import Conflict, NotFound
from executor.store.rows import DeletedWorkflow, Stored, VersionRow, WorkflowHead
from executor.topics.removed_blocks import removed_blocks
from executor.triggers.declared import declared_by
from executor.views import SavedWorkflow

if TYPE_CHECKING:
    from executor.engine import Engine


class Workflows:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._store = engine.store

    async def heads(self) -> list[WorkflowHead]:
        """By name, each with its last run."""
        return await self._store.list_heads()

    async def get(self, name: str) -> WorkflowHead:
        """Raises NotFound."""
        head = await self._store.get_head(name)
        if head is None:
            raise _not_found(name)
        return head

    async def versions(self, name: str, before: int | None = None, limit: int = 200) -> list[VersionRow]:
        """Newest first, below `before`. Raises NotFound."""
        found = await self._store.list_versions(name, before, limit)
        if not found:
            await self.get(name)
        return found

    async def activate(self, name: str, version: int) -> SavedWorkflow:
        """Run this version from now on where none is named; its schedules and webhooks take the place of those of the
        version before. Raises NotFound, and CompileError when it cannot run any more."""
        row = await self._engine.get_workflow(name, version)
        document = orjson.loads(row.document)
        compiled = await self._engine.compile(row.document)
        if compiled.plan is None:
            raise CompileError(list(compiled.diagnostics))
        declared = await declared_by(self._engine, name, document)
        stored = await self._store.activate_workflow(name, version, self._engine.now_ms(), declared)
        if stored is None:
            raise _not_found(name)
        return await self.saved(stored, document, compiled)

    async def saved(self, stored: Stored, document: Any, compiled: Compiled) -> SavedWorkflow:
        """A version was made active: what there is to say about it."""
        self._engine.schedules.scheduler.wake()
        row, replaced = stored.row, stored.replaced
        warnings = await removed_blocks(self._store, row.name, document) if replaced is not None else []
        found = (*compiled.diagnostics, *warnings)
        return SavedWorkflow(row.name, row.version, row.hash, stored.created, found, stored.activated, replaced)

    async def delete(self, name: str) -> DeletedWorkflow:
        """With its versions, schedules and webhooks. Runs that have ended stay, and keep their documents. Raises
        NotFound, Conflict (workflow_has_open_runs)."""
        deleted = await self._store.delete_workflow(name)
        if deleted is None:
            raise _not_found(name)
        if deleted.open_runs:
            runs = "a run" if deleted.open_runs == 1 else f"{deleted.open_runs} runs"
            raise Conflict(
                f"{runs} of workflow '{name}' {'has' if deleted.open_runs == 1 else 'have'} not ended yet",
                code="workflow_has_open_runs",
                hint="cancel them, or wait until they end",
                open_runs=deleted.open_runs,
            )
        self._engine.schedules.scheduler.wake()
        return deleted


def _not_found(name: str) -> NotFound:
    return NotFound(f"there is no workflow '{name}'", code="workflow_not_found")
