"""Wake-ups by run id, and live-only deltas. Carries no durable data: a missed wake-up costs time, never an event."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

# Deltas a slow reader may be behind before the oldest are dropped: they are a view of what the journal will hold.
DELTAS_MAX = 1_000


class _Deltas:
    __slots__ = ("items", "ready")

    def __init__(self) -> None:
        self.items: deque[tuple[str, str]] = deque(maxlen=DELTAS_MAX)
        self.ready = asyncio.Event()


class Hub:
    def __init__(self) -> None:
        self._waiters: dict[str, set[asyncio.Future[None]]] = {}
        self._deltas: dict[str, set[_Deltas]] = {}
        self.signals = 0  # so far; a read that began at another count may have missed a commit

    def signal(self, run: str) -> None:
        """Something was committed for `run`."""
        self.signals += 1
        for future in self._waiters.pop(run, ()):
            if not future.done():
                future.set_result(None)

    def watch(self, run: str) -> asyncio.Future[None]:
        """A future for the next signal. Take it BEFORE reading the journal, then await it: nothing falls in between."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiters = self._waiters.setdefault(run, set())
        waiters.add(future)
        future.add_done_callback(lambda done: self._forget(run, done))
        return future

    def _forget(self, run: str, future: asyncio.Future[None]) -> None:
        waiters = self._waiters.get(run)
        if waiters is not None:
            waiters.discard(future)
            if not waiters:
                del self._waiters[run]

    def delta(self, run: str, key: str, text: str) -> None:
        for reader in self._deltas.get(run, ()):
            reader.items.append((key, text))
            reader.ready.set()

    async def deltas(self, run: str) -> AsyncIterator[tuple[str, str]]:
        """(node key, text) pieces as handlers emit them; ends when the reader is closed."""
        reader = _Deltas()
        self._deltas.setdefault(run, set()).add(reader)
        try:
            while True:
                await reader.ready.wait()
                reader.ready.clear()
                while reader.items:
                    yield reader.items.popleft()
        finally:
            readers = self._deltas[run]
            readers.discard(reader)
            if not readers:
                del self._deltas[run]
