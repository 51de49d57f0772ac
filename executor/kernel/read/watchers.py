"""Wake-ups of readers: futures of all who wait for a run, and a bell for one."""

from __future__ import annotations

import asyncio


class Watchers:
    """Futures by run id, all for one kind of event. A future that is done or cancelled is removed."""

    def __init__(self) -> None:
        self._by_run: dict[str, set[asyncio.Future[None]]] = {}

    def watch(self, run: str) -> asyncio.Future[None]:
        """Return a future that is done at the next event. Cancel it when it is no longer needed."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._by_run.setdefault(run, set()).add(future)
        future.add_done_callback(lambda done: self._forget(run, done))
        return future

    def signal(self, run: str) -> None:
        for future in self._by_run.pop(run, ()):
            if not future.done():
                future.set_result(None)

    def runs(self) -> list[str]:
        return list(self._by_run)

    def _forget(self, run: str, future: asyncio.Future[None]) -> None:
        watchers = self._by_run.get(run)
        if watchers is not None:
            watchers.discard(future)
            if not watchers:
                del self._by_run[run]


class Bell:
    """Wakes one reader, for any reason. Rung while its reader is awake, it rings at the next wait."""

    __slots__ = ("_rung", "_waiting")

    def __init__(self) -> None:
        self._rung = False
        self._waiting: asyncio.Future[None] | None = None

    def ring(self) -> None:
        self._rung = True
        waiting = self._waiting
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def clear(self) -> None:
        """To be called BEFORE looking for what it may have rung for: then nothing falls in between."""
        self._rung = False

    async def wait(self) -> None:
        """Returns at once if it has been rung since it was cleared."""
        if not self._rung:
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
