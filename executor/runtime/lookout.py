"""Notices what other processes commit to the runs that are being read here: one query a second for all of them, however
many readers there are, and none while nothing is read."""

from __future__ import annotations

import asyncio

from executor.errors import StoreError
from executor.runtime.hub import Hub
from executor.store.contract import Store

LOOK_S = 1.0


class Lookout:
    def __init__(self, store: Store, hub: Hub) -> None:
        self._store = store
        self._hub = hub
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Look while the hub has watchers. Call it with each watch."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look(), name="lookout")

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _look(self) -> None:
        """A run is signalled when its journal has grown or is gone, and once when it is seen for the first time:
        between its reader's read and this look something may have been committed."""
        seen: dict[str, int | None] = {}
        while True:
            await asyncio.sleep(LOOK_S)
            runs = self._hub.watched()
            if not runs:
                return
            try:
                found = await self._store.last_seqs(runs)
            except StoreError:
                continue  # readers meet it themselves
            for run in runs:
                if run not in seen or seen[run] != found.get(run):
                    self._hub.signal(run)
            seen = {run: found.get(run) for run in runs}
