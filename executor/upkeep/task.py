"""Keeping the engine's own database small, now and by itself; `engine.upkeep`."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from executor.errors import StoreError
from executor.upkeep.gc import Collected, collect, preview

if TYPE_CHECKING:
    from executor.engine import Engine

log = logging.getLogger("weft.upkeep")

FIRST_S = 60.0  # a server that starts has better things to do
EVERY_S = 3600.0


class Upkeep:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._store = engine.store
        self._task: asyncio.Task[None] | None = None
        self._collecting = asyncio.Lock()

    def start(self, retention_ms: int | None, *, first_s: float = FIRST_S, every_s: float = EVERY_S) -> None:
        """From now on delete, every so often, runs that ended more than `retention_ms` ago (None: no run) and cached
        results that have expired."""
        assert self._task is None, "started twice"
        self._task = asyncio.create_task(self._collect_for_ever(retention_ms, first_s, every_s), name="upkeep")

    async def stop(self) -> None:
        """A transaction under way is completed; the rest is done the next time."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def collect(self, older_than_ms: int | None, keep: int = 0, *, dry_run: bool = False) -> Collected:
        """See `executor.upkeep.gc`; one at a time."""
        if dry_run:
            return await preview(self._store, self._engine.now_ms(), older_than_ms, keep)
        async with self._collecting:
            return await collect(self._store, self._engine.now_ms(), older_than_ms, keep)

    async def _collect_for_ever(self, retention_ms: int | None, first_s: float, every_s: float) -> None:
        await asyncio.sleep(first_s)
        while True:
            try:
                gone = await self.collect(retention_ms)
            except StoreError as error:
                log.error("old runs could not be deleted: %s", error)
            except Exception:  # a bug of ours; without this task the database would only grow
                log.exception("old runs could not be deleted; trying again")
            else:
                if gone.runs or gone.cached:
                    log.info("deleted %d runs (%d events), %d cached results", gone.runs, gone.events, gone.cached)
            await asyncio.sleep(every_s)
