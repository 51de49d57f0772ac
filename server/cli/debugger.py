"""pdb for the code of a durable function: it stops in files of users alone, also where a coroutine waits."""

from __future__ import annotations

import asyncio
import pdb
import sys
from collections.abc import Iterable
from types import FrameType, TracebackType
from typing import Any

from executor.kernel.process.tracebacks import is_of_users


class Debugger(pdb.Pdb):
    def __init__(self) -> None:
        if sys.stdin.isatty():
            super().__init__(nosigint=True)
        else:  # lines from a pipe need no editor
            super().__init__(nosigint=True, stdin=sys.stdin, stdout=sys.stdout)

    def stop_here(self, frame: FrameType) -> bool:
        return _is_shown(frame) and super().stop_here(frame)

    def user_call(self, frame: FrameType, argument_list: None) -> None:
        """The first line of the function is soon enough."""

    def look_here(self) -> None:
        """Show the code that calls this."""
        frames: list[FrameType] = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
        self._look(reversed(frames))

    def look_at(self, task: asyncio.Task[Any]) -> None:
        """Show where the task waits."""
        frames: list[FrameType] = []
        awaited: Any = task.get_coro()
        while (frame := getattr(awaited, "cr_frame", None)) is not None:
            frames.append(frame)
            awaited = awaited.cr_await
        self._look(frames)

    def look_at_error(self, error: BaseException) -> None:
        """Show where it was raised."""
        at = error
        while at.__cause__ is not None:
            at = at.__cause__
        frames, traceback = [], at.__traceback__
        while traceback is not None:
            frames.append((traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno))
            traceback = traceback.tb_next
        self._show(frames)

    def _look(self, frames: Iterable[FrameType]) -> None:
        self._show([(frame, frame.f_lasti, frame.f_lineno) for frame in frames])

    def _show(self, places: list[tuple[FrameType, int, int]]) -> None:
        traceback: TracebackType | None = None
        for frame, instruction, line in reversed(places):
            if _is_shown(frame):
                traceback = TracebackType(traceback, frame, instruction, line)
        if traceback is not None:
            self.reset()
            self.interaction(None, traceback)


def _is_shown(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return not file.startswith("<") and is_of_users(file)
