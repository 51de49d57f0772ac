"""A future for the result of a commit, or for a turn: its awaiter continues in the very callback that settles it, not
one pass of the event loop later. A step of a run then takes one pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, TypeVar

T = TypeVar("T")

_Callback = Callable[[Any], object]


class Prompt(asyncio.Future[T]):
    """A future whose `settle` must not be called in a task, because it runs the tasks that wait."""

    __slots__ = ("_first",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._first: list[tuple[_Callback, Context]] = []

    def settle(self, result: T, error: BaseException | None) -> None:
        """Set the result or the error. A future that was cancelled stays so."""
        if self.done():
            return
        if error is None:
            self.set_result(result)
        else:
            self.set_exception(error)
        waiting, self._first = self._first, []
        for callback, context in waiting:
            context.run(callback, self)

    def add_done_callback(self, callback: _Callback, /, *, context: Context | None = None) -> None:
        if self.done():
            super().add_done_callback(callback, context=context)
        else:
            self._first.append((callback, copy_context() if context is None else context))

    def remove_done_callback(self, callback: _Callback, /) -> int:
        before = len(self._first)
        self._first = [each for each in self._first if each[0] != callback]
        return before - len(self._first) + super().remove_done_callback(callback)

    def cancel(self, msg: Any | None = None) -> bool:
        cancelled = super().cancel(msg)
        waiting, self._first = self._first, []
        for callback, context in waiting:
            super().add_done_callback(callback, context=context)
        return cancelled
