"""Runs take turns: a few of their steps in one pass of the event loop, then sockets and timers have theirs.

A thousand runs with a hundred branches each may become ready at the same moment, and asyncio looks at a socket again
only after all of them. A step is what a run does between two waits: it is claimed and read, it decides and commits, an
attempt begins.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

STEPS_MAX: Final = 64  # in one pass; a step takes an eighth of a millisecond


class Turns:
    """Of one process; for one event loop. In order of arrival."""

    def __init__(self, most: int = STEPS_MAX) -> None:
        self._most = most
        self._left = most
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._next_pass: asyncio.Handle | None = None

    async def turn(self) -> None:
        """Until a step may be made; nearly always that is at once."""
        if not self.take():
            await self.wait()

    def take(self) -> bool:
        """Whether a step may be made at once. Else `wait`."""
        if self._left > 0 and not self._waiting:
            self._left -= 1
            self._look()
            return True
        return False

    async def wait(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._look()
        await turn

    def _look(self) -> None:
        """A pass of the loop costs as much as a tenth of a step, so steps are counted anew only when many were made."""
        if self._next_pass is None and (self._waiting or self._left <= self._most // 2):
            self._next_pass = asyncio.get_running_loop().call_soon(self._pass)

    def _pass(self) -> None:
        self._next_pass = None
        self._left = self._most
        while self._waiting and self._left > 0:
            turn = self._waiting.popleft()
            if not turn.done():  # else who waited was cancelled
                turn.set_result(None)
                self._left -= 1
        self._look()
