"""From results to appends: the core decides, the values follow, and everything that must be written is collected here.

The core decides without payloads; here each event meets the payload of the attempt it came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec
import orjson
from msgspec import Struct
from msgspec.structs import asdict, replace

from compiler.keys import NodeKey
from compiler.plan import Plan
from executor.errors import BlockError
from executor.kernel.core import facts as f
from executor.kernel.core.aborts import awaits_children
from executor.kernel.core.decide import decide
from executor.kernel.core.events import (
    ErrorInfo,
    Event,
    NodeLog,
    NodeStarted,
    NodeSucceeded,
    RegionExited,
    RegionSized,
    RunCancelling,
    RunFinished,
    StepFinished,
    StepRetrying,
    StepStarted,
    VariablesPatched,
    WaitClosed,
    WaitOpened,
)
from executor.kernel.core.evolve import evolve
from executor.kernel.core.state import RunPhase, State
from executor.kernel.handler.base import Suspend
from executor.kernel.run.alerts import alerts_of_failure, alerts_of_wait, notifications_of
from executor.kernel.run.attention import question
from executor.kernel.run.children import begun_at, cancel_message, end_message
from executor.kernel.run.loaded import LoadedRun, WaitKey
from executor.kernel.run.meters import now_s, usage_row
from executor.kernel.run.parts import Parts
from executor.kernel.run.results import Payload, Result, StepNote, Stored, Stream
from executor.kernel.run.step_work import shown_of
from executor.kernel.store.formats import needed
from executor.kernel.store.run_rows import Append, NewRun, Record
from executor.kernel.store.statements import RunStatus
from executor.kernel.store.topics.alerts import AlertRow
from executor.kernel.store.topics.cache import CacheRow
from executor.kernel.store.topics.outbox import NotificationRow
from executor.kernel.store.topics.usage import UsageRow
from executor.kernel.store.topics.waits import WaitRow, WaitUpdate
from executor.kernel.values.fold import NULL
from executor.kernel.values.payload import INLINE_MAX_BYTES, split, trimmed
from executor.kernel.values.payload import encode as encode_payload


class _More(Struct):
    """The rows that an append writes beside its events, as `Append` names them. Most appends write none."""

    waits: list[WaitRow] = []
    closed_waits: list[WaitUpdate] = []
    consumed_signals: list[tuple[int, str]] = []
    blobs: list[tuple[str, bytes]] = []
    notifications: list[NotificationRow] = []
    children: list[NewRun] = []
    reopens_family: bool = False
    posts: list[tuple[str, bytes]] = []
    cancels: list[tuple[str, bytes]] = []
    cached: list[CacheRow] = []
    usage: list[UsageRow] = []
    alerts: list[AlertRow] = []
    next: NewRun | None = None
    places: list[tuple[str, int]] | None = None
    status: RunStatus | None = None
    output: bytes | None = None
    error: bytes | None = None


class _Held(NamedTuple):
    """The first records of the next append, the bytes of their outputs, and the family they count for."""

    records: int = 0
    output_bytes: int = 0
    root: str | None = None


_NOTHING_HELD: Final = _Held()


class Recorder:
    def __init__(self, run: LoadedRun, parts: Parts) -> None:
        self._run = run
        self._parts = parts
        self._clock = parts.clock
        self._plan = run.plan
        self._codec = run.codec
        self._state = run.state
        self._fold = run.fold
        self._root = run.row.root_id  # the topmost run above, or this one once it has children
        self._notes = run.notes
        self._response: Mapping[str, Any] | None = None
        self._next: NewRun | None = None
        self._seq = self._expected_seq = 0
        self._at_ms = 0
        # For the next append.
        self._records: list[Record] = []
        self._output_bytes = 0
        self._needed = 0  # format, of what it has written
        self._step_began: dict[tuple[NodeKey, int], tuple[str, float]] = {}
        self._more: _More | None = None
        self._held = self._popped_held = _NOTHING_HELD

    @property
    def at_ms(self) -> int:
        """Return the time of the last event."""
        return self._at_ms

    @property
    def appended_seq(self) -> int:
        """Return the seq of the last event in an append. The state may be ahead: a turn decides first, then it
        writes."""
        return self._expected_seq

    def stand_at(self, seq: int, at_ms: int) -> None:
        """Number and time of the last event that is stored. The run has all of them."""
        self._seq = self._expected_seq = seq
        self._at_ms = at_ms
        if self._notes.is_parent:
            self._root = self._root or self._run.id

    def continue_with(self, new: NewRun) -> None:
        """Set the run that continues this one; the journal already records that there is one."""
        self._next = new

    # --- forward ---

    def decide(self, plan: Plan, result: Result) -> list[Event]:
        """Return the events that follow from a result; they are in the state, the values and the next append then.
        `plan` is the plan to decide by."""
        state = self._state
        fact, payload = result.fact, result.payload
        if fact.at_ms > self._at_ms:
            self._at_ms = fact.at_ms
        if result.place is not None:
            self.leave_places((result.place.node, result.place.attempt))
        if payload.patches and _fresh(state, fact):
            try:
                patched = VariablesPatched(fact.key, payload.patches)  # type: ignore[union-attr]  # with patches it names a node
                self._fold.apply(patched)
            except BlockError as error:
                assert isinstance(fact, f.NodeDone | f.WaitAnswered | f.TimerFired)
                info = ErrorInfo(error.code, error.message, False, plan.nodes[fact.key[1]].block, error.hint)
                payload = Payload(signal=payload.signal, child=payload.child)  # an answer is used up all the same
                match fact:
                    case f.NodeDone():
                        fact = f.NodeErred(fact.at_ms, fact.key, fact.attempt, info)
                    case f.WaitAnswered():
                        fact = f.WaitFailed(fact.at_ms, fact.key, fact.attempt, info, fact.by)
                    case f.TimerFired():
                        fact = f.TimerFired(fact.at_ms, fact.key, fact.attempt, info)
            else:
                evolve(plan, state, patched)
                self._record(patched)
        events = decide(plan, state, fact)
        if events and payload.signal is not None:
            self._beside.consumed_signals.append(payload.signal)  # a stale answer uses nothing up
        key = getattr(fact, "key", None)
        for event in events:
            if type(event) is NodeStarted:  # every second one: no payload, nothing for the values
                self._seq += 1
                self._records.append(self._codec.started(self._seq, self._at_ms, event))
                continue
            own = payload if key is not None and getattr(event, "key", None) == key else None
            self._record_with(event, own)
        return events

    def leave_places(self, *places: tuple[str, int]) -> None:
        """Leave places with the next append: these (node key and attempt), and those of older leases."""
        self._beside.places = [*(self._beside.places or ()), *places]

    def log(self, key: NodeKey, attempt: int, message: str, stream: Stream) -> None:
        """Record a log line of an attempt in the next append. Dropped if the attempt has ended."""
        state = self._state
        if state.running.get(key) != attempt or state.phase is RunPhase.FINISHED:
            return
        self._at_ms = max(self._at_ms, self._clock.now_ms())
        logged = NodeLog(key, attempt, message, stream)
        evolve(self._plan, state, logged)
        self._record(logged)

    def step(self, key: NodeKey, attempt: int, note: StepNote) -> None:
        """Record an event of a step in the next append; refused if the attempt has ended."""
        state = self._state
        if state.running.get(key) != attempt or state.phase is RunPhase.FINISHED:
            note.refuse()
            return
        self._at_ms = max(self._at_ms, self._clock.now_ms())
        event = replace(note.event, key=key)
        evolve(self._plan, state, event)
        self._record(event, self._fold.apply(event, note.output))
        note.place = Stored(self._seq, self._at_ms)
        if isinstance(event, StepStarted | StepRetrying | StepFinished):
            self._count_step(event)
        if note.cached is not None:
            self._beside.cached.append(note.cached)
        if type(event) is StepFinished and (event.usage or event.cost is not None):
            name = state.tries[key].by_n[event.n].name
            row = self._run.row
            self._beside.usage.append(usage_row(row.id, row.workflow, name, event, self._at_ms))

    def take_step(self, event: StepStarted | StepFinished, output: bytes | None) -> None:
        """Record an event of a step that another run has done, and paid."""
        evolve(self._plan, self._state, event)
        self._record(event, self._fold.apply(event, output))

    def _count_step(self, event: StepStarted | StepRetrying | StepFinished) -> None:
        """One that another process began has no time that this one knows."""
        place = (event.key, event.n)
        if type(event) is StepStarted:
            self._step_began[place] = (event.kind, now_s())
        elif (began := self._step_began.pop(place, None)) is not None:
            kind, began_s = began
            failed = "retried" if type(event) is StepRetrying else "failed"
            outcome = "succeeded" if event.error is None else failed  # type: ignore[union-attr]  # it has ended
            self._parts.meters.step_ended(kind, outcome, now_s() - began_s)

    @property
    def has_only_events(self) -> bool:
        """Returns True if the next append writes nothing beside its events, as far as is known now."""
        return self._more is None

    def hold(self) -> None:
        """Mark what was decided so far as having had its effects: see `only_held`."""
        self._held = _Held(len(self._records), self._output_bytes if self._root is not None else 0, self._root)

    def only_held(self, append: Append) -> Append | None:
        """Return the part of the last append that was held before, or None. It has only events."""
        held = self._popped_held
        if not held.records:
            return None
        return Append(
            append.run_id,
            append.epoch,
            append.expected_seq,
            append.records[: held.records],
            append.now_ms,
            root=held.root,
            output_bytes=held.output_bytes,
        )

    def pop_append(self, consumed_inbox: tuple[int, ...]) -> Append | None:
        records, more = self._records, self._more
        if not (records or consumed_inbox or (more is not None and more.places is not None)):
            return None
        assert self._seq == self._state.seq, "every event has its record"
        row = self._run.row
        append = Append(
            row.id, row.epoch, self._expected_seq, tuple(records), self._clock.now_ms(), needed=self._needed
        )
        self._needed = max(self._needed, needed(records))  # the next append is made when this one is on disk
        if consumed_inbox or self._root is not None:
            bytes = self._output_bytes if self._root is not None else 0
            append = replace(append, consumed_inbox=consumed_inbox, root=self._root, output_bytes=bytes)
        if more is not None:
            rows = {name: tuple(one) if isinstance(one, list) else one for name, one in asdict(more).items()}
            family = self._parts.services.limits.family
            append = replace(append, **rows, family_max=family, finished=more.status is not None)
        self._records, self._output_bytes, self._more = [], 0, None
        self._popped_held, self._held = self._held, _NOTHING_HELD
        self._expected_seq = self._seq
        return append

    @property
    def _beside(self) -> _More:
        if self._more is None:
            self._more = _More()
        return self._more

    def _record_with(self, event: Event, payload: Payload | None) -> None:
        output: bytes | None = None
        extra: dict[str, Any] | None = None
        match event:
            case NodeSucceeded():
                output = (payload.output if payload else self._notes.reused.get(event.key[1])) or NULL
                if event.end_run:
                    self._notes.response = output
                    self._response = payload.response if payload is not None else None
                    self._next = payload.next if payload is not None else None
                    self._notes.continues = self._next is not None
                if payload is not None and payload.cached is not None:
                    self._beside.cached.append(payload.cached)
            case StepFinished() if event.error is None:
                output = (payload.output if payload is not None else None) or NULL
            case RegionSized():
                output = payload.output if payload else None
            case RegionExited() if event.reused:
                output = self._notes.reused.get(event.key[1], NULL)
            case WaitOpened():
                suspend = payload.suspends.get(event.step) if payload is not None else None
                if suspend is None and event.kind == "attention":  # asked by the core, not by a handler
                    suspend = question(self._plan.nodes[event.key[1]], event.attempt)
                assert suspend is not None
                extra = self._wait_opened(event, suspend)
            case WaitClosed():
                # Answers and expiries are in the row since their message was posted; timers, cancels, and the end of a
                # wait for a signal are written here.
                wait_id = self._codec.wait_id(event.key, event.attempt)
                child = self._notes.closed((event.key, event.attempt))
                if child is not None and (payload is None or payload.child != child):
                    self._beside.cancels.append((child, cancel_message(self._run.id)))
                if event.outcome in ("cancelled", "expired"):
                    self._beside.closed_waits.append(WaitUpdate(wait_id, event.outcome, at_ms=self._at_ms))
                else:
                    response = payload.output if payload and child is None else None  # a child's is in its own run
                    self._beside.closed_waits.append(WaitUpdate(wait_id, "answered", response, event.by, self._at_ms))
            case RunCancelling():
                awaited = [at for at in self._notes.children if awaits_children(self._plan, self._run.state, at[0])]
                for at in awaited:
                    self._beside.cancels.append((self._notes.children[at], cancel_message(self._run.id)))
            case RunFinished():
                output, extra = self._finished(event)
                if self._plan.has_limits:
                    self.leave_places()  # attempts may be under way, when a response ends the run
        self._record(event, self._fold.apply(event, output), extra)

    def _record(self, event: Event, output: bytes | None = None, extra: dict[str, Any] | None = None) -> None:
        self._seq += 1
        if output is not None:
            if type(event) is not RunFinished:
                self._output_bytes += len(output)
            if len(output) > INLINE_MAX_BYTES:
                inline, blob = split(output)
                assert blob is not None
                self._beside.blobs.append((blob, output))
                extra = {**(extra or {}), "blob": blob, "size": len(output)}
                output = inline
        self._records.append(self._codec.to_record(self._seq, self._at_ms, event, output, extra))

    def _wait_opened(self, event: WaitOpened, suspend: Suspend) -> dict[str, Any]:
        wait_id = self._codec.wait_id(event.key, event.attempt)
        schema = dict(suspend.schema) if suspend.schema is not None else None
        request = {**suspend.request, "actions": list(suspend.actions)}
        row = WaitRow(
            run_id=self._run.id,
            id=wait_id,
            node=self._plan.nodes[event.key[1]].id,
            path=self._codec.path_text(event.key[0]),
            kind=event.kind,
            token_hash=self._parts.links.hash_of(self._run.id, wait_id, event.kind),
            request=trimmed(orjson.dumps(request)),
            schema=None if schema is None else trimmed(orjson.dumps(schema)),
            status="pending",
            opened_at_ms=self._at_ms,
            expires_at_ms=event.due_ms,
            on_expire=event.on_expire,
            name=suspend.name,
            correlation=suspend.correlation,
        )
        self._beside.waits.append(row)
        alerts = self._parts.services.alerts
        self._beside.alerts += alerts_of_wait(self._run.row, row, self._plan.settings, alerts)
        server, remind_ms = self._parts.services.notify, suspend.remind_ms
        notifications = notifications_of(row, suspend.messages, server, remind_ms)
        self._beside.notifications += notifications
        extra: dict[str, Any] = {"wait": wait_id}
        if remind_ms is not None and notifications:
            extra["remind_ms"] = notifications[-1].due_at_ms
        if suspend.child is not None:
            extra["child"] = suspend.child.id
            self._notes.children[event.key, event.attempt] = suspend.child.id
            self._notes.is_parent = True
            self._begin_family()
            self._beside.reopens_family |= self._state.cancelled
            self._beside.children.append(
                replace(suspend.child, parent_run_id=self._run.id, parent_key=wait_id, now_ms=self._at_ms)
            )
        if suspend.name is not None:
            extra |= {"name": suspend.name, "correlation": suspend.correlation}
            self._notes.signal_names[event.key, event.attempt] = (suspend.name, suspend.correlation)
        if "title" in suspend.request:
            extra["title"] = suspend.request["title"]
        if "show" in suspend.request:
            extra["show"] = shown_of(orjson.dumps(suspend.request["show"]))
        return extra

    def _begin_family(self) -> None:
        """With its first child: all that it has put out so far counts."""
        if self._root is None:
            self._root = self._run.id
            self._output_bytes = self._fold.bytes

    def _finished(self, event: RunFinished) -> tuple[bytes | None, dict[str, Any] | None]:
        more, row = self._beside, self._run.row
        more.status = event.status
        extra: dict[str, Any] | None = None
        if event.status != "succeeded":
            more.error = None if event.error is None else msgspec.json.encode(event.error)
            if event.status == "failed":
                more.alerts += alerts_of_failure(row, self._plan.settings, self._parts.services.alerts, self._at_ms)
        elif self._notes.continues:
            assert self._next is not None, "who folds a run that is to be continued has its next run made"
            more.next = begun_at(self._next, row, self._at_ms)
            more.output, extra = NULL, {"continued_as": more.next.id}
        elif (response := self._response or self._recorded_response()) is not None:
            more.output = encode_payload(response["body"])
            extra = {"response": dict(response)}
        else:
            more.output = self._fold.run_output()
        if row.parent_run_id and row.parent_key:
            ended = end_message(row.parent_key, row.id, event.status, more.output, event.error)
            more.posts.append((row.parent_run_id, ended))
        return more.output, extra

    def _recorded_response(self) -> Mapping[str, Any] | None:
        """Return the response of a run that was recovered while its cleanups ran, from the output of the block that
        ended it."""
        if self._notes.response is None or self._state.ending is None:
            return None
        output = orjson.loads(self._notes.response)
        if not isinstance(output, dict) or not {"status", "headers", "data"} <= output.keys():
            return None  # of a block of another package: only its output is known
        return {"status": output["status"], "headers": output["headers"], "body": output["data"]}

    # --- waits ---

    def signal_waits(self) -> list[tuple[WaitKey, str, str | None]]:
        names = self._notes.signal_names
        return [
            ((key, wait.attempt), *names[key, wait.attempt])
            for key, wait in self._state.open_waits()
            if wait.kind == "signal"
        ]


def _fresh(state: State, fact: f.Fact) -> bool:
    match fact:
        case f.NodeDone():
            return state.running.get(fact.key) == fact.attempt
        case f.WaitAnswered():
            return state.wait_of(fact.key, fact.attempt) is not None
        case f.TimerFired():
            wait = state.wait_of(fact.key, fact.attempt)
            due_ms = None if wait is None else wait.due_ms
            return due_ms is not None and due_ms <= fact.at_ms
        case _:
            return False
