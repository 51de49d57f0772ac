"""Exports the traces of runs that end: one task of the engine, `engine.traces`.

At least once, as far as a process knows of an end: one that starts also exports what ended in the last LOOK_BACK_MS, in
any process, because the one before it may have been killed in between. The ids of spans follow from the run, so a
collector sees the same trace again, and not another one.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from executor.errors import StoreError
from executor.journal.codec import data_of
from executor.journal.projection import Entry
from executor.journal.reader import load_plan, read
from executor.repeated import Repeated
from executor.runtime.parts import Parts
from executor.runtime.task import BackgroundTask
from executor.store.rows import TERMINAL, RunRow
from executor.telemetry.spans import Trace, TracedRun, TraceMaker
from executor.tracing import parent_of, trace_id

if TYPE_CHECKING:
    from executor.telemetry.otlp import Collector

LOOK_BACK_MS: Final = 15 * 60_000
LOOKED_AT_MAX: Final = 1_000  # newest runs of each status
RETRY_S: Final = 5.0
IDLE_S: Final = 60.0
SLICE: Final = 500  # entries, then others have their turn

log = logging.getLogger("weft.traces")


class Traces:
    def __init__(self, parts: Parts) -> None:
        self._store = parts.store
        self._clock = parts.clock
        self._tracing = parts.services.tracing
        self._collector: Collector | None = None
        self._has_looked = False
        self._failed = Repeated()
        self._task: BackgroundTask | None = None
        if self._tracing is not None:
            self._tracing.recorded_trace = self._recorded_trace
            wake = self._tracing.wake
            self._task = BackgroundTask("traces", self._step, failed="traces could not be exported", log=log, wake=wake)

    def start(self) -> None:
        if self._task is not None:
            self._task.start()

    async def stop(self) -> None:
        """What is not exported yet is found by the next process that starts."""
        if self._collector is not None:
            await asyncio.to_thread(self._collector.close)
        if self._task is not None:
            await self._task.stop()

    async def of(self, row: RunRow) -> Trace:
        """The trace of a run as it stands now. Raises StoreError, CorruptJournal."""
        plan = await load_plan(self._store, row.plan_hash)
        maker = TraceMaker(_traced(row), {node.id: node.type for node in plan.nodes})
        n = 0
        async for record in read(self._store, row.id, upto=row.seq):
            maker.add(Entry.of(record))
            n += 1
            if n % SLICE == 0:
                await asyncio.sleep(0)
        return maker.trace()

    async def _step(self) -> float:
        assert self._tracing is not None
        if self._collector is None:
            from executor.telemetry.otlp import Collector

            self._collector = Collector(self._tracing.endpoint, self._tracing.headers)
        if not self._has_looked:
            await self._look_back()
            self._has_looked = True
        ended = self._tracing.ended
        while ended:
            run = ended[0]
            row = await self._store.get_run(run)
            if row is not None and row.status in TERMINAL:
                trace = await self.of(row)
                if not await asyncio.to_thread(self._collector.export, trace):
                    if self._failed.due("export"):
                        log.warning("%s does not take traces; %d runs wait for it", self._tracing.endpoint, len(ended))
                    self._tracing.wake.clear()  # another end does not make the collector work
                    return RETRY_S
            if ended and ended[0] == run:
                ended.popleft()
        return IDLE_S

    async def _look_back(self) -> None:
        assert self._tracing is not None
        since_ms = self._clock.now_ms() - LOOK_BACK_MS
        known = set(self._tracing.ended)
        for status in ("succeeded", "failed", "cancelled"):
            for row in await self._store.list_runs(status=status, limit=LOOKED_AT_MAX):
                if (row.finished_at_ms or 0) >= since_ms and row.id not in known:
                    self._tracing.run_ended(row.id)

    async def _recorded_trace(self, run: str) -> str | None:
        """Of the first event. None: it is not on disk yet, or the database cannot be read."""
        try:
            records = await self._store.read_events(run, 0, 1)
            row = await self._store.get_run(run) if records else None
        except StoreError:
            return None
        if row is None:
            return None
        parent = parent_of(data_of(records[0]).get("traceparent"))
        return parent.trace if parent is not None else trace_id(row.root_id or run)


def _traced(row: RunRow) -> TracedRun:
    parent = (row.parent_run_id, row.parent_key) if row.parent_run_id and row.parent_key else None
    return TracedRun(
        row.id, row.workflow, row.version, row.status, row.created_at_ms, row.finished_at_ms, row.root_id, parent
    )
