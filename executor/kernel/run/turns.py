"""Runs take turns: a few of their steps in one pass of the event loop, then sockets and timers have theirs.

A thousand runs with a hundred branches each may become ready at the same moment, and asyncio looks at a socket again
only after all of them. A step is what a run does between two waits: it is claimed and read, it decides and commits, an
attempt begins. Most take a twentieth of a millisecond; one that creates child runs takes many times as long, so a pass
ends after some time. A number of steps ends it too; it is rarely reached first, unless the clock stands still.

While many steps wait the loop is busy for long, and a request of another client needs six of its passes or more: for
its connection, its body, its commit, its answer. Passes are short then. A few steps are soon over, and those that are
made in one pass share a sync: that is worth more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

STEPS_MAX: Final = 256  # in one pass; steps that wait for another one cost a pass, a future, some of them a task
PASS_MS: Final = 5  # then no further step begins in it
SHORT_PASS_MS: Final = 1  # the same, while many wait
MANY: Final = 4


class Turns:
    """The turns of one process, for one event loop, in order of arrival. `now_ms` is a clock that may be set."""

    def __init__(
        self,
        now_ms: Callable[[], int],
        most: int = STEPS_MAX,
        pass_ms: int = PASS_MS,
        short_pass_ms: int = SHORT_PASS_MS,
        many: int = MANY,
    ) -> None:
        self._now_ms = now_ms
        self._most = most
        self._pass_ms = pass_ms
        self._short_pass_ms = short_pass_ms
        self._many = many
        self._left = most
        self._began_ms = now_ms()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._next_pass: asyncio.Handle | None = None

    async def turn(self) -> None:
        """Wait until a step may be made; nearly always that is at once."""
        if not self.take():
            await self.wait()

    def take(self) -> bool:
        """Returns True if a step may be made at once. If not, call `wait`."""
        if self._left <= 0 or self._waiting:
            return False
        if self._is_over():
            if self._next_pass is not None:
                return False
            self._began_ms = self._now_ms()  # maybe the last steps were long ago: it is counted from here
            self._ask_for_pass()
        self._left -= 1
        self._look()
        return True

    def again(self) -> bool:
        """Returns True if a task that has just waited and made a step may make another, before those that wait."""
        if self._left <= 0 or self._is_over():
            return False
        self._left -= 1
        return True

    async def wait(self, first: bool = False) -> None:
        """Wait for a turn; with `first` before those that wait."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if first:
            self._waiting.appendleft(turn)
        else:
            self._waiting.append(turn)
        self._look()
        await turn

    def _is_over(self) -> bool:
        limit_ms = self._short_pass_ms if len(self._waiting) > self._many else self._pass_ms
        return not 0 <= self._now_ms() - self._began_ms < limit_ms

    def _look(self) -> None:
        """A pass of the loop costs as much as a tenth of a step, so steps are counted anew only when many were made."""
        if self._waiting or self._left <= self._most // 2:
            self._ask_for_pass()

    def _ask_for_pass(self) -> None:
        if self._next_pass is None:
            self._next_pass = asyncio.get_running_loop().call_soon(self._pass)

    def _pass(self) -> None:
        """Let those that wait make their steps in this pass."""
        self._next_pass = None
        self._left = self._most
        self._began_ms = self._now_ms()
        while self._waiting and self._left > 0 and not self._is_over():
            turn = self._waiting.popleft()
            if not turn.done():  # else the waiter was cancelled
                self._left -= 1
                turn.set_result(None)
        self._look()
