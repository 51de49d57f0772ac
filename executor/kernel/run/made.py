"""An entry of a durable function: the state in which it begins, and its calls until their ends are delivered."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from executor.errors import StepFailed, StepTimeout
from executor.kernel.core.events import ErrorInfo, UpdateAnswered
from executor.kernel.core.state import Step
from executor.kernel.handler.base import MakeSuspend
from executor.kernel.handler.durable import Work
from executor.kernel.process.lane_cache import Kept
from executor.kernel.run.recorded import Recorded
from executor.kernel.run.step_work import Call


class Entry(Struct, frozen=True):
    """The state in which an entry of a durable function begins. `known`: the steps of earlier entries, as they were
    when it began; `open`: those of them that are open waits. `block`: the name of its block. `seed`, `by` (who started
    the run) and `started_ms` are the same in each. `drains`: whether the steps that change something outside end before
    it does, because its run was cancelled. `keep`: called with its driver when it leaves; True if that is kept."""

    block: str
    attempt: int
    seed: str
    by: str | None
    started_ms: int
    known: Mapping[int, Step]
    open: frozenset[int]
    recorded: Recorded
    drains: Callable[[], bool] = bool
    keep: Callable[[Kept], bool] = bool


class Made:
    """A call that the code has made in this entry. One of `work`, `suspend`, `due_ms` and `event` is set. `times`: how
    often the work has failed; `pause_ms`: when it begins again. `box`: see `DurableCalls.wait`. `event`: an event that
    is all that the call does, and its output. `needs`: the wait that has to be
    open before. `is_dropped`: its work is not needed any more."""

    __slots__ = (
        "box", "call", "due_ms", "event", "future", "is_dropped", "needs", "pause_ms", "stoppable", "suspend", "task",
        "times", "work",
    )  # fmt: skip

    def __init__(
        self,
        call: Call,
        future: asyncio.Future[Any],
        work: Work | None = None,
        suspend: MakeSuspend | None = None,
        due_ms: int | None = None,
        box: str | None = None,
        event: tuple[UpdateAnswered, bytes] | None = None,
    ) -> None:
        self.box = box
        self.event = event
        self.call = call
        self.future = future
        self.work = work
        self.suspend = suspend
        self.due_ms = due_ms
        self.task: asyncio.Task[None] | None = None
        self.stoppable = self.is_dropped = False
        self.times = 0
        self.pause_ms: int | None = None
        self.needs = 0


class Boxes:
    """Answers to waits that the code has dropped before they were delivered: they are for the next wait for the same.
    This follows from the order of the arrivals, so nothing is recorded."""

    def __init__(self) -> None:
        self._answers: defaultdict[str, deque[Any]] = defaultdict(deque)

    def answer(self, made: Made) -> bool:
        """Returns True if there is an answer for this wait, which it gets."""
        if made.box is None or not self._answers[made.box]:
            return False
        made.future.set_result(self._answers[made.box].popleft())
        return True

    def pass_on(self, box: str, answer: Any, calls: Mapping[int, Made]) -> None:
        """Give an answer to the first of the calls that waits for it, or keep it."""
        waiting = (one for _, one in sorted(calls.items()) if one.box == box and not one.future.done())
        if (one := next(waiting, None)) is not None:
            one.future.set_result(answer)
        else:
            self._answers[box].append(answer)


def raised(error: ErrorInfo) -> BaseException:
    if error.code == "wait_expired":
        return TimeoutError(error.message)
    kind = StepTimeout if error.code == StepTimeout.code else StepFailed
    return kind(
        error.message,
        code=error.code,
        retryable=error.retryable,
        hint=error.hint,
        traceback=error.traceback,
        type=error.type,
        arguments=error.args,
    )
