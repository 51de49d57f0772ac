"""Wake-ups by run id, and live-only deltas. Carries no durable data: a missed wake-up costs time, never an event."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from executor.errors import StoreError
from executor.store.contract import Store

# Deltas a slow reader may be behind before the oldest are dropped: they are a view of what the journal will hold.
DELTAS_MAX = 1_000


class Watchers:
    """Futures by run id: all who wait for one thing to happen to a run. Who has left is not remembered."""

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


class Deltas:
    """The live-only pieces of text of one run, for one reader, from when it was made until `close`. Each has the seq
    behind which it belongs: that of the append that recorded the start of its attempt."""

    def __init__(self, leave: Callable[[Deltas], None]) -> None:
        self._items: deque[tuple[str, str, int]] = deque(maxlen=DELTAS_MAX)
        self._ready: asyncio.Future[None] | None = None
        self._leave = leave

    def put(self, key: str, text: str, seq: int) -> None:
        self._items.append((key, text, seq))
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(None)

    def take(self, seq: int | None = None) -> dict[str, str]:
        """What came since the last call, joined by node key; only what belongs behind event `seq` or an earlier one."""
        texts: dict[str, list[str]] = {}
        for _ in range(len(self._items)):
            key, text, behind = self._items.popleft()
            if seq is None or behind <= seq:
                texts.setdefault(key, []).append(text)
            else:
                self._items.append((key, text, behind))
        return {key: "".join(parts) for key, parts in texts.items()}

    def places(self) -> set[int]:
        """The seqs behind which there is something to take."""
        return {behind for _, _, behind in self._items}

    def watch(self) -> asyncio.Future[None]:
        """Done as soon as there is something to take. The same one until then: not to be cancelled."""
        if self._ready is None or self._ready.done():
            self._ready = asyncio.get_running_loop().create_future()
            if self._items:
                self._ready.set_result(None)
        return self._ready

    def close(self) -> None:
        self._leave(self)


class Hub:
    def __init__(self) -> None:
        self._commits = Watchers()
        self._deltas: dict[str, set[Deltas]] = {}
        self.messages = asyncio.Event()  # there may be something to send
        self.signals = 0  # so far; a read that began at another count may have missed a commit

    def signal(self, run: str) -> None:
        """Something was committed for `run`."""
        self.signals += 1
        self._commits.signal(run)

    def watch(self, run: str) -> asyncio.Future[None]:
        """A future for the next signal. Take it BEFORE reading the journal, then await it: nothing falls in between."""
        return self._commits.watch(run)

    def watched(self) -> list[str]:
        """The runs that have a waiting reader."""
        return self._commits.runs()

    def delta(self, run: str, key: str, text: str, seq: int = 0) -> None:
        """`seq`: of the append that recorded the start of the attempt that says this."""
        for reader in self._deltas.get(run, ()):
            reader.put(key, text, seq)

    def deltas(self, run: str) -> Deltas:
        """What handlers emit from now on. Close it."""

        def leave(reader: Deltas) -> None:
            readers = self._deltas.get(run, set())
            readers.discard(reader)
            if not readers:
                self._deltas.pop(run, None)

        reader = Deltas(leave)
        self._deltas.setdefault(run, set()).add(reader)
        return reader


LOOK_S = 1.0


class Lookout:
    """Notices what other processes commit to the runs that are read here: one query a second for all of them, however
    many readers there are, and none while nothing is read."""

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
