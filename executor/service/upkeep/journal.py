"""Checks the journal of one run: it is folded under its plan, event by event, and everything the journal alone can
prove is checked on the way (I2, I4, I5, I6, I8). The memory used is bounded by what is open in the run.

Each event is checked before it is applied, because `evolve` trusts its journal. A snapshot has to have the same bytes
as one of the journal, folded up to its event by the code that recovery uses."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from functools import partial
from typing import Any, TypeVar

import msgspec

from compiler.keys import CLEANUP_SUFFIX, NodeKey, Path
from compiler.plan import Plan
from executor.errors import CorruptJournal
from executor.kernel.core import events as e
from executor.kernel.core.evolve import evolve
from executor.kernel.core.evolve_containers import cleanup_of
from executor.kernel.core.state import Cleanup, RunPhase, State, Status, Step
from executor.kernel.journal.codec import Codec, data_of, key_of
from executor.kernel.journal.projection import decision
from executor.kernel.run.loaded import LoadedRun, replay
from executor.kernel.run.snapshots import checksum_of, differs, unfit
from executor.kernel.store.reading import Reading
from executor.kernel.store.run_rows import Record, RunRow
from executor.kernel.store.statements import Readers
from executor.kernel.store.topics import contents, journal, runs, snapshots
from executor.service.upkeep.findings import Finding

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
        if isinstance(event, e.NodeStarted):
            reason = not_ready(self._plan, self._ended.get(event.key[0], {}), event.key[1])
            if reason is not None:
                yield self._finding("I5", record, f"it starts in event {record.seq}, but {reason}", OUR_BUG)
        reason = self._apply(event)
        if reason is not None:
            self.folds = False
            yield self._finding("I4", record, f"event {record.seq} ({record.type}) cannot follow: {reason}", OUR_BUG)
            return
        self._record_starts(record, event)

    def end(self, seq: int) -> Iterator[Finding]:
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

    def _in_time(self, record: Record, event: e.Event) -> Iterator[Finding]:
        due_ms = None
        if isinstance(event, e.WaitClosed) and event.outcome in ("fired", "expired"):
            wait = self.state.wait_of(event.key, event.attempt)
            if wait is not None and wait.due_ms is None:
                yield self._finding(
                    "I8", record, f"event {record.seq}: a wait without a due time {event.outcome}", OUR_BUG
                )
            due_ms = wait.due_ms if wait is not None else None
        elif isinstance(event, e.NodeStarted) and event.key in self.state.retries:
            due_ms = self.state.retries[event.key][1]
        elif isinstance(event, e.StepStarted) and (step := _step_of(self.state, event)) is not None:
            due_ms = step.due_ms
        if due_ms is not None and record.at_ms < due_ms:
            what = f"event {record.seq} ({record.type}) is {due_ms - record.at_ms} ms too early"
            yield self._finding("I8", record, what, OUR_BUG)

    def _apply(self, event: e.Event) -> str | None:
        """Return why the event cannot follow; what no rule foresees of a damaged journal is a reason too."""
        try:
            reason = complaint(self._plan, self.state, event)
            if reason is None:
                evolve(self._plan, self.state, event)
        except (AssertionError, LookupError) as error:
            return str(error) or type(error).__name__
        return reason

    def _record_starts(self, record: Record, event: e.Event) -> None:
        """Keep the data that later starts depend on, for scopes that are open."""
        if isinstance(event, e.RunStarted):
            self._began_as = event.run
        elif isinstance(event, e.RunForked):
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


# --- what each event requires ---


def complaint(plan: Plan, state: State, event: e.Event) -> str | None:
    if state.phase is RunPhase.FINISHED:
        return "it comes after run.finished"
    if isinstance(event, e.RunStarted):
        return None if state.phase is RunPhase.NEW else "the run has already started"
    if state.phase is RunPhase.NEW:
        return "it comes before run.started"
    match event:
        case e.RunParked():
            return f"{len(state.running)} attempts are running" if state.running else None
        case e.RunCancelling():
            again = state.phase is RunPhase.CANCELLING or (state.cancelled and not event.now)
            return "the run is already being cancelled" if again else None
        case e.CleanupOpened():
            return _cleaning(plan, state, event)
        case e.CleanupStopped():
            return None if event.key in state.cleanups else "its cleanup is not open"
        case e.ScopesOpened():
            return _opening(plan, state, event)
        case e.NodeStarted():
            return _starting(state, event)
        case e.NodeSucceeded():
            reused = event.reused and (event.key in state.reusing or event.key in state.exits)
            return None if reused else _ending(plan, state, event.key, event.attempt)
        case e.RegionSized():
            return None if event.key in state.reusing else _ending(plan, state, event.key, event.attempt)
        case e.RegionExited():
            return _leaving(plan, state, event)
        case e.NodeFailed():
            refused = any(queue and queue[0][1] == event.key for queue in state.ready)  # by a limit of the run
            aborted = event.key in state.failed_ends
            return None if refused or aborted else _ending(plan, state, event.key, event.attempt)
        case e.NodeSkipped(reason="pruned"):
            return (
                None
                if state.status_of(plan, event.key) in (Status.SKIPPED, None)
                else "one of its incoming connections is still open"
            )
        case e.NodeSkipped() | e.RetryScheduled():
            return _ending(plan, state, event.key, event.attempt, isinstance(event, e.NodeSkipped))
        case e.NodeLeft():
            return _having_left(plan, state, event)
        case e.RetryHastened():
            retry = state.retries.get(event.key)
            return (
                None if retry is not None and retry[0] == event.attempt else "this attempt is not scheduled for a retry"
            )
        case e.StepFinished() | e.StepLost() | e.StepRetrying():
            return _ending_step(plan, state, event)
        case e.WaitOpened() if event.beside or event.each:
            return _opening_each(state, event) if event.each else _opening_beside(state, event)
        case e.WaitOpened() | e.NodeLog() | e.StepStarted():
            return None if state.running.get(event.key) == event.attempt else "this attempt is not running"
        case e.WaitClosed():
            if state.wait_of(event.key, event.attempt) is None:
                return "it has no open wait"
            left = len(state.waits[event.key]) - 1
            return None if left == event.left else f"{left} other waits of it are open, not {event.left}"
        case _:  # only informs, or ends the run
            return None


def _leaving(plan: Plan, state: State, event: e.RegionExited) -> str | None:
    if event.key not in state.exits and event.key not in state.running:
        return "its container has not ended"
    if event.reused or cleanup_of(plan, event.key[1]) < 0:
        return None
    container = state.containers.get((event.key[0], plan.nodes[event.key[1]].body))
    return None if container is None or container.cleanup is Cleanup.OVER else "its cleanup has not run"


def _ending_step(plan: Plan, state: State, event: e.StepFinished | e.StepLost | e.StepRetrying) -> str | None:
    if isinstance(event, e.StepRetrying):
        return _retrying_step(state, event)
    step = _step_of(state, event)
    if step is None:
        return f"step {event.n} has not begun"
    if step.finished_seq:
        return f"step {event.n} has finished before"
    waits = state.waits.get(event.key, {})
    waited = not any(wait.step == event.n for wait in waits.values())
    if _is_each(state, event.key) and state.running.get(event.key) != event.attempt:
        return None if waited else "its wait is still open"
    if waits and step.kind == "wait" and waited:
        return None  # others of the node are still open
    return _ending(plan, state, event.key, event.attempt, False)


def _retrying_step(state: State, event: e.StepRetrying) -> str | None:
    if state.running.get(event.key) != event.attempt:
        return "this attempt is not running"
    step = _step_of(state, event)
    if step is None or not step.under_way:
        return f"step {event.n} is not under way"
    return None if event.times == step.times + 1 else f"step {event.n} has failed {step.times} times before"


def _step_of(state: State, event: e.StepStarted | e.StepRetrying | e.StepFinished | e.StepLost) -> Step | None:
    tries = state.tries.get(event.key)
    return None if tries is None else tries.by_n.get(event.n)


def _opening_beside(state: State, event: e.WaitOpened) -> str | None:
    waits = state.waits.get(event.key)
    if not waits:
        return "it is beside no other wait"
    if event.attempt != max(waits) + 1:
        return f"wait {max(waits) + 1} comes next"
    known = event.step is not None and all(wait.step is not None for wait in waits.values())
    return None if known else "only waits of a handler stand side by side"


def _opening_each(state: State, event: e.WaitOpened) -> str | None:
    running = state.running.get(event.key)
    if running is None:
        return "no attempt of it is running"
    if event.step is None:
        return "only waits of a handler stand side by side"
    waits = state.waits.get(event.key, {})
    if event.attempt < running or event.attempt in waits or event.attempt < max(waits, default=0):
        return f"the number {event.attempt} was taken before"
    return "its step has another one" if any(wait.step == event.step for wait in waits.values()) else None


def _having_left(plan: Plan, state: State, event: e.NodeLeft) -> str | None:
    running, waits = state.running.get(event.key), state.waits.get(event.key, {})
    if running != event.attempt:
        return "this attempt is not running"
    tries = state.tries.get(event.key)
    if event.again and (tries is None or not tries.news_seq):
        return "no wait has ended while it ran"
    if not waits and not event.again and event.due_ms is None:
        return "it waits for nothing"
    return None


def _is_each(state: State, key: NodeKey) -> bool:
    tries = state.tries.get(key)
    return tries is not None and tries.each


def not_ready(plan: Plan, ended: dict[int, str | None], number: int) -> str | None:
    """Return why a node may not start yet. `ended` maps the decided nodes of its scope to the handle they left by."""
    region = plan.regions[plan.region_of[number]]
    if number in region.entries:
        return None
    live = False
    for offset, node in enumerate(region.nodes):
        for edge in node.out:
            if edge.target == number:
                source = region.first + offset
                if source not in ended:
                    return f"'{node.id}' has not ended"
                live |= ended[source] == edge.handle
    return None if live else "no incoming connection is active"


def _opening(plan: Plan, state: State, event: e.ScopesOpened) -> str | None:
    path, start = event.key
    body = plan.nodes[start].body
    container = state.containers.get((path, body))
    if container is None:
        return "its container is not open"
    if container.opened != event.first:
        return f"scope {container.opened} comes next, not {event.first}"
    if event.count < 1:
        return "it opens no iteration or branch"
    if plan.regions[body].kind == "loop" and event.first and (path, plan.regions[body].end) not in state.running:
        return "the loop had not decided to continue"
    return None


def _cleaning(plan: Plan, state: State, event: e.CleanupOpened) -> str | None:
    key = event.key
    if cleanup_of(plan, key[1]) < 0:
        return "it has no cleanup"
    around = state.scopes.get(key[0])
    if event.given_up and (around is None or not around.dead):
        return "what is around its container is not given up"
    if plan.nodes[key[1]].sentinel is None:
        if state.root_cleanup in (Cleanup.OPEN, Cleanup.OVER):
            return "the cleanup of the run has begun before"
        if plan.undone is not None and state.root_cleanup is not Cleanup.OWED:
            return "there is nothing to undo"
        return None if state.root_closed else "something of the run has not ended"
    container = state.containers.get((key[0], plan.nodes[key[1]].body))
    if container is None:
        return "its container is not open"
    if container.cleanup is not Cleanup.NOT_BEGUN:
        return "its cleanup has begun before"
    ended = key in state.exits or key in state.running or key in state.failed_ends or key in state.due_cleanups
    return None if ended else "the body of its container has not ended"


def _starting(state: State, event: e.NodeStarted) -> str | None:
    key = event.key
    scope = state.scopes.get(key[0])
    if scope is None:
        return "its scope is not open"
    if scope.dead:
        return "its iteration or branch was stopped"
    if state.phase is not RunPhase.RUNNING:
        return f"the run is {state.phase.name.lower()}"
    retry = state.retries.get(key)
    if retry is not None:
        return None if retry[0] == event.attempt else f"attempt {retry[0]} comes next"
    # It need not be next in its queue: blocks that a later version of the workflow added wait there, too, after a move.
    if not any(entry[1] == key for queue in state.ready for entry in queue):
        return "it is not ready"
    return None if event.attempt == 1 else "attempt 1 comes first"


def _ending(plan: Plan, state: State, key: NodeKey, attempt: int, decides: bool = True) -> str | None:
    """Check an end: a node ends from an attempt that is under way, or from a wait that was just closed. `decides`: it
    leaves no wait open."""
    running = state.running.get(key)
    if key in state.waits and (decides or (running is None and not _is_each(state, key))):
        return "its wait is still open"
    if running is not None:
        return None if running == attempt else f"attempt {running} is running, not {attempt}"
    status = state.status_of(plan, key)
    if status is Status.WAITING:
        return None
    return "its scope is not open" if status is None else f"it is {status.name.lower()}"


# --- snapshots ---


T = TypeVar("T")

DELETE_IT = "nothing is lost with it: stop the server and delete it with `weft gc --db FILE --snapshots`"


class _Rows(Readers):
    """Readers of one session, in the transaction of the caller. Nothing is waited for."""

    def __init__(self, db: Reading) -> None:
        self._db = db

    async def all(self, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        return self._db.rows(sql, values)


class _Journals:
    def __init__(self, rows: _Rows) -> None:
        self.read_events = partial(journal.read_events, rows)
        self.find_events = partial(journal.find_events, rows)
        self.get_blob = partial(contents.get_blob, rows)
        self.get_plan = partial(contents.get_plan, rows)


def run_of(db: Reading, run: str) -> RunRow | None:
    return _at_once(runs.get_run(_Rows(db), run))


def check_snapshot(db: Reading, run: RunRow, plan: Plan) -> Iterator[Finding]:
    """Check an open run whose journal folds. A snapshot that this version cannot use is not a finding."""
    rows = _Rows(db)
    found = _at_once(snapshots.get_snapshot(rows, run.id))
    if found is None:
        return
    if found.checksum != checksum_of(run.id, found):
        yield Finding("I12", "its snapshot does not match its checksum, and is not used", DELETE_IT, run.id)
    elif found.seq > run.seq:
        what = f"its snapshot is of event {found.seq}, the journal ends with event {run.seq}"
        yield Finding("I4", what, DELETE_IT, run.id)
    elif unfit(run, found) is None:
        folded = LoadedRun.empty(msgspec.structs.replace(run, seq=found.seq), plan, {})
        _at_once(replay(_Journals(rows), folded, found.seq))
        kind = differs(folded, found.data)
        if kind is not None:
            what = f"its snapshot is not what the journal says after event {found.seq} (first difference: {kind})"
            yield Finding("I4", what, DELETE_IT, run.id)


def _at_once(reading: Coroutine[Any, Any, T]) -> T:
    try:
        reading.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("it waits")
