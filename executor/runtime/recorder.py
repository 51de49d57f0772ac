"""From results to appends: the core decides, the values follow, and everything that must be written is collected here.

The core decides without payloads; here each event meets the payload of the attempt it came from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import orjson
from msgspec.structs import replace

from compiler.keys import NodeKey
from compiler.plan import Plan
from executor.blocks.base import Suspend
from executor.core import facts as f
from executor.core.decide import decide
from executor.core.events import (
    ErrorInfo,
    Event,
    NodeLog,
    NodeStarted,
    NodeSucceeded,
    RegionExited,
    RegionSized,
    RunFinished,
    VariablesPatched,
    WaitClosed,
    WaitOpened,
)
from executor.core.evolve import evolve
from executor.core.state import RunPhase, State
from executor.errors import BlockError
from executor.journal.codec import data_of
from executor.runtime.answers import ASK_PEOPLE
from executor.runtime.attempt_log import Stream
from executor.runtime.attention import question
from executor.runtime.children import cancel_message, end_message
from executor.runtime.loaded import LoadedRun
from executor.runtime.parts import Parts
from executor.runtime.results import Payload, Result
from executor.services import NotifySettings
from executor.store.rows import (
    Append,
    CacheRow,
    NewRun,
    NotificationRow,
    Record,
    RunStatus,
    WaitRow,
    WaitUpdate,
)
from executor.values.fold import NULL
from executor.values.payload import encode as encode_payload
from executor.values.payload import split, trimmed

# Sealed JSON: the addresses are those of the server, as they are when the message goes out.
SERVER_WIDE: Final = orjson.dumps(['{"server":true}'])


@dataclass(slots=True)
class _More:
    """What an append writes beside its events, as `Append` names it. Most write nothing."""

    waits: list[WaitRow] = field(default_factory=list)
    closed_waits: list[WaitUpdate] = field(default_factory=list)
    consumed_signals: list[tuple[int, str]] = field(default_factory=list)
    blobs: list[tuple[str, bytes]] = field(default_factory=list)
    notifications: list[NotificationRow] = field(default_factory=list)
    children: list[NewRun] = field(default_factory=list)
    posts: list[tuple[str, bytes]] = field(default_factory=list)
    cancels: list[tuple[str, bytes]] = field(default_factory=list)
    cached: list[CacheRow] = field(default_factory=list)
    status: RunStatus | None = None
    output: bytes | None = None
    error: bytes | None = None


class Recorder:
    """Of one run while it is in memory."""

    def __init__(self, run: LoadedRun, parts: Parts) -> None:
        self._run = run
        self._parts = parts
        self._now_ms = parts.clock.now_ms
        self._plan = run.plan
        self._codec = run.codec
        self._state = run.state
        self._fold = run.fold
        self._root = run.row.root_id  # the topmost run above, or this one once it has children
        self._reused: Mapping[int, bytes] = {}
        self._signal_names: dict[NodeKey, tuple[str, str | None]] = {}
        self._children: dict[NodeKey, str] = {}  # the run that an open wait waits for
        self._response: Mapping[str, Any] | None = None
        self._seq = self._expected_seq = 0
        self._at_ms = 0
        # For the next append.
        self._records: list[Record] = []
        self._output_bytes = 0
        self._more: _More | None = None

    @property
    def appended_seq(self) -> int:
        """Of the last event in an append. The state may be ahead: a turn decides first, then it writes."""
        return self._expected_seq

    # --- replay ---

    def replay(self, event: Event, record: Record) -> None:
        """An event that is stored: what later events and appends need to know of it."""
        self._seq = self._expected_seq = record.seq
        self._at_ms = max(self._at_ms, record.at_ms)
        match event:
            case WaitOpened() if event.kind == "signal":
                data = data_of(record)
                self._signal_names[event.key] = (data["name"], data.get("correlation"))
            case WaitOpened() if event.kind == "child":
                self._children[event.key] = data_of(record)["child"]
                self._root = self._root or self._run.id
            case WaitClosed():
                self._children.pop(event.key, None)

    def reuse(self, outputs: Mapping[int, bytes]) -> None:
        """Outputs of nodes that are reused from another run, by node number."""
        self._reused = outputs

    # --- forward ---

    def decide(self, plan: Plan, result: Result) -> list[Event]:
        """The events that follow from a result; they are in the state, the values and the next append then. `plan`: to
        decide by."""
        state = self._state
        fact, payload = result.fact, result.payload
        self._at_ms = max(self._at_ms, fact.at_ms)
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
                self._record(event)
                continue
            own = payload if key is not None and getattr(event, "key", None) == key else None
            self._record_with(event, own)
        return events

    def log(self, key: NodeKey, attempt: int, message: str, stream: Stream) -> None:
        """What an attempt logged, into the next append; dropped when the attempt has ended."""
        state = self._state
        if state.running.get(key) != attempt or state.phase is RunPhase.FINISHED:
            return
        self._at_ms = max(self._at_ms, self._now_ms())
        logged = NodeLog(key, attempt, message, stream)
        evolve(self._plan, state, logged)
        self._record(logged)

    def pop_append(self, consumed_inbox: tuple[int, ...]) -> Append | None:
        """What has to be written since the last call; None when there is nothing."""
        records, more = self._records, self._more
        if not (records or consumed_inbox):
            return None
        assert self._seq == self._state.seq, "every event has its record"
        append = Append(
            self._run.id,
            self._run.row.epoch,
            self._expected_seq,
            tuple(records),
            self._now_ms(),
            consumed_inbox=consumed_inbox,
            root=self._root,
            output_bytes=self._output_bytes if self._root is not None else 0,
        )
        if more is not None:
            append = replace(
                append,
                waits=tuple(more.waits),
                closed_waits=tuple(more.closed_waits),
                consumed_signals=tuple(more.consumed_signals),
                blobs=tuple(more.blobs),
                notifications=tuple(more.notifications),
                children=tuple(more.children),
                posts=tuple(more.posts),
                cancels=tuple(more.cancels),
                family_max=self._parts.services.limits.family,
                cached=tuple(more.cached),
                status=more.status,
                output=more.output,
                error=more.error,
                finished=more.status is not None,
            )
        self._records, self._output_bytes, self._more = [], 0, None
        self._expected_seq = self._seq
        return append

    @property
    def _beside(self) -> _More:
        """What the next append writes beside its events."""
        if self._more is None:
            self._more = _More()
        return self._more

    def _record_with(self, event: Event, payload: Payload | None) -> None:
        output: bytes | None = None
        extra: dict[str, Any] | None = None
        match event:
            case NodeSucceeded():
                output = (payload.output if payload else self._reused.get(event.key[1])) or NULL
                if event.end_run and payload is not None:
                    self._response = payload.response
                if payload is not None and payload.cached is not None:
                    self._beside.cached.append(payload.cached)
            case RegionSized():
                output = payload.output if payload else None
            case RegionExited() if event.reused:
                output = self._reused.get(event.key[1], NULL)
            case WaitOpened():
                suspend = payload.suspend if payload is not None else None
                if event.kind == "attention":  # asked by the core, not by a handler
                    suspend = question(self._plan.nodes[event.key[1]], event.attempt)
                assert suspend is not None
                extra = self._wait_opened(event, suspend)
            case WaitClosed():
                # Answers and expiries are in the row since their message was posted; timers, cancels, and the end of a
                # wait for a signal are written here.
                wait_id = self._codec.wait_id(event.key, event.attempt)
                child = self._children.pop(event.key, None)
                if child is not None and (payload is None or payload.child != child):
                    self._beside.cancels.append((child, cancel_message(self._run.id)))
                if event.outcome in ("cancelled", "expired"):
                    self._beside.closed_waits.append(WaitUpdate(wait_id, event.outcome, at_ms=self._at_ms))
                else:
                    response = payload.output if payload and child is None else None  # a child's is in its own run
                    self._beside.closed_waits.append(WaitUpdate(wait_id, "answered", response, event.by, self._at_ms))
            case RunFinished():
                output, extra = self._finished(event)
        self._record(event, self._fold.apply(event, output), extra)

    def _record(self, event: Event, output: bytes | None = None, extra: dict[str, Any] | None = None) -> None:
        self._seq += 1
        if output is not None:
            if type(event) is not RunFinished:
                self._output_bytes += len(output)
            inline, blob = split(output)
            if blob is not None:
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
        self._beside.notifications += notifications_of(row, suspend.messages, self._parts.services.notify)
        extra: dict[str, Any] = {"wait": wait_id}
        if suspend.child is not None:
            extra["child"] = suspend.child.id
            self._children[event.key] = suspend.child.id
            self._begin_family()
            self._beside.children.append(
                replace(suspend.child, parent_run_id=self._run.id, parent_key=wait_id, now_ms=self._at_ms)
            )
        if suspend.name is not None:
            extra |= {"name": suspend.name, "correlation": suspend.correlation}
            self._signal_names[event.key] = (suspend.name, suspend.correlation)
        if "title" in suspend.request:
            extra["title"] = suspend.request["title"]
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
        elif self._response is not None:
            more.output = encode_payload(self._response["body"])
            extra = {"response": dict(self._response)}
        else:
            more.output = self._fold.run_output()
        if row.parent_run_id and row.parent_key:
            ended = end_message(row.parent_key, row.id, event.status, more.output, event.error)
            more.posts.append((row.parent_run_id, ended))
        return more.output, extra

    # --- waits ---

    def signal_waits(self) -> list[tuple[NodeKey, str, str | None]]:
        """Open signal waits with name and correlation, oldest first."""
        return [(key, *self._signal_names[key]) for key, wait in self._state.waits.items() if wait.kind == "signal"]


def _fresh(state: State, fact: f.Fact) -> bool:
    match fact:
        case f.NodeDone():
            return state.running.get(fact.key) == fact.attempt
        case f.WaitAnswered():
            wait = state.waits.get(fact.key)
            return wait is not None and wait.attempt == fact.attempt
        case f.TimerFired():
            wait = state.waits.get(fact.key)
            due_ms = None if wait is None or wait.attempt != fact.attempt else wait.due_ms
            return due_ms is not None and due_ms <= fact.at_ms
        case _:
            return False


def notifications_of(wait: WaitRow, own: Sequence[tuple[str, bytes]], server: NotifySettings) -> list[NotificationRow]:
    """The outbox of a wait that opens: (channel, sealed target) of its block, then the server's own addresses.

    A row holds no text and no link: both are made when `executor.notifications` sends it."""
    asked = list(own)
    if wait.kind in ASK_PEOPLE:
        asked += [("email", SERVER_WIDE)] if server.email else []
        asked += [("webhook", SERVER_WIDE)] if server.webhook else []
    return [
        NotificationRow(wait.run_id, wait.id, n, channel, content, "pending", 0, wait.opened_at_ms, wait.opened_at_ms)
        for n, (channel, content) in enumerate(asked, 1)
    ]
