"""Checks the journal of one run: it is folded under its plan, event by event, and everything the journal alone can
prove is checked on the way (I2, I4, I5, I6, I8). The memory used is bounded by what is open in the run.
"""

from __future__ import annotations

from collections.abc import Iterator

from compiler.keys import CLEANUP_SUFFIX, Path
from compiler.plan import Plan
from executor.errors import CorruptJournal
from executor.kernel.core.events import (
    Event,
    NodeStarted,
    RunForked,
    RunStarted,
    WaitClosed,
)
from executor.kernel.core.evolve import evolve
from executor.kernel.core.state import State
from executor.kernel.journal.codec import Codec, data_of, key_of
from executor.kernel.journal.projection import decision
from executor.kernel.store.run_rows import Record
from executor.service.upkeep.findings import Finding
from executor.service.upkeep.preconditions import complaint, not_ready

SEE_JOURNAL = "see `weft events {run}`; restore the run from a backup, or run it again"
OUR_BUG = "this is a bug in weft or a damaged file: keep the file and report it"


class JournalCheck:
    """Feed it the records in order. `state` is the fold of them, as long as `folds`."""

    def __init__(self, run: str, plan: Plan) -> None:
        self.state = State.new(plan)
        self.folds = True
        self.cancelling = False
        self.forked_at = 0  # seq; the events before it were copied from another run
        self.codec = Codec(plan)
        self._at_once = not plan.has_cleanup
        self._run = run
        self._plan = plan
        self._seq = 0
        self._at_ms = 0
        self._finished_at = 0  # seq
        self._began_as = run
        self._ended: dict[Path, dict[int, str | None]] = {}  # by open scope: decided nodes and the handle they left by

    def see(self, record: Record) -> Iterator[Finding]:
        yield from self._in_line(record)
        if not self.folds:
            return
        try:
            event = self.codec.to_event(record)
        except CorruptJournal as error:
            self.folds = False
            yield self._finding("I4", record, str(error), SEE_JOURNAL.format(run=self._run))
            return
        yield from self._in_time(record, event)
        if isinstance(event, NodeStarted):
            reason = not_ready(self._plan, self._ended.get(event.key[0], {}), event.key[1])
            if reason is not None:
                yield self._finding("I5", record, f"it starts in event {record.seq}, but {reason}", OUR_BUG)
        reason = complaint(self._plan, self.state, event)
        if reason is None:
            reason = self._apply(event)
        if reason is not None:
            self.folds = False
            yield self._finding("I4", record, f"event {record.seq} ({record.type}) cannot follow: {reason}", OUR_BUG)
            return
        self._record_starts(record, event)

    def end(self, seq: int) -> Iterator[Finding]:
        """Check the end, after the last record; `seq` is that in the run's row."""
        if self._seq != seq:
            what = f"its row says {seq} events, but the journal ends with event {self._seq}"
            yield Finding("I4", what, SEE_JOURNAL.format(run=self._run), self._run)
        if self._began_as != self._run and not self.forked_at:
            yield Finding("I4", f"its journal starts with the id of run {self._began_as}", OUR_BUG, self._run)

    def _in_line(self, record: Record) -> Iterator[Finding]:
        """Check order, time, and the two events that are the last of their kind, which needs no fold."""
        if record.seq != self._seq + 1:
            what = f"event {record.seq} follows event {self._seq}"
            yield self._finding("I4", record, what, SEE_JOURNAL.format(run=self._run))
        self._seq = record.seq
        if record.at_ms < self._at_ms:
            yield self._finding(
                "I4", record, f"event {record.seq} has an earlier time than the event before it", OUR_BUG
            )
        self._at_ms = max(self._at_ms, record.at_ms)
        if self._finished_at:
            what = f"event {record.seq} ({record.type}) comes after run.finished (event {self._finished_at})"
            yield self._finding("I2", record, what, OUR_BUG)
        if record.type == "run.finished":
            self._finished_at = self._finished_at or record.seq
        if record.type == "run.cancelling":
            self.cancelling = True
            self._at_once |= bool(data_of(record).get("now"))
        elif record.type == "node.started" and self.cancelling and (self._at_once or CLEANUP_SUFFIX not in record.path):
            yield self._finding("I6", record, f"it starts in event {record.seq}, after run.cancelling", OUR_BUG)

    def _in_time(self, record: Record, event: Event) -> Iterator[Finding]:
        due_ms = None
        if isinstance(event, WaitClosed) and event.outcome in ("fired", "expired"):
            wait = self.state.wait_of(event.key, event.attempt)
            if wait is not None and wait.due_ms is None:
                yield self._finding(
                    "I8", record, f"event {record.seq}: a wait without a due time {event.outcome}", OUR_BUG
                )
            due_ms = wait.due_ms if wait is not None else None
        elif isinstance(event, NodeStarted) and event.key in self.state.retries:
            due_ms = self.state.retries[event.key][1]
        if due_ms is not None and record.at_ms < due_ms:
            what = f"event {record.seq} ({record.type}) is {due_ms - record.at_ms} ms too early"
            yield self._finding("I8", record, what, OUR_BUG)

    def _apply(self, event: Event) -> str | None:
        try:
            evolve(self._plan, self.state, event)
        except (AssertionError, LookupError) as error:
            return str(error) or type(error).__name__
        return None

    def _record_starts(self, record: Record, event: Event) -> None:
        """Keep the data that later starts depend on, for scopes that are open."""
        if isinstance(event, RunStarted):
            self._began_as = event.run
        elif isinstance(event, RunForked):
            self.forked_at = self._seq
        decided = decision(record.type, data_of(record))
        if decided is None:
            return
        path, number = event.key  # type: ignore[union-attr]  # what decides a node names it
        if path in self.state.scopes:
            self._ended.setdefault(path, {})[number] = decided.route
        if len(self._ended) > 2 * len(self.state.scopes) + 16:
            self._ended = {path: ended for path, ended in self._ended.items() if path in self.state.scopes}

    def _finding(self, invariant: str, record: Record, what: str, fix: str) -> Finding:
        return Finding(invariant, what, fix, self._run, key_of(record) or "")
