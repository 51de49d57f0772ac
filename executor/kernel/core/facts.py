"""Facts: what comes in. Each carries its own time `at_ms` (Unix ms): the core has no clock."""

from __future__ import annotations

from msgspec import Struct

from compiler.keys import NodeKey
from executor.kernel.core.events import Deferred, ErrorInfo, Reason, WaitKind


class _OfAttempt(Struct, frozen=True, gc=False):
    """A fact about an attempt, or about a wait with its number."""

    at_ms: int
    key: NodeKey
    attempt: int


class StartRequested(Struct, frozen=True, gc=False):
    at_ms: int
    run: str
    reuse: dict[int, str | None] = {}
    stop_after: int | None = None
    source_run: str | None = None
    by: str | None = None
    keeps: bool = False
    again: tuple[str, ...] = ()


class Recovered(Struct, frozen=True, gc=False):
    """The journal was folded after a claim: continue with whatever is ready. Records nothing by itself, unless the
    process that had the run is gone (`lapsed`)."""

    at_ms: int
    lapsed: bool = False


class NodeDone(_OfAttempt, frozen=True):
    """An attempt returned. `route` is the handle to follow, or None. `end_run`: a response block. `cached`, `pinned`,
    `from_run`: the handler did not run, another output is used. `as_new`: another run continues the one that ends."""

    route: str | None = "out"
    end_run: bool = False
    cached: bool = False
    as_new: bool = False
    pinned: bool = False
    from_run: str | None = None


class NodePassed(_OfAttempt, frozen=True):
    """A node whose `skip_if` was true: skipped, but its out-edges are live."""


class NodeErred(_OfAttempt, frozen=True):
    """An attempt raised. `retry_at_ms` overrides the back-off (Retry-After); `deferred`: it need not count."""

    error: ErrorInfo
    retry_at_ms: int | None = None
    deferred: Deferred | None = None


class WaitStep(Struct, frozen=True, gc=False):
    """The step that a pause is. `lost`: it began before, and a person is asked what became of it. `line`, `task`,
    `above` and `group` are those of `StepStarted`."""

    n: int
    name: str
    input_hash: str
    lost: bool = False
    line: int = 0
    task: int = 0
    above: int = 0
    group: str = ""


class WaitBeside(Struct, frozen=True, gc=False):
    """One more pause that an attempt asks for."""

    step: WaitStep
    kind: WaitKind
    due_ms: int | None = None
    on_expire: str = "fail"


class NodeSuspended(_OfAttempt, frozen=True):
    """An attempt asks for a durable pause. `step`: its handler is entered again when that is over, and when those
    `beside` it are."""

    kind: WaitKind
    due_ms: int | None = None
    on_expire: str = "fail"
    step: WaitStep | None = None
    beside: tuple[WaitBeside, ...] = ()


class HandlerWaits(_OfAttempt, frozen=True):
    """A handler that runs opens waits, and receives their ends. The waits of the steps `drops` are not needed any more;
    all others stay open."""

    opens: tuple[WaitBeside, ...] = ()
    drops: tuple[int, ...] = ()


class HandlerLeft(_OfAttempt, frozen=True):
    """A handler waits, and is entered again when any of its waits ends, or at `due_ms`. `opens` and `drops`: as of
    HandlerWaits. `received_seq`: the last end of a wait that it has received, since it was entered."""

    opens: tuple[WaitBeside, ...] = ()
    drops: tuple[int, ...] = ()
    due_ms: int | None = None
    received_seq: int = 0


class RegionSizeKnown(_OfAttempt, frozen=True):
    """A start sentinel's handler is done: this many scopes (loops: known so far)."""

    count: int


class LoopTested(_OfAttempt, frozen=True):
    """The handler of a loop's end decided whether another iteration follows."""

    again: bool


class WaitAnswered(_OfAttempt, frozen=True):
    """The wait of `key` with the number `attempt` was answered; `route` as in NodeDone."""

    route: str | None = "out"
    by: str | None = None


class WaitFailed(_OfAttempt, frozen=True):
    """The wait of `key` ended badly (a child run failed, a person gave a lost attempt up): as if the attempt raised."""

    error: ErrorInfo
    by: str | None = None


class WaitRetried(_OfAttempt, frozen=True):
    """A person looked into a lost attempt and wants the block to run again. Only for waits of kind attention."""

    by: str | None = None


class RetryWanted(_OfAttempt, frozen=True):
    """Attempt `attempt` of `key`, which has its time, is wanted now."""


class TimerFired(_OfAttempt, frozen=True):
    """A retry, a timer wait or an expiry of `key` came due. `error`: why what a wait would put out cannot be taken."""

    error: ErrorInfo | None = None


class AttemptLost(_OfAttempt, frozen=True):
    """The process that ran this attempt is gone; how far it got is unknown. `together`: it had other runs as well, so
    this one need not be the cause. `ask`: a person is asked where the attempt would be repeated. `reason` "code": it is
    not lost, but the code that is here does not fit the run, which waits for other code."""

    together: bool = False
    ask: bool = False
    reason: Reason = ""


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
    | HandlerWaits
    | HandlerLeft
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
