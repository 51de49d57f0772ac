"""Keeps child processes for the next call: at most so many at the same time, and one call at a time in each. Runs take
turns, so that one with many calls does not keep the others waiting.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from typing import Any, Final, Generic, Protocol, TypeVar


class Room:
    """A limit on calls at the same time, for one event loop. Runs that wait take turns, and the calls of one run keep
    their order, as in `executor.blocks.sandbox.workers` between threads. The cost does not depend on how many wait."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # by run; the next one first

    @property
    def is_full(self) -> bool:
        return self._free == 0

    async def enter(self, run: str) -> None:
        """Returns when the caller has a place, which it has to `leave`."""
        if self._free:
            self._free -= 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(run, deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():  # it had just got one
                self.leave()
            raise

    def leave(self) -> None:
        """Give the place to the next run that waits."""
        while self._waiting:
            run = next(iter(self._waiting))
            queue = self._waiting.pop(run)
            place = queue.popleft()
            while place.cancelled() and queue:
                place = queue.popleft()
            if queue:  # after all others
                self._waiting[run] = queue
            if not place.cancelled():
                place.set_result(None)
                return
        self._free += 1


IDLE_S: Final = 60.0  # then children without work end


class Child(Protocol):
    @property
    def is_ready(self) -> bool:
        """Return whether it can take a call: one that has ended cannot."""
        ...

    def kill(self) -> None:
        """End it, whatever it does."""
        ...


C = TypeVar("C", bound=Child)


class Children(Generic[C]):
    """At most `most` children. `start` starts one. They belong to the event loop of the first call."""

    def __init__(self, start: Callable[[], Awaitable[C]], most: int, *, idle_s: float = IDLE_S) -> None:
        self._start = start
        self._room = Room(most)
        self._idle: list[C] = []
        self._idle_s = idle_s
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @asynccontextmanager
    async def one(self, run: str, waiting: Callable[[], AbstractContextManager[Any]]) -> AsyncIterator[C]:
        """Lend a child for one call. Runs take turns; `waiting` is entered while a place or a new child is not there
        yet. The child is killed when an exception leaves the block. Raises the errors of `start`."""
        with waiting() if self._room.is_full or not self._idle else nullcontext():
            await self._room.enter(run)
            try:
                one = self._pop_idle() or await self._started()
            except BaseException:
                self._room.leave()
                raise
        try:
            yield one
        except BaseException:
            one.kill()
            raise
        else:
            self._put_back(one)
        finally:
            self._room.leave()

    def close(self) -> None:
        """End the children."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._end_idle()

    def _pop_idle(self) -> C | None:
        while self._idle:
            one = self._idle.pop()
            if one.is_ready:
                return one
            one.kill()  # it has ended since
        return None

    async def _started(self) -> C:
        starting = asyncio.ensure_future(self._start())
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(self._started_late)
            raise

    def _started_late(self, starting: asyncio.Future[C]) -> None:
        if not starting.cancelled() and starting.exception() is None:
            self._put_back(starting.result())

    def _put_back(self, one: C) -> None:
        if self._closed:
            one.kill()
            return
        self._idle.append(one)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._idle_s, self._end_idle)

    def _end_idle(self) -> None:
        while self._idle:
            self._idle.pop().kill()


def ending(code: int | None) -> str:
    """Return how a process with this exit code ended."""
    if code is not None and code < 0 and sys.platform != "win32":
        with suppress(ValueError):
            return signal.Signals(-code).name
    return f"exit code {code}"
