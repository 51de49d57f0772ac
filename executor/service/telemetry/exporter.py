"""Exports the traces of runs, and of requests that continue the trace of a caller; `engine.traces`.

For an open run, the spans that have ended are exported some seconds after they were recorded; the others when they have
ended. At least once, as far as a process has seen an end: at its start it also exports the runs that ended in the last
LOOK_BACK_MS. The ids of spans follow from the run, so a collector sees the same trace again, and not another one."""

from __future__ import annotations

import asyncio
import logging
import time
from itertools import islice
from typing import TYPE_CHECKING, Final

from executor.errors import CorruptJournal, StoreError
from executor.kernel.journal.codec import data_of
from executor.kernel.journal.projection import Entry
from executor.kernel.journal.reader import Records, load_plan
from executor.kernel.process.observe import parent_of
from executor.kernel.process.repeated import Repeated
from executor.kernel.process.task import BackgroundTask
from executor.kernel.process.tracing import ENDED_MAX, OPEN_MAX, Tracing, trace_id
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.statements import TERMINAL
from executor.service.parts import Parts, Topic
from executor.service.telemetry.spans import Sent, Trace, TracedRun, TraceMaker

if TYPE_CHECKING:
    from executor.service.telemetry.otlp import Collector

LOOK_BACK_MS: Final = 15 * 60_000
LOOKED_AT_MAX: Final = 1_000  # newest runs of each status
RETRY_S: Final = 5.0
REFUSALS_MAX: Final = 3  # refusals of a trace by a collector that takes others
OPEN_S: Final = 10.0  # from events of an open run to their export: most runs have ended by then
SHARE: Final = 4.0  # no open run is read for so many times the time that reading the last one took
REQUESTS: Final = 512  # spans of one request to the collector
NOTHING: Final = Sent()
SLICE: Final = 500  # entries, then others have their turn

log = logging.getLogger("weft.traces")


class Traces(Topic):
    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._given = parts.services.tracing
        self._collector: Collector | None = None
        self._has_looked = False
        self._failed = Repeated()
        self._taken = 0  # traces that the collector took
        self._sent: dict[str, Sent] = {}  # by open run
        self._open_again_s = 0.0
        self._refused: dict[str, tuple[int, int]] = {}  # run: `_taken` at its last refusal, refusals among others taken
        self._task: BackgroundTask | None = None
        if self._given is not None:
            self._tracing.recorded_trace = self._recorded_trace
            wake = self._tracing.wake
            self._task = BackgroundTask("traces", self._step, failed="traces could not be exported", log=log, wake=wake)

    @property
    def _tracing(self) -> Tracing:
        assert self._given is not None, "only the task exports"
        return self._given

    def start(self) -> None:
        if self._task is not None:
            self._task.start()

    async def stop(self) -> None:
        """Stop. The next process that starts finds the traces that are not exported yet."""
        if self._collector is not None:
            await asyncio.to_thread(self._collector.close)
        if self._task is not None:
            await self._task.stop()

    async def of(self, row: RunRow) -> Trace:
        """Return the trace of a run as it stands now. Raises StoreError, CorruptJournal."""
        plan = await load_plan(self._store, row.plan_hash)
        maker = TraceMaker(_traced(row), {node.id: node.type for node in plan.nodes})
        n = 0
        async for record in Records(self._store, row.id, upto=row.seq):
            maker.add(Entry.of(record))
            n += 1
            if n % SLICE == 0:
                await asyncio.sleep(0)
        return maker.trace()

    async def _step(self) -> float:
        if self._collector is None:
            from executor.service.telemetry.otlp import Collector

            self._collector = Collector(self._tracing.endpoint, self._tracing.headers)
        if not self._has_looked:
            await self._look_back()
            self._has_looked = True
        takes_requests = await self._export_requests(self._collector)
        if not await self._export_ended(self._collector):
            self._tracing.wake.clear()  # another end does not make the collector work
            return RETRY_S
        next_s = await self._export_open(self._collector)
        return next_s if takes_requests else RETRY_S

    async def _export_requests(self, collector: Collector) -> bool:
        """Export requests. Returns False if the collector does not take them; they wait."""
        waiting = self._tracing.requests
        while waiting:
            some = list(islice(waiting, REQUESTS))
            if not await asyncio.to_thread(collector.export_requests, some):
                if self._failed.due("export"):
                    log.warning(
                        "%s does not accept traces; %d requests are waiting", self._tracing.endpoint, len(waiting)
                    )
                return False
            for each in some:
                if waiting and waiting[0] is each:  # no newer one has taken its place
                    waiting.popleft()
        return True

    async def _export_ended(self, collector: Collector) -> bool:
        """Export traces of ended runs. Returns False if the collector does not take the first of them; they wait."""
        ended = self._tracing.ended
        while ended:
            run = ended[0]
            trace = await self._trace(run, ended=True)
            rest = trace and self._sent.get(run, NOTHING).rest_of(trace)
            if rest is not None and not await asyncio.to_thread(collector.export, rest):
                if self._failed.due("export"):
                    log.warning("%s does not accept traces; %d runs are waiting", self._tracing.endpoint, len(ended))
                if ended and ended[0] == run:
                    self._put_back(run)
                return False
            self._taken += rest is not None
            self._refused.pop(run, None)
            self._sent.pop(run, None)
            if ended and ended[0] == run:
                ended.popleft()
        return True

    async def _export_open(self, collector: Collector) -> float:
        """Export the ended spans of open runs, run by run. Returns the seconds until the next one is due."""
        runs = self._tracing.open
        while runs:
            run, since_s = next(iter(runs.items()))
            now_s = time.monotonic()
            due_s = max(since_s + OPEN_S, self._open_again_s)
            if due_s > now_s:
                return due_s - now_s
            del runs[run]  # events from now on are for its next turn
            trace = await self._trace(run, ended=False)
            self._open_again_s = time.monotonic() + SHARE * (time.monotonic() - now_s)
            if trace is not None and not await self._export_part(collector, run, trace):
                return RETRY_S
            if self._tracing.ended or self._tracing.requests:
                return 0.0
        return OPEN_S

    async def _export_part(self, collector: Collector, run: str, trace: Trace) -> bool:
        part = self._sent.get(run, NOTHING).rest_of(trace)
        if not any(span.end_ms is not None for span in part.spans):
            return True
        if not await asyncio.to_thread(collector.export, part):
            if self._failed.due("export"):
                log.warning("%s does not accept traces of open runs", self._tracing.endpoint)
            self._tracing.run_grew(run)
            return False
        if len(self._sent) >= OPEN_MAX:
            self._sent.pop(next(iter(self._sent)))
        self._sent[run] = self._sent.pop(run, NOTHING).then(part)
        return True

    async def _trace(self, run: str, *, ended: bool) -> Trace | None:
        """Return the trace, or None if the run was deleted, has (not) ended, or its journal cannot be read, which no
        later try would change."""
        row = await self._store.get_run(run)
        if row is None or (row.status in TERMINAL) is not ended:
            return None
        try:
            return await self.of(row)
        except CorruptJournal as error:
            log.error("run %s has no trace: %s", row.id, error)
            return None

    def _put_back(self, run: str) -> None:
        """Put a run after the others: a collector may refuse one trace and take the rest. It is left out after
        REFUSALS_MAX refusals with others taken in between."""
        ended = self._tracing.ended
        taken, refusals = self._refused.pop(run, (self._taken, 0))
        refusals += taken != self._taken
        if refusals < REFUSALS_MAX:
            if len(self._refused) >= ENDED_MAX:  # includes runs that have left the queue
                self._refused.clear()
            self._refused[run] = (self._taken, refusals)
            ended.rotate(-1)
            return
        ended.popleft()
        self._tracing.left_out += 1
        log.warning("%s accepts other traces, but not that of run %s, which is left out", self._tracing.endpoint, run)

    async def _look_back(self) -> None:
        since_ms = self._clock.now_ms() - LOOK_BACK_MS
        known = set(self._tracing.ended)
        for status in ("succeeded", "failed", "cancelled"):
            for row in await self._store.list_runs(status=status, limit=LOOKED_AT_MAX):
                if (row.finished_at_ms or 0) >= since_ms and row.id not in known:
                    self._tracing.run_ended(row.id)

    async def _recorded_trace(self, run: str) -> str | None:
        """Return the trace of the first event, or None if it is not on disk yet, or the database cannot be read."""
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
