"""Facts: what comes in. Each carries its own time `at_ms` (Unix ms): the core has no clock."""

from __future__ import annotations

from msgspec import Struct

from compiler.keys import NodeKey
from executor.core.events import ErrorInfo, WaitKind


class StartRequested(Struct, frozen=True):
    at_ms: int
    run: str
    reuse: dict[int, str | None] = {}
    stop_after: int | None = None
    source_run: str | None = None


class Recovered(Struct, frozen=True):
    """The journal was folded after a claim: go on with whatever is ready. Records nothing by itself."""

    at_ms: int


class NodeDone(Struct, frozen=True):
    """An attempt returned. `route`: the handle to follow, None for none. `end_run`: a response block."""

    at_ms: int
    key: NodeKey
    attempt: int
    route: str | None = "out"
    end_run: bool = False


class NodePassed(Struct, frozen=True):
    """`skip_if` was true: skipped, but its out-edges are live."""

    at_ms: int
    key: NodeKey
    attempt: int


class NodeErred(Struct, frozen=True):
    """An attempt raised. `retry_at_ms` overrides the back-off (Retry-After)."""

    at_ms: int
    key: NodeKey
    attempt: int
    error: ErrorInfo
    retry_at_ms: int | None = None


class NodeSuspended(Struct, frozen=True):
    """An attempt asks for a durable pause."""

    at_ms: int
    key: NodeKey
    attempt: int
    kind: WaitKind
    due_ms: int | None = None
    on_expire: str = "fail"


class RegionSizeKnown(Struct, frozen=True):
    """A start sentinel's handler is done: this many scopes (loops: known so far)."""

    at_ms: int
    key: NodeKey
    attempt: int
    count: int


class LoopTested(Struct, frozen=True):
    """An end sentinel's handler is done: another iteration, or out."""

    at_ms: int
    key: NodeKey
    attempt: int
    again: bool


class WaitAnswered(Struct, frozen=True):
    """The wait of `key` was answered; `route` as in NodeDone."""

    at_ms: int
    key: NodeKey
    attempt: int
    route: str | None = "out"
    by: str | None = None


class TimerFired(Struct, frozen=True):
    """A retry, a timer wait or an expiry of `key` came due."""

    at_ms: int
    key: NodeKey
    attempt: int


class AttemptLost(Struct, frozen=True):
    """The process that ran this attempt is gone; nobody knows how far it got."""

    at_ms: int
    key: NodeKey
    attempt: int


class CancelRequested(Struct, frozen=True):
    at_ms: int
    reason: str = ""


class RunAborted(Struct, frozen=True):
    """The run must end as failed: its wall-clock limit is over, or it makes no progress."""

    at_ms: int
    error: ErrorInfo


Fact = (
    StartRequested
    | Recovered
    | NodeDone
    | NodePassed
    | NodeErred
    | NodeSuspended
    | RegionSizeKnown
    | LoopTested
    | WaitAnswered
    | TimerFired
    | AttemptLost
    | CancelRequested
    | RunAborted
)
