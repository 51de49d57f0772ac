"""Events: what is recorded. The journal of a run is a dense list of them; folding it with `evolve` gives the State.

Fields are for ever: add with a default, never rename. `tag` is the type's name in the journal and on the wire.
Keys are `(path, node)` of `compiler.keys`. Times are Unix milliseconds. Outputs are not here: the runtime stores them
beside the record.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from compiler.keys import NodeKey, Path

WaitKind = Literal["approval", "form", "timer", "signal", "webhook", "child", "attention"]
WaitOutcome = Literal["answered", "fired", "expired", "cancelled"]
RunEnd = Literal["succeeded", "failed", "cancelled"]
# The reason for which an attempt does not count: the other side asked for a later one, or the work had not begun.
Deferred = Literal["asked", "not_begun"]
# "wait": a pause of the handler, whose answer is the output. "mark": nothing is done; the code was changed there. What
# the others do is up to the handler.
StepKind = Literal["model", "tool", "step", "wait", "mark"]
# The effect of a step outside weft, which decides whether it may be repeated when it is unknown whether it was done.
StepEffect = Literal["none", "read", "write"]
# The reason of a question to a person that the core asks: an attempt was lost, or the code does not fit the run.
Reason = Literal["", "code"]
# The rule for a step of which it is unknown whether it was done. "": a write is asked about, others are done again.
StepOnLost = Literal["", "retry", "ask", "fail"]
Caught = tuple[Literal["branch", "container", "cleanup"], Path]
# `ErrorInfo.code` of attempts that do not count: the process is gone, the attempt stayed with another run, or the code
# did not fit it.
LOST, FORKED, CODE = "attempt_lost", "run_forked", "code_changed"
# The codes of steps, also of those that wait for a child run, which were cancelled with their run.
STOPPED = frozenset({"cancelled", "child_cancelled"})


class ErrorInfo(Struct, frozen=True, gc=False, omit_defaults=True):
    """The error of an attempt. `code` is stable and for machines, `message` for people. `traceback` has the frames of
    users' own files, for Python code of users. `type` is the exception that a step raised, `args` its arguments if the
    step declares it (JSON)."""

    code: str
    message: str
    retryable: bool = False
    block: str | None = None
    hint: str = ""
    traceback: str = ""
    type: str = ""
    args: list[Any] | None = None


class RunStarted(Struct, frozen=True, gc=False, tag="run.started", omit_defaults=True):
    """First event of every run. `reuse` maps root-region node numbers to the route they took in the run this one was
    started from (run from a block): they are not run again. `keeps`: each node takes over what it put out in that run
    if its block and all that it reads are the same, except those of the blocks `again`. `stop_after`: nothing starts
    once this node is done. `by` is who started it, `user:ada` or `token:ID`, or None for a trigger, another run, or a
    server without a token."""

    run: str
    rules: int = 1
    reuse: dict[int, str | None] = {}
    stop_after: int | None = None
    source_run: str | None = None
    by: str | None = None
    keeps: bool = False
    again: tuple[str, ...] = ()


class NodeStarted(Struct, frozen=True, gc=False, tag="node.started"):
    key: NodeKey
    attempt: int


class NodeSucceeded(Struct, frozen=True, gc=False, tag="node.succeeded", omit_defaults=True):
    """`route` is the handle whose edges are live. `end_run`: a response block, the run ends with this output.
    `cached`: the output is an earlier one of the same params, the handler did not run. `pinned`: the draft names it.
    `from_run`: it is what the same node put out in this run."""

    key: NodeKey
    attempt: int
    route: str | None = "out"
    reused: bool = False
    end_run: bool = False
    cached: bool = False
    pinned: bool = False
    from_run: str | None = None


class RegionSized(Struct, frozen=True, gc=False, tag="region.sized"):
    """A start sentinel succeeded: `count` is the number of branches, or the number of iterations known so far
    (`for`, `each`: all of them; `while`: 0 or 1; `until`: 1)."""

    key: NodeKey
    attempt: int
    count: int


class ScopesOpened(Struct, frozen=True, gc=False, tag="scope.opened"):
    """Scopes `first .. first + count - 1` of the container whose START sentinel is `key` are open now."""

    key: NodeKey
    first: int
    count: int


class RegionExited(Struct, frozen=True, gc=False, tag="region.exited"):
    """The END sentinel `key` is done: the container's `out` edges are live. `count` scopes were run."""

    key: NodeKey
    count: int
    reused: bool = False


class CleanupOpened(Struct, frozen=True, gc=False, tag="cleanup.opened", omit_defaults=True):
    """The body of a container has ended, and its cleanup begins; `key` is its END sentinel, or the trigger: the cleanup
    of the run. It is stopped at `due_ms`. `error`: what the container fails with afterwards. `given_up`: the container
    ends because what is around it does, such as a run that is cancelled."""

    key: NodeKey
    due_ms: int
    error: ErrorInfo | None = None
    given_up: bool = False


class CleanupStopped(Struct, frozen=True, gc=False, tag="cleanup.stopped"):
    """The time of the cleanup of `key` is over: what is under way in it is asked to stop, nothing more of it starts."""

    key: NodeKey
    error: ErrorInfo


class NodeFailed(Struct, frozen=True, gc=False, tag="node.failed", omit_defaults=True):
    """No attempt is left. Exactly one of three ways on:

    route "error"   the node's error edges are live, the rest dead;
    route "out"     on_error: continue, the output is null;
    route None      it is not caught at the node: `caught` says who does. ("branch", path): the branch scope `path` of
                    a parallel with on_branch_error continue or collect is aborted; ("container", path): the container
                    whose body scope is `path` is aborted and then fails (its error handle is wired, or it has a
                    cleanup that runs first); ("cleanup", path): the cleanup scope `path` is aborted; or None, and the
                    run fails.
    """

    key: NodeKey
    attempt: int
    error: ErrorInfo
    route: str | None = None
    caught: Caught | None = None


class NodeSkipped(Struct, frozen=True, gc=False, tag="node.skipped", omit_defaults=True):
    """A node will not run. `reason` is "pruned" (every in-edge is dead; `because` is the node whose edge died last), or
    "skip_if" / "expired" (the node itself was passed over: its out-edges are live)."""

    key: NodeKey
    reason: Literal["pruned", "skip_if", "expired"]
    because: NodeKey | None = None
    attempt: int = 0


class RetryScheduled(Struct, frozen=True, gc=False, tag="retry.scheduled", omit_defaults=True):
    """Attempt `attempt` failed with `error`; the next one may start at `due_ms`. `deferred`: the attempt does not
    count against max_attempts, and `pause_ms` is how long the node waits for that. `together`: the attempt was
    lost with those of other runs."""

    key: NodeKey
    attempt: int
    due_ms: int
    error: ErrorInfo
    deferred: Deferred | None = None
    pause_ms: int = 0
    together: bool = False


class RetryHastened(Struct, frozen=True, gc=False, tag="retry.hastened"):
    """A person does not want to wait: attempt `attempt`, which had a later time, may start at `due_ms`."""

    key: NodeKey
    attempt: int
    due_ms: int


class WaitOpened(Struct, frozen=True, gc=False, tag="wait.opened", omit_defaults=True):
    """A durable pause. `due_ms` is when it ends (timer) or expires (all other kinds). Kind "attention": the process of
    this attempt is gone, and a person has to decide what became of it. `step` is the number of the step that the end of
    the wait finishes; when no wait of the node is open any more, the handler is entered again. `beside`: the same
    attempt opened others before; the number of this one is the next after theirs, so no two waits of a node have the
    same. `each`: its attempt still runs. It receives the end of this wait, or the handler is entered again for that,
    whatever else is open. `reason` of an attention: "code" if the code that is here does not fit the run; "" for a lost
    attempt."""

    key: NodeKey
    attempt: int
    kind: WaitKind
    due_ms: int | None = None
    on_expire: str = "fail"
    step: int | None = None
    beside: bool = False
    each: bool = False
    reason: Reason = ""


class NodeLeft(Struct, frozen=True, gc=False, tag="node.left", omit_defaults=True):
    """The attempt is over, and the node waits: its handler is entered again at the end of any of its open waits, or at
    `due_ms`. `again`: at once, as one of them ended and the attempt did not receive that. The next attempt has the
    number after those of the attempt and of all waits so far."""

    key: NodeKey
    attempt: int
    again: bool = False
    due_ms: int | None = None


class WaitClosed(Struct, frozen=True, gc=False, tag="wait.closed", omit_defaults=True):
    """`left`: how many waits of the node are still open."""

    key: NodeKey
    attempt: int
    outcome: WaitOutcome
    by: str | None = None
    left: int = 0


class VariablesPatched(Struct, frozen=True, gc=False, tag="variables.patched"):
    """The variables a node changed, as operations `[op, path, value]`. Opaque to the core."""

    key: NodeKey
    ops: list[list[object]]


class RunParked(Struct, frozen=True, gc=False, tag="run.parked"):
    """Nothing runs, something waits: the run leaves memory. `due_ms` is the earliest timer, None when only people can
    go on."""

    due_ms: int | None


class RunCancelling(Struct, frozen=True, gc=False, tag="run.cancelling", omit_defaults=True):
    """Nothing new starts but cleanups, running handlers are asked to stop. With `error` (the run's time is over) it
    ends as failed. `now`: no cleanup starts any more, and those that run are stopped."""

    reason: str = ""
    error: ErrorInfo | None = None
    now: bool = False


class RunFinished(Struct, frozen=True, gc=False, tag="run.finished", omit_defaults=True):
    """Last event of every run."""

    status: RunEnd
    error: ErrorInfo | None = None


class RunForked(Struct, frozen=True, gc=False, tag="run.forked"):
    """All records before this one were copied from run `source`, whose first `seq` they are. What was under way there
    starts anew here."""

    source: str
    seq: int


class RunMigrated(Struct, frozen=True, gc=False, tag="run.migrated"):
    """From here on the run follows another version of its workflow; all records before this one fit it as well."""

    version: int
    plan_hash: str


class RunRecovered(Struct, frozen=True, gc=False, tag="run.recovered"):
    """The lease of the process that had this run in memory has lapsed: another one continues it from the journal. The
    attempts that are lost with that process follow."""


class RunContinuing(Struct, frozen=True, gc=False, tag="run.continuing"):
    """The block `key` ends the run, and unless a cleanup that comes first fails, or the run is cancelled meanwhile, a
    new run continues it. `run.finished` names it."""

    key: NodeKey


class NodeLog(Struct, frozen=True, gc=False, tag="node.log", omit_defaults=True):
    """Output of a running attempt: lines of its log, or (`text`) all of its live text, when it ends."""

    key: NodeKey
    attempt: int
    message: str
    stream: Literal["log", "text"] = "log"


class StepStarted(Struct, frozen=True, gc=False, tag="step.started"):
    """A handler began call number `n` of `ctx.step` or `ctx.wait`. `input_hash`: of kind, name and input.
    `on_lost`: of a durable function. The other fields are those of a durable function as well, and tell only: where its
    code makes the call (`run/call_site.py`), and `shown`, the input without secrets; of a long one the beginning of its
    JSON, as a text."""

    key: NodeKey
    attempt: int
    n: int
    kind: StepKind
    name: str
    input_hash: str
    effect: StepEffect
    line: int = 0
    task: int = 0
    above: int = 0
    group: str = ""
    shown: Any = None
    on_lost: StepOnLost = ""


class StepRetrying(Struct, frozen=True, gc=False, tag="step.retrying"):
    """Step `n` failed with `error` for the `times`th time. It begins again, not before `due_ms`."""

    key: NodeKey
    attempt: int
    n: int
    times: int
    due_ms: int
    error: ErrorInfo


class StepFinished(Struct, frozen=True, gc=False, tag="step.finished", omit_defaults=True):
    """Step `n` has an output, or failed with `error`. It is not done again. `usage` counts what it used (tokens);
    `cost` is in US dollars, by the price list of the date `prices`. `from_run`: it was done, and paid, in this run.
    `cached`: the output is an earlier one of an equal call. `ended_ms`: the time that a durable function sees, if that
    is not the time of the event."""

    key: NodeKey
    attempt: int
    n: int
    usage: dict[str, int] = {}
    cost: float | None = None
    prices: str = ""
    error: ErrorInfo | None = None
    from_run: str | None = None
    ended_ms: int = 0
    cached: bool = False


class StepLost(Struct, frozen=True, gc=False, tag="step.lost"):
    """It is unknown whether step `n`, which began, was done. `again`: it is done again, maybe for the second time; else
    a person is asked."""

    key: NodeKey
    attempt: int
    n: int
    again: bool


class StatePublished(Struct, frozen=True, gc=False, tag="node.state"):
    """A durable function published its state: the output of this event. The last one counts."""

    key: NodeKey
    attempt: int


class UpdateAnswered(Struct, frozen=True, gc=False, tag="update.answered", omit_defaults=True):
    """A durable function answered the request `update` of its update `name` with the output of this event, or refused
    it for the reason `refused`."""

    key: NodeKey
    attempt: int
    update: str
    name: str
    refused: str | None = None


Event = (
    RunStarted
    | NodeStarted
    | NodeSucceeded
    | RegionSized
    | ScopesOpened
    | RegionExited
    | CleanupOpened
    | CleanupStopped
    | NodeFailed
    | NodeSkipped
    | RetryScheduled
    | RetryHastened
    | WaitOpened
    | WaitClosed
    | VariablesPatched
    | RunParked
    | RunCancelling
    | RunFinished
    | RunForked
    | RunMigrated
    | RunRecovered
    | RunContinuing
    | NodeLog
    | StepStarted
    | StepFinished
    | StepLost
    | StepRetrying
    | NodeLeft
    | StatePublished
    | UpdateAnswered
)
# Recorded for readers: neither the state nor the values look at them.
TELLS_ONLY: tuple[type[Struct], ...] = (
    RunForked,
    RunMigrated,
    RunRecovered,
    RunContinuing,
    NodeLog,
    StatePublished,
    UpdateAnswered,
)
