"""A reader's place in the journal of a run, the pages that readers of one run share, and the watch for commits of
other processes.

A cursor carries no queue: a slow reader costs nothing but its own reads, and a hundred readers of a run cost one read
of each page. Events are never changed, so a full page stays in memory; a page that may still grow is shared only by
readers who ask while it is being read. Pages end at multiples of their size: wherever readers began, they soon ask
for the same ones.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Iterable
from typing import Any, Protocol, TypeVar

from executor.errors import StoreError
from executor.kernel.read.find import find_run
from executor.kernel.read.hub import Hub, size_of
from executor.kernel.read.watchers import Bell
from executor.kernel.store.run_rows import Record, RunRow
from executor.kernel.store.statements import TERMINAL
from executor.kernel.store.topics.store import Store

LOOK_S = 1.0
# First pause after a new reader. It doubles up to LOOK_S, by when the executing process knows of the reader.
QUICK_S = 0.05
RUNS_PER_LOOK = 10_000  # of more that are waited for, looks are rarer


class CommitPoll:
    """Polls for commits of other processes to the runs that are read here: one query a second for all of them, and none
    while nothing is read, or nothing was committed. Readers of a run that the bus names read at once."""

    def __init__(self, store: Store, hub: Hub) -> None:
        self._store = store
        self._hub = hub
        self._task: asyncio.Task[None] | None = None
        self._version: int | None = None  # of the database, before the last look
        self._settled: dict[str, int] = {}  # the last event by run, where no reader had less
        self._bell = Bell()
        self._pause_s = LOOK_S
        self._look_at_s = 0.0  # at all runs, by the event loop's clock

    def begin(self) -> None:
        """Look while the hub has readers. Call it for each reader that enters."""
        now_s = asyncio.get_running_loop().time()
        is_new = self._task is None or self._task.done()
        if self._hub.peers.is_connected:
            self._pause_s = QUICK_S
            self._look_at_s = now_s + QUICK_S if is_new else min(self._look_at_s, now_s + QUICK_S)
            self._bell.ring()
        elif is_new:
            self._pause_s = LOOK_S
            self._look_at_s = now_s + LOOK_S
        if is_new:
            self._settled = {}
            self._task = asyncio.create_task(self._poll(), name="lookout")

    def changed(self, run: str | None) -> None:
        """Note that another process has committed to this run, or with None to any run."""
        if run is None:
            self._look_at_s = 0.0
            self._bell.ring()
        elif self._hub.has_readers(run):
            self._hub.grown_elsewhere(run)

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _poll(self) -> None:
        while True:
            await self._next()
            watched = self._hub.watched()
            if not watched:
                return
            try:
                version = await self._store.version()
                if version is not None and version == self._version and self._settled.keys() == set(watched):
                    continue
                found = await self._store.last_seqs(watched)
            except StoreError:
                continue  # readers meet it themselves
            self._version = version
            self._tell(watched, found)
            for run in watched:
                self._hub.peers.follow(run)
            if len(self._settled) > len(found):
                self._settled = {run: seq for run, seq in self._settled.items() if run in found}

    async def _next(self) -> None:
        while True:
            self._bell.clear()
            try:
                async with asyncio.timeout_at(self._look_at_s):
                    await self._bell.wait()
            except TimeoutError:
                break
        self._look_at_s = asyncio.get_running_loop().time() + self._pause_s
        self._pause_s = min(LOOK_S, 2 * self._pause_s)

    def _tell(self, runs: list[str], found: dict[str, int]) -> None:
        settled = self._settled
        for run, seq in [each for each in found.items() if settled.get(each[0]) != each[1]]:
            if self._hub.looked(run, seq):
                settled.pop(run, None)
            else:
                settled[run] = seq
        if len(found) < len(runs):
            for run in runs:
                if run not in found:
                    self._hub.looked(run, None)


class Callers(Protocol):
    """Callers who wait for runs that this process does not execute: see executor.kernel.run.owned."""

    def waited_elsewhere(self) -> Iterable[str]: ...

    def left_elsewhere(self, run: str) -> None: ...


class Ends:
    """Wakes callers who wait for runs that this process does not execute, when their journals have grown: one query a
    second for all of them."""

    def __init__(self, store: Store, callers: Callers) -> None:
        self._store = store
        self._callers = callers
        self._seqs: dict[str, int] = {}  # as callers have read them
        self._task: asyncio.Task[None] | None = None

    def expect(self, run: str, seq: int) -> None:
        """Record that a caller has read this row and waits for a future of `watch_left`."""
        self._seqs[run] = seq
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._poll(), name="ends")

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S * max(1.0, len(self._seqs) / RUNS_PER_LOOK))
            waited = self._callers.waited_elsewhere()
            self._seqs = {run: self._seqs[run] for run in waited if run in self._seqs}
            if not self._seqs:
                return
            try:
                found = await self._store.last_seqs(list(self._seqs))
            except StoreError:
                continue  # callers meet it themselves
            for run in [run for run, seq in self._seqs.items() if found.get(run) != seq]:
                del self._seqs[run]
                self._callers.left_elsewhere(run)


PAGE = 1_000
KEPT_BYTES = 16 * 1024 * 1024

Key = tuple[str, int]  # run, and the seq the page begins after
T = TypeVar("T")


class Cursor:
    """A place after event `after` of `run`. Commits of this process wake it at once, those of others by polling. Close
    it. `bell`: rings for other things as well."""

    def __init__(
        self, store: Store, hub: Hub, pages: Pages, lookout: CommitPoll, run: str, after: int, bell: Bell | None = None
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

    async def next_records(self) -> list[Record] | None:
        """Return the next batch; [] if there is nothing yet, None at the end. Raises NotFound if the run is gone."""
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
    """The journal pages that one process keeps, up to `kept_bytes`; the least recently used page leaves first."""

    def __init__(self, store: Store, hub: Hub, kept_bytes: int = KEPT_BYTES) -> None:
        self._store = store
        self._hub = hub
        self._kept_bytes = kept_bytes
        self._size = 0
        self._full: OrderedDict[Key, tuple[list[Record], int]] = OrderedDict()
        self._reading: dict[Hashable, tuple[int, asyncio.Task[Any]]] = {}

    async def read(self, run: str, after: int) -> list[Record]:
        """Return the journal after `after`, up to the end of that page, with all that was signalled before the call. It
        is shared: do not change the list."""
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
