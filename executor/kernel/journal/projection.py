"""The meaning of events for people: the status, attempts, route and times of each node key, its steps, and the status
of the run.

This is the only meaning. Views, comparison, the doctor, the command line and the question why all read it from here;
the editor has the same fold in TypeScript (`web/src/run/fold.ts` and `steps.ts`), and both are tested against the
streams in `tests/vectors`. What runs next is decided by `executor.kernel.core.evolve`.

A new event type that only informs (`events.TELLS_ONLY`) needs nothing here. One that changes a node has a line in
`meaning`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import orjson
from msgspec import Struct, field

from executor.kernel.core.events import LOST, TELLS_ONLY
from executor.kernel.journal.codec import data_of
from executor.kernel.journal.steps import OF_STEPS, NodeSteps
from executor.kernel.store.run_rows import Record
from executor.kernel.values import variables as paths

Status = Literal[
    "running", "retrying", "waiting", "needs_attention", "succeeded", "failed", "skipped", "cancelled"
]  # fmt: skip
OPEN: frozenset[str] = frozenset({"running", "retrying", "waiting", "needs_attention"})
# They do not show where a run went: only how often it slept, what was logged, where it came from.
ASIDE = frozenset({"run.parked", "retry.hastened"} | {str(cls.__struct_config__.tag) for cls in TELLS_ONLY})

# The events that have what was put out: of a block, and of the end of a container.
BLOCK_OUTPUT, CONTAINER_OUTPUT = "node.succeeded", "region.exited"

_OF_WAITS: Final = frozenset({"wait.opened", "wait.closed", "step.finished"})

Data = Mapping[str, Any]


class Entry(Struct, frozen=True, gc=False):
    """One event as it is read: of a record, or as a client received it."""

    seq: int
    at_ms: int
    type: str
    node: str | None
    path: str
    attempt: int
    data: Data

    @classmethod
    def of(cls, record: Record) -> Entry:
        return cls(record.seq, record.at_ms, record.type, record.node, record.path, record.attempt, data_of(record))


# --- one event ---


class Meaning(Struct, frozen=True):
    """The effect of an event on its node. If `decides`, the node's edges of handle `route` are live, all others are
    dead."""

    status: Status
    decides: bool = False
    route: str | None = None

    @property
    def leads_on(self) -> bool:
        """Returns True for a decided node if it did something, or what follows it may run."""
        return self.status == "succeeded" or self.route is not None


def meaning(type: str, data: Data) -> Meaning | None:
    """Return the effect of an event on its node, or None if it changes nothing."""
    match type:
        case "node.started":
            return _RUNNING
        case "node.succeeded":
            return Meaning("succeeded", True, data.get("route", "out")) if data else _SUCCEEDED
        case "region.sized" | "region.exited":
            return _SUCCEEDED
        case "node.failed":  # the journal has one type for both: an attempt that was stopped with its run did not fail
            route = data.get("route")
            stopped = data["error"]["code"] == "cancelled" and route is None
            return Meaning("cancelled" if stopped else "failed", True, route)
        case "node.skipped":  # passed over: its output is null, and what follows it runs
            return Meaning("skipped", True, None if data["reason"] == "pruned" else "out")
        case "retry.scheduled":
            return Meaning("retrying")
        case "wait.opened":
            return Meaning("needs_attention" if data["kind"] == "attention" else "waiting")
        case "node.left":
            return Meaning("waiting")
        case "wait.closed":
            if data.get("left"):
                return Meaning("waiting")  # for others
            return Meaning("cancelled") if data["outcome"] == "cancelled" else _RUNNING
        case _:
            return None


_RUNNING = Meaning("running")
_SUCCEEDED = Meaning("succeeded", True, "out")


def decision(type: str, data: Data) -> Meaning | None:
    found = meaning(type, data)
    return found if found is not None and found.decides else None


# --- one node key ---


class Attempt(Struct, gc=False):
    """One attempt of a node key, or (end of a loop) one of its tests. Without an end it has none yet."""

    attempt: int
    status: Status = "running"
    started_seq: int | None = None
    started_at_ms: int | None = None
    finished_seq: int | None = None
    finished_at_ms: int | None = None
    error: dict[str, Any] | None = None


class NodeState(Struct, gc=False):
    """The state of one node key after the events so far. `container`: the key of a loop or parallel, fed with the
    events of its two ends.

    decided_seq  the event that decided it
    scopes       of the start of a container: how many iterations or branches, known so far
    lost         attempts that ended with their process
    child        the last run that it started
    each         its handler receives the end of each wait, or is entered again for it (`node.left`), and may run while
                 others are open
    under_way    then, whether an attempt runs
    whole        then, the number of an open wait of the node itself, such as for what became of an attempt
    asked        its open waits of kind attention
    """

    node: str
    path: str
    container: bool = False
    status: Status = "running"
    attempt: int = 0
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    decided_seq: int | None = None
    route: str | None = None
    reason: str | None = None
    because: str | None = None
    error: dict[str, Any] | None = None
    scopes: int | None = None
    lost: int = 0
    cached: bool = False
    reused: bool = False
    child: str | None = None
    attempts: dict[int, Attempt] = field(default_factory=dict)
    loss_counted: bool = False
    steps: NodeSteps | None = None
    each: bool = False
    under_way: bool = False
    whole: int = 0
    asked: set[int] = set()

    def apply(self, entry: Entry) -> None:
        type, data = entry.type, entry.data
        means = meaning(type, data)
        if means is None:
            if type in OF_STEPS:
                self._apply_to_steps(entry)
            return
        if self.container and type == "region.sized":  # its start is done, the container is not
            self.scopes = data["count"]
            return
        if self.container and type == "node.skipped" and self.decided_seq is not None:
            return  # its start failed, so its end is never reached
        if type == "wait.opened" and data.get("each") and not self.each:
            self.each = self.under_way = True
        if self.each or type == "node.left":
            self.status = self._apply_to_left(entry, means.status)
        else:
            self._apply_to_attempt(entry, means.status)
            self.status = means.status
        if entry.attempt > self.attempt and type not in _OF_WAITS:
            self.attempt = entry.attempt
        if means.decides:
            self.decided_seq, self.route, self.finished_at_ms = entry.seq, means.route, entry.at_ms
        match type:
            case "node.started":
                if self.started_at_ms is None:
                    self.started_at_ms = entry.at_ms
            case "node.succeeded" | "region.exited":
                if data:
                    self.cached |= bool(data.get("cached"))
                    self.reused = bool(data.get("reused") or data.get("from_run"))
            case "region.sized":
                self.scopes = data["count"]
            case "node.failed" | "retry.scheduled":
                self.error = data["error"]
                self._lose(data["error"]["code"] == LOST)
            case "node.skipped":
                self.reason, self.because = data["reason"], data.get("because")
            case "wait.opened":
                self.child = data.get("child", self.child)
                if "step" in data and self.steps is not None:
                    self.steps.wait_opened(data["step"], entry.attempt, data)
                if data["kind"] == "attention":
                    self.asked.add(entry.attempt)
                    # The attempt of a step was lost before, and counted.
                    self.lost += not (data.keys() & {"step", "reason"})
                    self.loss_counted = True
            case "wait.closed":
                self.asked.discard(entry.attempt)
                if self.status == "cancelled":
                    self.finished_at_ms = entry.at_ms

    @property
    def output_seq(self) -> int | None:
        has_one = self.status == "succeeded" and (self.container or self.scopes is None)
        return self.decided_seq if has_one else None

    @property
    def left_by(self) -> str | None:
        return None if self.status == "skipped" else self.route

    def end(self) -> None:
        """End the run: what has no end of its own was cancelled with it."""
        if self.status in OPEN:
            self.status = "cancelled"
        for attempt in self.attempts.values():
            if attempt.status in OPEN and attempt.status != "retrying":  # that one has an end: another was to follow
                attempt.status = "cancelled"
        if self.steps is not None:
            self.steps.end()

    def _apply_to_left(self, entry: Entry, status: Status) -> Status:
        """Apply an event of a node whose handler has left before, or does so now. Returns the status of the node: its
        waits and its attempts are apart."""
        type, data = entry.type, entry.data
        own = (
            type.startswith("wait.") and not data.get("each") and (type == "wait.opened" or entry.attempt == self.whole)
        )
        if type == "wait.closed" and data["outcome"] == "cancelled" and self.steps is not None:
            self.steps.wait_dropped(entry.attempt, entry.at_ms)
        if type not in _OF_WAITS or own:
            self._apply_to_attempt(entry, status)
        if own:
            self.whole = entry.attempt if type == "wait.opened" else 0
        match type:
            case "node.left":
                self.each, self.under_way, self.loss_counted = True, False, False
                return "needs_attention" if self.asked else status
            case "wait.opened" | "wait.closed" if not own and self.under_way:
                return "running"
            case "wait.closed" if not own and data["outcome"] == "cancelled":
                return self.status if data.get("left") else status
            case "wait.closed" if not own:  # it is entered, if nothing else holds it back
                held = self.whole or self.status == "retrying"
                return self.status if held else "running"
            case "node.started":
                self.under_way = True
            case "retry.scheduled":
                self.under_way = False
            case "wait.opened" if own:
                self.under_way = False
        return status

    def _apply_to_steps(self, entry: Entry) -> None:
        if self.steps is None:
            self.steps = NodeSteps()
        over = self.steps.apply(entry.type, entry.data, entry.attempt, entry.seq, entry.at_ms)
        if over and not self.each:
            self.loss_counted = False
            self._apply_to_attempt(entry, "succeeded")  # it has done its part: the next one has the answer

    def _apply_to_attempt(self, entry: Entry, status: Status) -> None:
        # A container's end has no attempts of its own when it leaves: it belongs to the last one.
        number = entry.attempt or max(self.attempts, default=0)
        if entry.data.get("each"):
            return  # it still runs
        if entry.type in _OF_WAITS:  # of several waits the first alone has the number of its attempt
            number = min(number, max(self.attempts, default=number))
        attempt = self.attempts.get(number)
        if attempt is None:
            attempt = self.attempts[number] = Attempt(number)
        if entry.type == "node.started":
            if attempt.started_seq is None:
                attempt.started_seq, attempt.started_at_ms = entry.seq, entry.at_ms
            return
        attempt.status = status
        if entry.type == "node.left":
            attempt.status = "succeeded"  # it has done its part
        elif status in ("running", "waiting", "needs_attention"):
            return
        attempt.finished_seq, attempt.finished_at_ms = entry.seq, entry.at_ms
        if "error" in entry.data and entry.type != "step.finished":
            attempt.error = entry.data["error"]

    def _lose(self, lost: bool) -> None:
        """A loss that was asked about was counted when the question was put."""
        if lost and not self.loss_counted:
            self.lost += 1
        self.loss_counted = False


# --- a run ---


class Projection:
    """A run after the events so far. `variables`: those of its plan, or None if they are not needed."""

    def __init__(self, variables: Mapping[str, Any] | None = None) -> None:
        self.nodes: dict[tuple[str, str], NodeState] = {}  # by node and path, in the order in which they came
        self.variables: dict[str, Any] | None = None if variables is None else orjson.loads(orjson.dumps(variables))
        self.response: dict[str, Any] | None = None
        self.by: str | None = None  # who started it
        self.published: Record | None = None  # has its published state
        self.continues: str | None = None  # the run before this one
        self.continued_as: str | None = None
        self.status = "queued"

    def apply(self, entry: Entry) -> NodeState | None:
        """Apply an event. Returns the node key that it is about, as it is now."""
        if entry.node is None:
            self._apply_to_run(entry)
            return None
        self.status = "running"  # claims and leases are not in the journal: the time between two events counts as that
        if entry.type == "variables.patched":
            if self.variables is not None:
                paths.apply(self.variables, entry.data["ops"])
            return None
        key = (entry.node, entry.path)
        state = self.nodes.get(key)
        if entry.type in ("cleanup.opened", "cleanup.stopped", "run.continuing"):  # about what comes after it
            return state
        if state is None:
            state = self.nodes[key] = NodeState(entry.node, entry.path, attempt=entry.attempt)
        state.apply(entry)
        return state

    def apply_record(self, record: Record) -> NodeState | None:
        """Apply a record. Most nodes start once and succeed, without data: that needs no entry and no meaning."""
        node, type, number = record.node, record.type, record.attempt
        if record.data is None and node is not None:
            key = (node, record.path)
            state = self.nodes.get(key)
            if state is None:
                if type == "node.started":
                    seq, at_ms = record.seq, record.at_ms
                    first = Attempt(number, "running", seq, at_ms)
                    state = NodeState(node, record.path, False, "running", number, at_ms, attempts={number: first})
                    self.nodes[key] = state
                    self.status = "running"
                    return state
            elif type == "node.succeeded" and number and state.status == "running" and number in state.attempts:
                attempt = state.attempts[number]
                state.status = attempt.status = "succeeded"
                if number > state.attempt:
                    state.attempt = number
                state.decided_seq = attempt.finished_seq = record.seq
                state.finished_at_ms = attempt.finished_at_ms = record.at_ms
                state.route = "out"
                self.status = "running"
                return state
        if type == "node.state":
            self.published = record
        return self.apply(Entry.of(record))

    def end(self) -> None:
        for state in self.nodes.values():
            state.end()

    def _apply_to_run(self, entry: Entry) -> None:
        match entry.type:
            case "run.started":
                self.status = "queued"
                self.by = entry.data.get("by")
                self.continues = entry.data.get("continues")
            case "run.parked":
                self.status = "waiting"
            case "run.finished":
                self.status = entry.data["status"]
                self.response = entry.data.get("response")
                self.continued_as = entry.data.get("continued_as")
                self.end()
            case _:
                self.status = "running"
