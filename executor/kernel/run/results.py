"""Arrivals of a run: results, each a fact for the core with the payload that the core must not see, and the logs of
attempts. Both wait here for the next turn of the run's loop.

Also the bounds on the outputs of a run in total. Reaching a bound ends the run, which is recorded like any other end
(`run.cancelling` with the error), and the bytes are counted from the journal, so a worker that claims the run decides
the same.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from compiler.keys import NodeKey
from compiler.plan import Node
from executor.errors import BlockError
from executor.kernel.core import facts as f
from executor.kernel.core.events import (
    ErrorInfo,
    StatePublished,
    StepFinished,
    StepRetrying,
    StepStarted,
    UpdateAnswered,
)
from executor.kernel.handler.base import Suspend
from executor.kernel.handler.needs import RunLimits
from executor.kernel.run.places import Place
from executor.kernel.store.run_rows import NewRun
from executor.kernel.store.topics.cache import CacheRow


class Stored(NamedTuple):
    """The place of an event that is on disk."""

    seq: int
    at_ms: int


Settled = Callable[[Stored | BlockError], None]
StepEvent = StepStarted | StepRetrying | StepFinished | StatePublished | UpdateAnswered


class StepNote:
    """An event of a step, or of a durable function, for the run's loop to record, which sets its `place`. `done` is
    called when it is on disk, or is refused. The key of `event` is filled in when it is recorded: the run may have
    moved to another plan by then. `cached`: its output, to be stored for later runs."""

    __slots__ = ("cached", "done", "event", "output", "place")

    def __init__(
        self,
        event: StepEvent,
        output: bytes | None = None,
        done: Settled | None = None,
        cached: CacheRow | None = None,
    ) -> None:
        self.event = event
        self.cached = cached
        self.output = output
        self.done = done
        self.place = Stored(0, 0)

    def stored(self) -> None:
        if self.done is not None:
            self.done(self.place)

    def refuse(self) -> None:
        """Refuse the event: the attempt was over, so it is not recorded."""
        if self.done is not None:
            step = getattr(self.event, "n", "")
            message = f"attempt {self.event.attempt} has ended: its step {step} was not recorded"
            self.done(BlockError(message, code="attempt_over", retryable=False))


Stream = Literal["log", "text"]
# The attempt of a node, and a message of it; or of one of its steps.
Log = tuple[NodeKey, int, str | StepNote, Stream]


class Payload(Struct, gc=False):
    """The data of an outcome besides its route. `output` is encoded JSON. `suspends` are the waits that open, by
    the numbers of their steps; None for one of the node itself. `cached` is to be stored for later runs."""

    output: bytes | None = None
    patches: list[list[Any]] = []
    suspends: Mapping[int | None, Suspend] = {}
    response: Mapping[str, Any] | None = None
    signal: tuple[int, str] | None = None  # (signal seq, wait id) that this answer consumes
    cached: CacheRow | None = None
    child: str | None = None  # the child run whose end this is
    next: NewRun | None = None  # the run that continues this one


class AtEach(Struct, frozen=True):
    """The handler is entered again at the end of each of its waits, or at `due_ms`. Those of the steps `drops`, which
    are open, are not needed any more. `received_seq`: the last end of a wait that it has received."""

    drops: tuple[int, ...] = ()
    due_ms: int | None = None
    received_seq: int = 0


class Left(Struct, frozen=True):
    """The waits of a handler that has left, in the order of its calls. `again` is when it is entered again, or is
    None if that is at the end of the last of them."""

    waits: tuple[tuple[Suspend, f.WaitStep], ...]
    again: AtEach | None = None


class Result(Struct, gc=False):
    """`place`: of a limit, which the attempt leaves that has ended with this."""

    fact: f.Fact
    payload: Payload
    place: Place | None = None


def assigned(node: Node, output: Any) -> list[list[Any]]:
    """Return the patch of the variables that `assign` of this node makes of its output, if it has one."""
    return [["set", node.policy.assign, output]] if node.policy.assign else []


class Arrivals:
    """The arrivals of one run while it is in memory, in order. `changed` is set when the loop has something to
    handle."""

    __slots__ = ("changed", "logs", "results")

    def __init__(self) -> None:
        self.results: deque[Result] = deque()
        self.logs: deque[Log] = deque()
        self.changed = asyncio.Event()

    def add(self, fact: f.Fact, payload: Payload | None = None) -> None:
        self.results.append(Result(fact, payload or Payload()))
        self.changed.set()

    def put(self, result: Result) -> None:
        self.results.append(result)
        self.changed.set()

    def add_first(self, fact: f.Fact) -> None:
        """Add a result before everything that is here: once it is acknowledged, nothing that ended meanwhile may start
        anything."""
        self.results.appendleft(Result(fact, Payload()))
        self.changed.set()

    def add_log(self, log: Log) -> None:
        self.logs.append(log)
        self.changed.set()

    def add_quietly(self, log: Log) -> None:
        """Add a log to the next turn, which the caller sees to."""
        self.logs.append(log)

    def rekey(self, translate: Callable[[NodeKey], NodeKey]) -> None:
        """Change the keys: the run follows another plan; what is here is about the same nodes, under the keys that they
        have there."""
        for result in self.results:
            fact: Any = result.fact
            if hasattr(fact, "key"):
                result.fact = replace(fact, key=translate(fact.key))
        self.logs = deque((translate(key), attempt, text, stream) for key, attempt, text, stream in self.logs)


MIB = 1024 * 1024
SMALL_BYTES = 64 * 1024  # a run that holds less is not measured, and never waits for room
HINT = "Return less data, for example a URL instead of a file, or split the work into several runs."


def run_error(limits: RunLimits) -> ErrorInfo:
    message = f"the outputs of this run are larger than {_size(limits.run_bytes)} in total"
    return ErrorInfo("limit_run_bytes", message, hint=HINT)


def family_error(limits: RunLimits) -> ErrorInfo:
    message = f"the outputs of this run and of all runs with the same root are larger than {_size(limits.family_bytes)}"
    return ErrorInfo("limit_family_bytes", message, hint=HINT)


def without_output(result: Result, error: ErrorInfo) -> Result:
    """Return the failure in place of a result whose output does not fit any more."""
    match result.fact:
        case f.NodeDone(at_ms, key, attempt) | f.RegionSizeKnown(at_ms, key, attempt):
            return Result(f.NodeErred(at_ms, key, attempt, error), Payload())
        case f.WaitAnswered(at_ms, key, attempt, _, by):
            payload = Payload(signal=result.payload.signal, child=result.payload.child)
            return Result(f.WaitFailed(at_ms, key, attempt, error, by), payload)
        case _:
            return result


def _size(bytes: int) -> str:
    return f"{bytes // MIB:,} MiB" if bytes >= MIB else f"{bytes:,} bytes"
