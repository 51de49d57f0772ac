"""A reader's place in the journal of a run. It carries no queue: a slow reader costs nothing but its own reads.

And the pages that readers of one run share: a hundred readers of a run cost one read of each page. Events are never
changed, so a full page stays in memory; a page that may still grow is shared only by readers who ask while it is being
read. Pages end at multiples of their size: wherever readers began, they soon ask for the same ones.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from executor.runtime.find import find_run
from executor.runtime.hub import Hub, Lookout
from executor.store.contract import Store
from executor.store.rows import TERMINAL, Record

# Without a signal a reader looks again: should one be lost, this is what it costs.
PATIENCE_S = 30.0

PAGE = 1_000
KEPT_BYTES = 16 * 1024 * 1024

Key = tuple[str, int]  # run, and the seq the page begins behind


class Cursor:
    """Behind event `after` of `run`. Take `watch` BEFORE `take`, and wait for it when `take` found nothing: then
    nothing falls in between. Commits of this process are signalled at once, those of others by the lookout."""

    def __init__(self, store: Store, hub: Hub, pages: Pages, lookout: Lookout, run: str, after: int) -> None:
        self._store = store
        self._hub = hub
        self._pages = pages
        self._lookout = lookout
        self._run = run
        self._after = after
        self._idle = True  # since the last take
        self._ended = False

    def watch(self) -> asyncio.Future[None]:
        """Done at the next commit to the run. Cancel it when it is not needed any more."""
        self._lookout.begin()
        return self._hub.watch(self._run)

    async def take(self) -> list[Record] | None:
        """The next batch; [] when there is nothing yet, None at the end. Raises NotFound: no such run (any more)."""
        if self._ended:
            return None
        records = await self._pages.read(self._run, self._after)
        if records:
            self._after = records[-1].seq
            self._idle = False
            self._ended = records[-1].type == "run.finished"
            return records
        if self._idle:  # the row tells that the run had ended before `after`, or was deleted
            row = await find_run(self._store, self._run)
            if row.status in TERMINAL and self._after >= row.seq:
                return None
        self._idle = True
        return records


class Pages:
    """Of one process. `kept_bytes`: of outputs and data; what was used longest ago leaves first."""

    def __init__(self, store: Store, hub: Hub, kept_bytes: int = KEPT_BYTES) -> None:
        self._store = store
        self._hub = hub
        self._kept_bytes = kept_bytes
        self._size = 0
        self._full: OrderedDict[Key, tuple[list[Record], int]] = OrderedDict()
        self._reading: dict[Key, tuple[int, asyncio.Task[list[Record]]]] = {}

    async def read(self, run: str, after: int) -> list[Record]:
        """What the journal holds behind `after`, up to the end of that page; shared: do not change the list. Everything
        committed and signalled before the call is in it. Raises what the store raises."""
        key = run, after
        full = self._full.get(key)
        if full is not None:
            self._full.move_to_end(key)
            return full[0]
        reading = self._reading.get(key)
        if reading is None or reading[0] != self._hub.signals:  # one that began before the last commit may not see it
            task = asyncio.create_task(self._read(key), name=f"journal {run} behind {after}")
            reading = self._reading[key] = self._hub.signals, task
            task.add_done_callback(lambda done: self._done(key, done))
        # Shielded: one of those who wait may leave.
        return await asyncio.shield(reading[1])

    async def _read(self, key: Key) -> list[Record]:
        run, after = key
        limit = PAGE - after % PAGE
        records = await self._store.read_events(run, after, limit)
        if len(records) == limit:
            self._keep(key, records)
        return records

    def _done(self, key: Key, task: asyncio.Task[list[Record]]) -> None:
        if self._reading.get(key, (0, None))[1] is task:
            del self._reading[key]
        if not task.cancelled():
            task.exception()  # readers who waited have it; if all have left, asyncio must not report it as lost

    def _keep(self, key: Key, records: list[Record]) -> None:
        size = sum(200 + len(record.data or b"") + len(record.output or b"") for record in records)
        if key in self._full or size > self._kept_bytes:
            return
        self._full[key] = records, size
        self._size += size
        while self._size > self._kept_bytes:
            self._size -= self._full.popitem(last=False)[1][1]
