"""Places that runs share in turn, so that one with many calls does not keep the others waiting."""

from __future__ import annotations

import asyncio
from collections import deque


class Room:
    """A limit on calls at the same time, for one event loop. Runs that wait take turns, and the calls of one run keep
    their order, as in `executor.blocks.sandbox.fair` between threads. The cost does not depend on how many wait."""

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
