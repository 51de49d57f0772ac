"""Runs take turns: a few of their steps in one pass of the event loop, then sockets and timers have theirs.

A thousand runs with a hundred branches each may become ready at the same moment, and asyncio looks at a socket again
only after all of them. A step is what a run does between two waits: it is claimed and read, it decides and commits, an
attempt begins.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

STEPS_MAX: Final = 32  # in one pass; a step takes a quarter of a millisecond


class Turns:
    """Of one process; for one event loop. In order of arrival."""

    def __init__(self, most: int = STEPS_MAX) -> None:
        self._most = most
        self._left = most
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._next_pass: asyncio.Handle | None = None

    async def turn(self) -> None:
        """Until a step may be made; nearly always that is at once."""
        loop = asyncio.get_running_loop()
        if self._next_pass is None:
            self._next_pass = loop.call_soon(self._pass)
        if self._left > 0 and not self._waiting:
            self._left -= 1
            return
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _pass(self) -> None:
        used = self._left < self._most or bool(self._waiting)
        self._left = self._most
        while self._waiting and self._left > 0:
            turn = self._waiting.popleft()
            if not turn.done():  # else who waited was cancelled
                turn.set_result(None)
                self._left -= 1
        self._next_pass = asyncio.get_running_loop().call_soon(self._pass) if used else None
