"""The bound on the bytes that runs in memory hold. What a run will hold is estimated, before it is read, from the size
of all its outputs; what it does hold is known afterwards, and is less when loops let go of their iterations. A small
run never waits. A large run waits its turn, and is taken in any case when no other is in memory."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from executor.kernel.run.results import SMALL_BYTES


class Admission:
    """The admission of one process. `held` returns the bytes of the outputs of the runs in memory."""

    def __init__(self, most_bytes: int, held: Callable[[], int]) -> None:
        self._most_bytes = most_bytes
        self._held = held
        self._entering: dict[str, int] = {}  # taken, and not read yet
        self._waiting: deque[tuple[str, int, asyncio.Future[bool]]] = deque()
        self._closed = False

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def enter(self, run: str, bytes: int) -> bool:
        """Wait until there is room. Returns False if the process stops: the run stays out."""
        if bytes <= SMALL_BYTES:
            return not self._closed
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((run, bytes, turn))
        self.admit()
        return await turn

    def leaves_to_be_read(self, run: str, bytes: int) -> None:
        """Reserve the bytes of a run that is about to be reloaded; no waiting."""
        if bytes > SMALL_BYTES:
            self._entering[run] = bytes

    def entered(self, run: str) -> None:
        """Drop the estimate of a run that is in memory now, or will not come."""
        self._entering.pop(run, None)
        self.admit()

    def admit(self) -> None:
        while self._waiting:
            run, bytes, turn = self._waiting[0]
            used = self._held() + sum(self._entering.values())
            if not turn.done():  # else the waiting task was cancelled
                if used and used + bytes > self._most_bytes and not self._closed:
                    return
                if not self._closed:
                    self._entering[run] = bytes
                turn.set_result(not self._closed)
            self._waiting.popleft()

    def close(self) -> None:
        self._closed = True
        self.admit()
