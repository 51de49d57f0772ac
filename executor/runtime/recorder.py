"""Events and payloads together: keeps the values in step with the state, and collects what the next append writes.

The core decides without payloads; here each event meets the payload of the attempt it came from. The same bookkeeping
is used when events are made (`decide`) and when they are read back (`replay`), so that both give the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import orjson
from msgspec.structs import replace

from compiler.keys import NodeKey, parse_key, parse_wait
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
from executor.journal.codec import Codec
from executor.notifications import messages
from executor.runtime.attempt_log import Stream
from executor.runtime.attention import question
from executor.runtime.children import cancel_message, end_message
from executor.runtime.launch import Payload, Result
from executor.services import NotifySettings
from executor.store.rows import (
    Append,
    CacheRow,
    FamilyMax,
    NewRun,
    NotificationRow,
    Record,
    RunStatus,
    WaitRow,
    WaitUpdate,
)
from executor.values.fold import NULL, Fold
from executor.values.payload import encode as encode_payload
from executor.values.payload import split, trimmed


class Recorder:
    """Of one run while it is in memory. `token_hash` turns run, wait id and kind into the hash its link is
    found by. `parent`: the run that waits for this one, and the id of its wait; `root`: the topmost run above."""

    def __init__(
        self,
        *,
        run_id: str,
        epoch: int,
        plan: Plan,
        fold: Fold,
        codec: Codec,
        token_hash: Callable[[str, str, str], str],
        now_ms: Callable[[], int],
        notify: NotifySettings | None = None,
        parent: tuple[str, str] | None = None,
        root: str | None = None,
        family_max: FamilyMax | None = None,
    ) -> None:
        self._parent = parent
        self._root = root
        self._family_max = family_max or FamilyMax()
        self._run_id = run_id
        self._epoch = epoch
        self._plan = plan
        self._fold = fold
        self._codec = codec
        self._token_hash = token_hash
        self._notify = notify or NotifySettings()
        self._now_ms = now_ms
        self._reused: Mapping[int, bytes] = {}
        self._signal_names: dict[NodeKey, tuple[str, str | None]] = {}
        self._children: dict[NodeKey, str] = {}  # the run that an open wait waits for
        self._response: Mapping[str, Any] | None = None
        self._seq = 0
        self._at_ms = 0
        self._clear()

    def _clear(self) -> None:
        self._expected_seq = self._seq
        self._records: list[Record] = []
        self._waits: list[WaitRow] = []
        self._closed: list[WaitUpdate] = []
        self._blobs: list[tuple[str, bytes]] = []
        self._signals: list[tuple[int, str]] = []
        self._notifications: list[NotificationRow] = []
        self._new_children: list[NewRun] = []
        self._posts: list[tuple[str, bytes]] = []
        self._cancels: list[tuple[str, bytes]] = []
        self._new_bytes = 0
        self._cached: list[CacheRow] = []
        self._status: RunStatus | None = None
        self._output: bytes | None = None
        self._error: bytes | None = None

    def reuse(self, outputs: Mapping[int, bytes]) -> None:
        """Outputs of nodes taken over from another run, by node number."""
        self._reused = outputs

    @property
    def taken_seq(self) -> int:
        """Of the last event that an append has taken. The state may be ahead: a turn decides first, then it writes."""
        return self._expected_seq

    # --- forward ---

    def decide(self, plan: Plan, state: State, result: Result) -> list[Event]:
        """The core's answer to a result, already in the values and in the pending append."""
        fact, payload = result.fact, result.payload
        self._at_ms = max(self._at_ms, fact.at_ms)
        if payload.patches and _fresh(state, fact):
            try:
                patched = VariablesPatched(fact.key, payload.patches)  # type: ignore[union-attr]
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
            self._signals.append(payload.signal)  # a stale answer uses nothing up
        key = getattr(fact, "key", None)
        for event in events:
            if type(event) is NodeStarted:  # every second one: no payload, nothing for the values
                self._record(event)
                continue
            own = payload if key is not None and getattr(event, "key", None) == key else None
            self._take(event, own)
        return events

    def log(self, plan: Plan, state: State, key: NodeKey, attempt: int, message: str, stream: Stream) -> None:
        """What an attempt said, into the pending append; dropped when it is over."""
        if state.running.get(key) != attempt or state.phase is RunPhase.FINISHED:
            return
        self._at_ms = max(self._at_ms, self._now_ms())
        said = NodeLog(key, attempt, message, stream)
        evolve(plan, state, said)
        self._record(said)

    def take(self, state: State, consumed_inbox: tuple[int, ...]) -> Append | None:
        """What has to be written since the last call; None when there is nothing."""
        if not (self._records or consumed_inbox):
            return None
        append = Append(
            run_id=self._run_id,
            epoch=self._epoch,
            expected_seq=self._expected_seq,
            records=tuple(self._records),
            now_ms=self._now_ms(),
            waits=tuple(self._waits),
            closed_waits=tuple(self._closed),
            consumed_inbox=consumed_inbox,
            consumed_signals=tuple(self._signals),
            blobs=tuple(self._blobs),
            notifications=tuple(self._notifications),
            children=tuple(self._new_children),
            posts=tuple(self._posts),
            cancels=tuple(self._cancels),
            root=self._root,
            output_bytes=self._new_bytes if self._root is not None else 0,
            family_max=self._family_max,
            cached=tuple(self._cached),
            status=self._status,
            output=self._output,
            error=self._error,
            finished=self._status is not None,
        )
        assert self._seq == state.seq, "every event has its record"
        self._clear()
        return append

    def _take(self, event: Event, payload: Payload | None) -> None:
        output: bytes | None = None
        extra: dict[str, Any] | None = None
        match event:
            case NodeSucceeded():
                output = (payload.output if payload else self._reused.get(event.key[1])) or NULL
                if event.end_run and payload is not None:
                    self._response = payload.response
                if payload is not None and payload.cached is not None:
                    self._cached.append(payload.cached)
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
                wait_id = self.wait_id(event.key, event.attempt)
                child = self._children.pop(event.key, None)
                if child is not None and (payload is None or payload.child != child):
                    self._cancels.append((child, cancel_message(self._run_id)))
                if event.outcome in ("cancelled", "expired"):
                    self._closed.append(WaitUpdate(wait_id, event.outcome, at_ms=self._at_ms))
                else:
                    response = payload.output if payload and child is None else None  # a child's is in its own run
                    self._closed.append(WaitUpdate(wait_id, "answered", response, event.by, self._at_ms))
            case RunFinished():
                output, extra = self._finished(event)
        self._record(event, self._fold.apply(event, output), extra)

    def _record(self, event: Event, output: bytes | None = None, extra: dict[str, Any] | None = None) -> None:
        self._seq += 1
        if output is not None:
            if type(event) is not RunFinished:
                self._new_bytes += len(output)
            inline, blob = split(output)
            if blob is not None:
                self._blobs.append((blob, output))
                extra = {**(extra or {}), "blob": blob, "size": len(output)}
                output = inline
        self._records.append(self._codec.to_record(self._seq, self._at_ms, event, output, extra))

    def _wait_opened(self, event: WaitOpened, suspend: Suspend) -> dict[str, Any]:
        wait_id = self.wait_id(event.key, event.attempt)
        schema = dict(suspend.schema) if suspend.schema is not None else None
        request = {**suspend.request, "actions": list(suspend.actions)}
        self._waits.append(
            WaitRow(
                run_id=self._run_id,
                id=wait_id,
                node=self._plan.nodes[event.key[1]].id,
                path=self._codec.path_text(event.key[0]),
                kind=event.kind,
                token_hash=self._token_hash(self._run_id, wait_id, event.kind),
                request=trimmed(orjson.dumps(request)),
                schema=None if schema is None else trimmed(orjson.dumps(schema)),
                status="pending",
                opened_at_ms=self._at_ms,
                expires_at_ms=event.due_ms,
                on_expire=event.on_expire,
                name=suspend.name,
                correlation=suspend.correlation,
            )
        )
        self._notifications += messages.rows(self._waits[-1], suspend.messages, self._notify)
        extra: dict[str, Any] = {"wait": wait_id}
        if suspend.child is not None:
            extra["child"] = suspend.child.id
            self._children[event.key] = suspend.child.id
            self._begin_family()
            self._new_children.append(
                replace(suspend.child, parent_run_id=self._run_id, parent_key=wait_id, now_ms=self._at_ms)
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
            self._root = self._run_id
            self._new_bytes = self._fold.bytes

    def _finished(self, event: RunFinished) -> tuple[bytes | None, dict[str, Any] | None]:
        self._status = event.status
        extra: dict[str, Any] | None = None
        if event.status != "succeeded":
            self._error = None if event.error is None else msgspec.json.encode(event.error)
        elif self._response is not None:
            self._output = encode_payload(self._response["body"])
            extra = {"response": dict(self._response)}
        else:
            self._output = self._fold.run_output()
        if self._parent is not None:
            run, wait = self._parent
            self._posts.append((run, end_message(wait, self._run_id, event.status, self._output, event.error)))
        return self._output, extra

    # --- replay ---

    def replay(self, event: Event, record: Record) -> None:
        """An event that is stored: what later events and appends need to know of it."""
        self._seq = self._expected_seq = record.seq
        self._at_ms = max(self._at_ms, record.at_ms)
        match event:
            case WaitOpened() if event.kind == "signal":
                data = orjson.loads(record.data or b"{}")
                self._signal_names[event.key] = (data["name"], data.get("correlation"))
            case WaitOpened() if event.kind == "child":
                self._children[event.key] = orjson.loads(record.data or b"{}")["child"]
                self._root = self._root or self._run_id
            case WaitClosed():
                self._children.pop(event.key, None)

    # --- waits ---

    def wait_id(self, key: NodeKey, attempt: int) -> str:
        """Unique per run and opening."""
        return self._codec.wait_id(key, attempt)

    def key_of_wait(self, wait_id: str) -> NodeKey | None:
        try:
            return parse_key(self._plan, parse_wait(wait_id)[0])
        except ValueError:
            return None

    def signal_waits(self, state: State) -> list[tuple[NodeKey, str, str | None]]:
        """Open signal waits with name and correlation, oldest first."""
        return [(key, *self._signal_names[key]) for key, wait in state.waits.items() if wait.kind == "signal"]

    def assigned(self, key: NodeKey, output: Any) -> list[list[Any]]:
        """The patch that `assign` of this node makes, if it has one."""
        path = self._plan.nodes[key[1]].policy.assign
        return [["set", path, output]] if path else []


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
