"""Futures by run id: all who wait for one thing to happen to a run. Who has left is not kept."""

from __future__ import annotations

import asyncio


class Watchers:
    def __init__(self) -> None:
        self._by_run: dict[str, set[asyncio.Future[None]]] = {}

    def watch(self, run: str) -> asyncio.Future[None]:
        """Done when it happens next. Cancel it when it is not needed any more."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._by_run.setdefault(run, set()).add(future)
        future.add_done_callback(lambda done: self._forget(run, done))
        return future

    def signal(self, run: str) -> None:
        """It has happened."""
        for future in self._by_run.pop(run, ()):
            if not future.done():
                future.set_result(None)

    def runs(self) -> list[str]:
        """Those that have a watcher."""
        return list(self._by_run)

    def _forget(self, run: str, future: asyncio.Future[None]) -> None:
        watchers = self._by_run.get(run)
        if watchers is not None:
            watchers.discard(future)
            if not watchers:
                del self._by_run[run]
