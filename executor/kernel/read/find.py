"""Rows by the names that callers use. What is not there is NotFound."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from executor.errors import NotFound
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.workflows import WorkflowRow


async def find_run(store: Store, run: str) -> RunRow:
    row = await store.get_run(run)
    if row is None:
        hint = "`weft runs` or engine.runs.list() has the runs there are; ended ones may have been deleted by age"
        raise NotFound(f"there is no run '{run}'", code="run_not_found", hint=hint)
    return row


class SharedRows:
    """Rows of runs, for many who ask at the same time. They share the next read that begins, so that it began after all
    of them had asked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reading: dict[str, asyncio.Future[None]] = {}
        self._next: dict[str, asyncio.Task[RunRow]] = {}

    async def find(self, run: str) -> RunRow:
        following = self._next.get(run)
        if following is None:
            reading = self._reading.get(run)
            if reading is None:
                return await self._read(run)
            following = self._next[run] = asyncio.create_task(self._read_after(run, reading), name=f"row of {run}")
            following.add_done_callback(lambda done: done.cancelled() or done.exception())  # all may have left
        return await asyncio.shield(following)

    async def _read_after(self, run: str, reading: asyncio.Future[None]) -> RunRow:
        try:
            await reading
        finally:
            del self._next[run]
        return await self._read(run)

    async def _read(self, run: str) -> RunRow:
        reading = self._reading[run] = asyncio.get_running_loop().create_future()
        try:
            return await find_run(self._store, run)
        finally:
            if self._reading.get(run) is reading:
                del self._reading[run]
            reading.set_result(None)


@asynccontextmanager
async def existing_run(store: Store, run: str, row: RunRow | None = None) -> AsyncIterator[RunRow]:
    """The row of a run, for a caller that reads more of it: NotFound if upkeep deletes the run meanwhile. `row`: if it
    was read just now."""
    row = row or await find_run(store, run)
    try:
        yield row
    except Exception:
        await find_run(store, run)
        raise
    await find_run(store, run)


async def find_version(store: Store, workflow: str, version: int | None = None) -> WorkflowRow:
    """Return a version of a workflow, without a number the active one."""
    row = await store.get_workflow(workflow)
    if row is not None and version not in (None, row.version):
        row = await store.get_workflow(workflow, version)
    if row is None:
        which = f"workflow '{workflow}'" if version is None else f"version {version} of workflow '{workflow}'"
        hint = "deploy it first: `weft workflows` lists those that are stored"
        raise NotFound(f"there is no {which}", code="workflow_not_found", hint=hint)
    return row
