"""What an event means for people: the status, attempts, route and times of each node key, and the status of the run.

This is the only meaning. Views, comparison, the doctor, the command line and the question why all read it from here;
the editor has the same fold in TypeScript (`web/src/state/run/fold.ts`), and both are tested against the streams in
`tests/vectors`. What an event means for what runs next is another question: `executor.core.evolve`.

A new event type that only tells something needs nothing here but a place in `ASIDE`. One that changes a node has a
line in `status_after`, and in `decision` if edges resolve by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import orjson
from msgspec import Struct, field

from executor.core.evolve import LOST
from executor.journal.codec import data_of
from executor.store.rows import Record
from executor.values import variables as paths

Status = Literal[
    "running", "retrying", "waiting", "needs_attention", "succeeded", "failed", "skipped", "cancelled"
]  # fmt: skip
OPEN: frozenset[str] = frozenset({"running", "retrying", "waiting", "needs_attention"})
# They say nothing about where a run went: how often it slept, what was logged, where it came from.
ASIDE = frozenset({"run.parked", "node.log", "run.forked", "run.migrated", "retry.hastened"})

Data = Mapping[str, Any]


class Entry(Struct, frozen=True):
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
        return cls(
            record.seq, record.at_ms, record.type, record.node, record.path, record.attempt, data_of(record)
        )  # fmt: skip


# --- one event ---


class Decision(Struct, frozen=True):
    """How a node was decided. `route`: the handle whose edges are live behind it; None: those of no handle."""

    status: Status
    route: str | None

    @property
    def leads_on(self) -> bool:
        """Whether it did something, or what follows it may run."""
        return self.status == "succeeded" or self.route is not None


def status_after(type: str, data: Data) -> Status | None:
    """What the event makes of its node; None: it changes nothing about it."""
    match type:
        case "node.started":
            return "running"
        case "node.succeeded" | "region.sized" | "region.exited":
            return "succeeded"
        case "node.failed":  # the journal has one type for both: an attempt that was stopped with its run did not fail
            stopped = data["error"]["code"] == "cancelled" and data.get("route") is None
            return "cancelled" if stopped else "failed"
        case "node.skipped":
            return "skipped"
        case "retry.scheduled":
            return "retrying"
        case "wait.opened":
            return "needs_attention" if data["kind"] == "attention" else "waiting"
        case "wait.closed":
            return "cancelled" if data["outcome"] == "cancelled" else "running"
        case _:
            return None


def decision(type: str, data: Data) -> Decision | None:
    """None: the event does not decide its node."""
    match type:
        case "node.succeeded":
            route = data.get("route", "out")
        case "region.sized" | "region.exited":
            route = "out"
        case "node.failed":
            route = data.get("route")
        case "node.skipped":  # passed over: its output is null, and what follows it runs
            route = None if data["reason"] == "pruned" else "out"
        case _:
            return None
    status = status_after(type, data)
    assert status is not None, "what decides a node changes its status"
    return Decision(status, route)


# --- one node key ---


class Attempt(Struct):
    """One attempt of a node key, or (end of a loop) one of its tests. Without an end it has none yet."""

    attempt: int
    status: Status = "running"
    started_seq: int | None = None
    started_at_ms: int | None = None
    finished_seq: int | None = None
    finished_at_ms: int | None = None
    error: dict[str, Any] | None = None


class NodeState(Struct):
    """One node key as the events so far tell it. `container`: the key of a loop or parallel, fed with the events of its
    two ends.

    decided_seq  the event that decided it
    scopes      of the start of a container: how many iterations or branches, known so far
    lost        attempts that ended with their process
    child       the run that its last attempt started
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

    def apply(self, entry: Entry) -> None:
        type, data = entry.type, entry.data
        status = status_after(type, data)
        if status is None:
            return
        if self.container and type == "region.sized":  # its start is done, the container is not
            self.scopes = data["count"]
            return
        if self.container and type == "node.skipped" and self.decided_seq is not None:
            return  # its start failed, so its end is never reached
        self._apply_to_attempt(entry, status)
        self._count_loss(type, data)
        self.status = status
        self.attempt = max(self.attempt, entry.attempt)
        if (decided := decision(type, data)) is not None:
            self.decided_seq = entry.seq
            self.route = decided.route
        match type:
            case "node.started":
                if self.started_at_ms is None:
                    self.started_at_ms = entry.at_ms
            case "node.succeeded" | "region.exited":
                self.cached |= bool(data.get("cached"))
                self.reused = bool(data.get("reused"))
            case "region.sized":
                self.scopes = data["count"]
            case "node.failed" | "retry.scheduled":
                self.error = data["error"]
            case "node.skipped":
                self.reason, self.because = data["reason"], data.get("because")
            case "wait.opened":
                self.child = data.get("child", self.child)
        if decided is not None or (type == "wait.closed" and status == "cancelled"):
            self.finished_at_ms = entry.at_ms

    @property
    def output_seq(self) -> int | None:
        """The event that has its output."""
        has_one = self.status == "succeeded" and (self.container or self.scopes is None)
        return self.decided_seq if has_one else None

    @property
    def left_by(self) -> str | None:
        """The handle by which it was left. A node that was passed over was not, though its edges are live."""
        return None if self.status == "skipped" else self.route

    def end(self) -> None:
        """The run has ended: what has no end of its own was cancelled with it."""
        if self.status in OPEN:
            self.status = "cancelled"
        for attempt in self.attempts.values():
            if attempt.status in OPEN and attempt.status != "retrying":  # that one has an end: another was to follow
                attempt.status = "cancelled"

    def _apply_to_attempt(self, entry: Entry, status: Status) -> None:
        # A container's end has no attempts of its own when it leaves: it belongs to the last one.
        number = entry.attempt or max(self.attempts, default=0)
        attempt = self.attempts.get(number)
        if attempt is None:
            attempt = self.attempts[number] = Attempt(number)
        if entry.type == "node.started":
            if attempt.started_seq is None:
                attempt.started_seq, attempt.started_at_ms = entry.seq, entry.at_ms
            return
        attempt.status = status
        if status in ("running", "waiting", "needs_attention"):
            return
        attempt.finished_seq, attempt.finished_at_ms = entry.seq, entry.at_ms
        if "error" in entry.data:
            attempt.error = entry.data["error"]

    def _count_loss(self, type: str, data: Data) -> None:
        """A loss that was asked about was counted when the question was put."""
        asks = type == "wait.opened" and data["kind"] == "attention"
        lost = type in ("retry.scheduled", "node.failed") and data["error"]["code"] == LOST
        if asks or (lost and not self.loss_counted):
            self.lost += 1
        self.loss_counted = asks or (self.loss_counted and type == "wait.closed")


# --- a run ---


class Projection:
    """A run as the events so far tell it. `variables`: those of its plan, which its nodes then change; None: they are
    not asked for."""

    def __init__(self, variables: Mapping[str, Any] | None = None) -> None:
        self.nodes: dict[tuple[str, str], NodeState] = {}  # by node and path, in the order in which they came
        self.variables: dict[str, Any] | None = None if variables is None else orjson.loads(orjson.dumps(variables))
        self.response: dict[str, Any] | None = None
        self.status = "queued"

    def apply(self, entry: Entry) -> NodeState | None:
        """The node key that the event is about, as it stands now."""
        self._apply_to_run(entry)
        if entry.node is None:
            return None
        if entry.type == "variables.patched":
            if self.variables is not None:
                paths.apply(self.variables, entry.data["ops"])
            return None
        key = (entry.node, entry.path)
        state = self.nodes.get(key)
        if state is None:
            state = self.nodes[key] = NodeState(entry.node, entry.path, attempt=entry.attempt)
        state.apply(entry)
        return state

    def end(self) -> None:
        for state in self.nodes.values():
            state.end()

    def _apply_to_run(self, entry: Entry) -> None:
        match entry.type:
            case "run.started":
                self.status = "queued"
            case "run.parked":
                self.status = "waiting"
            case "run.finished":
                self.status = entry.data["status"]
                self.response = entry.data.get("response")
                self.end()
            case _:  # claims and leases are not in the journal: the time between two events counts as running
                self.status = "running"
