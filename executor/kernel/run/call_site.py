"""The place in the code of a durable function at which it makes a call: line, task and group. For people only: no call
is matched by it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from types import CodeType, FrameType
from typing import Any, Final

from msgspec import Struct

from executor.kernel.handler.durable import group

LANE_RUNS: Final = "run_idle"  # the method of the lane in which its tasks run
ORIGIN_DEPTH: Final = 2  # frames: that of the public function that makes a coroutine, and that of the code


class CallSite(Struct, frozen=True):
    """`line`: in the file of the function, 0 if it is not known. `task`: 0 is the function itself; `above`: the task
    that began this one. `group`: of `weft.group`, joined by `/`."""

    line: int = 0
    task: int = 0
    above: int = 0
    group: str = ""


class LaneTask(asyncio.Task[Any]):
    """A task of a lane. `number`: in the order in which they begin. Its hash is the same in each entry, and so is the
    order of sets of tasks, such as that of a TaskGroup."""

    parent: LaneTask | None = None

    def __init__(self, coro: Any, number: int, seed: int, **options: Any) -> None:
        self.number = number
        self._hash = seed + number
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self._hash


def site_of(file: str) -> CallSite:
    """Return the place of the call that the code in `file` makes now. Call it in a task of the lane."""
    task = asyncio.current_task()
    if not isinstance(task, LaneTask):
        return CallSite(group=group.get())
    line = _on_stack(file) or _origin(task, file)
    above = task.parent
    while not line and above is not None:  # begun by a function of weft, such as `gather`
        line = _suspended_at(above.get_coro(), file)
        above = above.parent
    return CallSite(line, task.number, 0 if task.parent is None else task.parent.number, group.get())


def _on_stack(file: str) -> int:
    """Return the line of the innermost frame in `file`, or 0. The program around the lane may lie in the same file."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and (code := frame.f_code).co_name != LANE_RUNS:
        if code.co_filename == file:
            return frame.f_lineno
        frame = frame.f_back
    return 0


def _origin(task: LaneTask, file: str) -> int:
    """Return the line at which the coroutine of the task was made: `gather(step(1), step(2))`."""
    made = getattr(task.get_coro(), "cr_origin", None) or ()
    return next((line for name, line, _ in made if name == file), 0)


def _suspended_at(awaited: Any, file: str) -> int:
    """Return the line of the innermost frame in `file` at which a coroutine waits, or 0."""
    line = 0
    while isinstance(awaited, Coroutine):
        code: CodeType | None = getattr(awaited, "cr_code", None)
        frame = getattr(awaited, "cr_frame", None)
        if code is not None and frame is not None and code.co_filename == file:
            line = frame.f_lineno
        awaited = getattr(awaited, "cr_await", None)
    return line
