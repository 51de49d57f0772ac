"""Facts: what comes in. Each carries its own time `at_ms` (Unix ms): the core has no clock."""

from __future__ import annotations

from msgspec import Struct

from compiler.keys import NodeKey
from executor.kernel.core.events import Deferred, ErrorInfo, WaitKind


class StartRequested(Struct, frozen=True, gc=False):
    at_ms: int
    run: str
    reuse: dict[int, str | None] = {}
    stop_after: int | None = None
    source_run: str | None = None
    by: str | None = None


class Recovered(Struct, frozen=True, gc=False):
    """The journal was folded after a claim: go on with whatever is ready. Records nothing by itself."""

    at_ms: int


class NodeDone(Struct, frozen=True, gc=False):
    """An attempt returned. `route` is the handle to follow, or None. `end_run`: a response block. `cached`: the handler
    did not run, an earlier output is used. `as_new`: another run continues the one that ends."""

    at_ms: int
    key: NodeKey
    attempt: int
    route: str | None = "out"
    end_run: bool = False
    cached: bool = False
    as_new: bool = False


class NodePassed(Struct, frozen=True, gc=False):
    """A node whose `skip_if` was true: skipped, but its out-edges are live."""

    at_ms: int
    key: NodeKey
    attempt: int


class NodeErred(Struct, frozen=True, gc=False):
    """An attempt raised. `retry_at_ms` overrides the back-off (Retry-After); `deferred`: it need not count."""

    at_ms: int
    key: NodeKey
    attempt: int
    error: ErrorInfo
    retry_at_ms: int | None = None
    deferred: Deferred | None = None


class WaitStep(Struct, frozen=True, gc=False):
    """The step that a pause is. `lost`: it began before, and a person is asked what became of it."""

    n: int
    name: str
    input_hash: str
    lost: bool = False


class WaitBeside(Struct, frozen=True, gc=False):
    """One more pause that an attempt asks for."""

    step: WaitStep
    kind: WaitKind
    due_ms: int | None = None
    on_expire: str = "fail"


class NodeSuspended(Struct, frozen=True, gc=False):
    """An attempt asks for a durable pause. `step`: its handler is entered again when that is over, and when those
    `beside` it are."""

    at_ms: int
    key: NodeKey
    attempt: int
    kind: WaitKind
    due_ms: int | None = None
    on_expire: str = "fail"
    step: WaitStep | None = None
    beside: tuple[WaitBeside, ...] = ()


class RegionSizeKnown(Struct, frozen=True, gc=False):
    """A start sentinel's handler is done: this many scopes (loops: known so far)."""

    at_ms: int
    key: NodeKey
    attempt: int
    count: int


class LoopTested(Struct, frozen=True, gc=False):
    """An end sentinel's handler is done: another iteration, or out."""

    at_ms: int
    key: NodeKey
    attempt: int
    again: bool


class WaitAnswered(Struct, frozen=True, gc=False):
    """The wait of `key` with the number `attempt` was answered; `route` as in NodeDone."""

    at_ms: int
    key: NodeKey
    attempt: int
    route: str | None = "out"
    by: str | None = None


class WaitFailed(Struct, frozen=True, gc=False):
    """The wait of `key` ended badly (a child run failed, a person gave a lost attempt up): as if the attempt raised."""

    at_ms: int
    key: NodeKey
    attempt: int
    error: ErrorInfo
    by: str | None = None


class WaitRetried(Struct, frozen=True, gc=False):
    """A person looked into a lost attempt and wants the block to run again. Only for waits of kind attention."""

    at_ms: int
    key: NodeKey
    attempt: int
    by: str | None = None


class RetryWanted(Struct, frozen=True, gc=False):
    """Attempt `attempt` of `key`, which has its time, is wanted now."""

    at_ms: int
    key: NodeKey
    attempt: int


class TimerFired(Struct, frozen=True, gc=False):
    """A retry, a timer wait or an expiry of `key` came due. `error`: why what a wait would put out cannot be taken."""

    at_ms: int
    key: NodeKey
    attempt: int
    error: ErrorInfo | None = None


class AttemptLost(Struct, frozen=True, gc=False):
    """The process that ran this attempt is gone; how far it got is unknown. `together`: it had other runs as well, so
    this one need not be the cause. `ask`: a person is asked where the attempt would be repeated."""

    at_ms: int
    key: NodeKey
    attempt: int
    together: bool = False
    ask: bool = False


class ForkMade(Struct, frozen=True, gc=False):
    """The journal so far is a copy of the first `seq` records of run `source`. Starts nothing: the copy has to be on
    disk first, and then `Recovered` continues."""

    at_ms: int
    source: str
    seq: int


class CancelRequested(Struct, frozen=True, gc=False):
    """`now`: without cleanups. `asked`: by a person or a program, which asks again not to wait for the cleanups; not by
    a run above."""

    at_ms: int
    reason: str = ""
    now: bool = False
    asked: bool = False


class RunAborted(Struct, frozen=True, gc=False):
    """The run must end as failed: its wall-clock limit is over, or it makes no progress. `now`: without cleanups."""

    at_ms: int
    error: ErrorInfo
    now: bool = False


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
    | WaitFailed
    | WaitRetried
    | RetryWanted
    | TimerFired
    | AttemptLost
    | ForkMade
    | CancelRequested
    | RunAborted
)
