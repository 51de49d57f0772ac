"""Refuses numbers of steps that the next entry of a handler could give to other calls.

Steps have the numbers of their calls. Branches side by side, each with a step after another, take them in the order in
which their work ends, which is another one each time: the next entry would give a branch the results of another.

A branch is a task or a thread. It may take its first number at any time: tasks begin in the order in which they are
made. It may take a further one if since its first all others were taken by tasks that it began and that are over. All
tasks are begun by the main one, which runs the handler. Threads begin in any order: two at the same time are refused.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from msgspec import Struct

from executor.errors import BlockError

Branch = asyncio.Task[Any] | threading.Thread


class _Claimer(Struct, eq=False):
    """A branch that takes numbers of steps. `above`: ids of the branches that began it, as far as they had a number
    then."""

    branch: Any
    first: int
    last: int
    above: tuple[int, ...]

    @property
    def over(self) -> bool:
        return self.branch.done() if isinstance(self.branch, asyncio.Task) else not self.branch.is_alive()


class StepOrder:
    """The order in which branches of one attempt number their steps. `refused`: the first error of a call that cannot
    be made again, which the handler may raise in a group with others."""

    __slots__ = ("_calling", "_claimers", "_lock", "_main", "_n", "refused")

    def __init__(self, main: asyncio.Task[Any] | None) -> None:
        self._main: tuple[Branch | None, ...] = (main,)
        self._claimers: dict[int, _Claimer] = {}
        self._calling: threading.Thread | None = None
        self._lock = threading.Lock()
        self._n = 0
        self.refused: BlockError | None = None

    def claim(self, name: str) -> int:
        """Return the next number. Raises BlockError: the next entry could give it to another call."""
        with self._lock:
            self._claim(self._n + 1, name)
            self._n += 1
            return self._n

    def _claim(self, n: int, name: str) -> None:
        branch = _branch()
        if isinstance(branch, threading.Thread) and len(self._main) == 1:
            self._main = (*self._main, branch)  # a function in a thread: what calls first is its main branch
        is_main = branch in self._main
        claimer = self._claimers.get(id(branch))
        if is_main or claimer is not None:
            since = claimer.first if claimer is not None and not is_main else 0
            for other in self._claimers.values():
                if other is claimer or other.last < since:
                    continue
                if not (other.over and (is_main or id(branch) in other.above)):
                    raise self._unordered(name)
        if claimer is not None:
            claimer.last = n
            return
        order, above = _above.get()
        above = above if order is self else ()
        self._claimers[id(branch)] = _Claimer(branch, n, n, above)
        if not is_main:
            _above.set((self, (*above, id(branch))))

    @contextmanager
    def in_thread(self, name: str) -> Iterator[None]:
        """Make a call of the present thread, up to its result. Raises BlockError if another thread is in one."""
        me = threading.current_thread()
        with self._lock:
            if self._calling not in (None, me):
                raise self._unordered(name)
            first, self._calling = self._calling is None, me
        try:
            yield
        finally:
            if first:
                self._calling = None

    def _unordered(self, name: str) -> BlockError:
        message = (
            f"step {name!r} was begun in a branch while other branches begin steps, too: after a wait or a crash, they "
            "could get each other's results"
        )
        hint = (
            "make all calls before any is awaited, as in `asyncio.gather(ctx.step(…), ctx.step(…))`, with one step a "
            "branch, or run the branches one after another"
        )
        return self.refuse(BlockError(message, code="steps_unordered", retryable=False, hint=hint))

    def refuse(self, error: BlockError) -> BlockError:
        self.refused = self.refused or error
        return error


_above: ContextVar[tuple[StepOrder | None, tuple[int, ...]]] = ContextVar("weft_claimers", default=(None, ()))


def _branch() -> Branch:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return task or threading.current_thread()
