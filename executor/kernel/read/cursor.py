"""A reader's place in the journal of a run. It carries no queue: a slow reader costs nothing but its own reads.

And the pages that readers of one run share: a hundred readers of a run cost one read of each page. Events are never
changed, so a full page stays in memory; a page that may still grow is shared only by readers who ask while it is being
read. Pages end at multiples of their size: wherever readers began, they soon ask for the same ones.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, TypeVar

from executor.kernel.read.find import find_run
from executor.kernel.read.hub import Bell, Hub
from executor.kernel.read.lookout import Lookout
from executor.kernel.read.tail import size_of
from executor.kernel.store.run_rows import Record, RunRow
from executor.kernel.store.statements import TERMINAL
from executor.kernel.store.topics.store import Store

PAGE = 1_000
KEPT_BYTES = 16 * 1024 * 1024

Key = tuple[str, int]  # run, and the seq the page begins after
T = TypeVar("T")


class Cursor:
    """Behind event `after` of `run`. `take` what there is, and `wait` when it was nothing. Commits of this process are
    signalled at once, those of others by the lookout. Close it. `bell`: rings for other things as well."""

    def __init__(
        self, store: Store, hub: Hub, pages: Pages, lookout: Lookout, run: str, after: int, bell: Bell | None = None
    ) -> None:
        self.after = after
        self.signalled = True  # since the last take began
        self._bell = bell or Bell()
        self._store = store
        self._hub = hub
        self._pages = pages
        self._run = run
        self._idle = True  # since the last take
        self._ended = False
        hub.enter(run, self)
        lookout.begin()

    async def take(self) -> list[Record] | None:
        """Return the next batch; [] if there is nothing yet, None at the end. Raises NotFound if there is no such run
        (any more)."""
        if self._ended:
            return None
        self._bell.clear()
        self.signalled = False
        records = await self._pages.read(self._run, self.after)
        if records:
            self.after = records[-1].seq
            self._idle = False
            self._ended = records[-1].type == "run.finished"
            return records
        # The row shows whether the run had ended before `after`, or was deleted.
        if self._idle and self._hub.tails.behind(self._run, self.after) is None:
            row = await self._pages.row(self._run)
            if row.status in TERMINAL and self.after >= row.seq:
                return None
        self._idle = True
        return records

    def wake(self) -> None:
        self.signalled = True
        self._bell.ring()

    async def wait(self) -> None:
        """Wait until the bell has rung since the last take, or the last wait, began."""
        await self._bell.wait()
        self._bell.clear()

    def close(self) -> None:
        self._hub.leave(self._run, self)


class Pages:
    """The journal pages that one process keeps. `kept_bytes` bounds outputs and data; the least recently used page
    leaves first."""

    def __init__(self, store: Store, hub: Hub, kept_bytes: int = KEPT_BYTES) -> None:
        self._store = store
        self._hub = hub
        self._kept_bytes = kept_bytes
        self._size = 0
        self._full: OrderedDict[Key, tuple[list[Record], int]] = OrderedDict()
        self._reading: dict[Hashable, tuple[int, asyncio.Task[Any]]] = {}

    async def read(self, run: str, after: int) -> list[Record]:
        """Return the journal after `after`, up to the end of that page. It is shared: do not change the list.
        Everything committed and signalled before the call is in it. Raises what the store raises."""
        tail = self._hub.tails.behind(run, after)
        if tail is not None:
            return tail
        key = run, after
        full = self._full.get(key)
        if full is not None:
            self._full.move_to_end(key)
            return full[0]
        return await self._share(key, lambda: self._read(key))

    async def row(self, run: str) -> RunRow:
        """Return the row of the run, shared in the same way. Raises NotFound."""
        return await self._share(run, lambda: find_run(self._store, run))

    async def _share(self, key: Hashable, read: Callable[[], Coroutine[Any, Any, T]]) -> T:
        reading = self._reading.get(key)
        if reading is None or reading[0] != self._hub.signals:  # one that began before the last commit may not see it
            task = asyncio.create_task(read(), name=f"read {key}")
            reading = self._reading[key] = self._hub.signals, task
            task.add_done_callback(lambda done: self._done(key, done))
        # Shielded: one of those who wait may leave.
        found: T = await asyncio.shield(reading[1])
        return found

    async def _read(self, key: Key) -> list[Record]:
        run, after = key
        limit = PAGE - after % PAGE
        records = await self._store.read_events(run, after, limit)
        if len(records) == limit:
            self._keep(key, records)
        return records

    def _done(self, key: Hashable, task: asyncio.Task[Any]) -> None:
        if self._reading.get(key, (0, None))[1] is task:
            del self._reading[key]
        if not task.cancelled():
            task.exception()  # readers who waited have it; if all have left, asyncio must not report it as lost

    def _keep(self, key: Key, records: list[Record]) -> None:
        size = size_of(records)
        if key in self._full or size > self._kept_bytes:
            return
        self._full[key] = records, size
        self._size += size
        while self._size > self._kept_bytes:
            self._size -= self._full.popitem(last=False)[1][1]
