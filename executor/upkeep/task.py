"""Keeping the engine's own database small, now and by itself; `engine.upkeep`."""

from __future__ import annotations

import asyncio
import logging

from executor.errors import Conflict, WeftError
from executor.runtime.find import find_run
from executor.runtime.parts import Parts
from executor.runtime.task import BackgroundTask
from executor.store.rows import TERMINAL, RunRow
from executor.upkeep.gc import Collected, batches, collect, preview

log = logging.getLogger("weft.upkeep")

FIRST_S = 60.0  # a server that starts has better things to do
EVERY_S = 3600.0
CHILDREN_MAX = 1_000_000  # of one run: all of them


class Upkeep:
    """Deletes old runs and expired results, on request and in the background; `engine.upkeep`."""

    def __init__(self, parts: Parts) -> None:
        self._store = parts.store
        self._clock = parts.clock
        self._task: BackgroundTask | None = None
        self._collecting = asyncio.Lock()

    def start(self, retention_ms: int | None, *, first_s: float = FIRST_S, every_s: float = EVERY_S) -> None:
        """From now on delete, every so often, runs that ended more than `retention_ms` ago (None: no run) and cached
        results that have expired."""
        assert self._task is None, "started twice"

        async def step() -> float:
            try:
                deleted = await self._collect(retention_ms, 0, by_days=True)
            except Conflict:  # another process does it
                return every_s
            if deleted.runs or deleted.cached:
                log.info("deleted %d runs (%d events), %d cached results", deleted.runs, deleted.events, deleted.cached)
            return every_s

        self._task = BackgroundTask("upkeep", step, failed="old runs could not be deleted", log=log)
        self._task.start(after_s=first_s)

    async def stop(self) -> None:
        """A transaction under way is completed; the rest is done the next time."""
        task, self._task = self._task, None
        if task is not None:
            await task.stop()

    async def collect(self, older_than_ms: int | None, keep: int = 0, *, dry_run: bool = False) -> Collected:
        """See `executor.upkeep.gc`; one at a time, of all processes. Raises Conflict: another one is at it."""
        if dry_run:
            return await preview(self._store, self._clock.now_ms(), older_than_ms, keep)
        return await self._collect(older_than_ms, keep, by_days=False)

    async def _collect(self, older_than_ms: int | None, keep: int, *, by_days: bool) -> Collected:
        async with self._collecting, self._store.deleting() as alone:
            if not alone:
                raise Conflict(
                    "another process is deleting old runs of this database",
                    code="gc_in_progress",
                    hint="try again when it is done",
                )
            return await collect(self._store, self._clock.now_ms(), older_than_ms, keep, by_days=by_days)

    async def clear_cache(self, workflow: str | None = None) -> int:
        """Delete all cached results, or those of the runs of one workflow. Returns how many there were."""
        return await self._store.clear_cache(workflow)

    async def delete_run(self, run: str) -> int:
        """The run and the runs below it; returns how many went. Raises NotFound, Conflict: it has not ended, another
        run has started it, or an open run needs it."""
        row = await find_run(self._store, run)
        if row.status not in TERMINAL:
            raise Conflict(
                f"run {run} has not ended yet (it is {row.status})",
                code="run_not_ended",
                hint="cancel it, or wait until it ends",
            )
        family = await self._family(row)
        for each in family:
            if each.status not in TERMINAL:
                message = f"run {each.id}, which was started by run {run}, has not ended yet (it is {each.status})"
                raise Conflict(message, code="run_in_use", hint="cancel it, or wait until it ends", child=each.id)
        deleted = 0
        for batch in batches(family):
            deleted += len(await self._store.delete_runs([each.id for each in batch]))
            if not deleted:
                raise await self._why_not(row)
        return deleted

    async def _family(self, row: RunRow) -> list[RunRow]:
        """The run and those below it, parents before their children."""
        found = [row]
        for parent in found:
            for child in await self._store.list_children(parent.id, CHILDREN_MAX):
                below = await self._store.get_run(child.id)
                if below is not None:
                    found.append(below)
        return found

    async def _why_not(self, row: RunRow) -> WeftError:
        await find_run(self._store, row.id)  # NotFound: it has gone meanwhile
        if row.parent_run_id is not None and await self._store.get_run(row.parent_run_id) is not None:
            return Conflict(
                f"run {row.id} was started by run {row.parent_run_id}",
                code="run_has_parent",
                hint=f"delete run {row.parent_run_id}; the runs it started are deleted with it",
                parent=row.parent_run_id,
            )
        return Conflict(
            f"an open run continues from run {row.id}",
            code="run_in_use",
            hint="wait until that run ends, or cancel it",
        )
