"""Notices commits of other processes to the runs that are read here, or waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

from executor.errors import StoreError
from executor.kernel.read.hub import Bell, Hub
from executor.kernel.store.topics.store import Store

LOOK_S = 1.0
# First pause after a new reader. It doubles up to LOOK_S, by when the executing process knows of the reader.
QUICK_S = 0.05
RUNS_PER_LOOK = 10_000  # of more that are waited for, looks are rarer


class Lookout:
    """Polls for commits of other processes to the runs that are read here, and for signals that were lost: one query a
    second for all of them, however many readers there are, and none while nothing is read. Readers of a run that the
    bus names read at once: there is more of it, so a look first would only cost time."""

    def __init__(self, store: Store, hub: Hub) -> None:
        self._store = store
        self._hub = hub
        self._task: asyncio.Task[None] | None = None
        self._settled: dict[str, int] = {}  # the last event by run, where no reader had less
        self._bell = Bell()
        self._pause_s = LOOK_S
        self._look_at_s = 0.0  # at all runs, by the event loop's clock

    def begin(self) -> None:
        """Look while the hub has readers. Call it for each reader that enters."""
        now_s = asyncio.get_running_loop().time()
        is_new = self._task is None or self._task.done()
        if self._hub.elsewhere.is_connected:
            self._pause_s = QUICK_S
            self._look_at_s = now_s + QUICK_S if is_new else min(self._look_at_s, now_s + QUICK_S)
            self._bell.ring()
        elif is_new:
            self._pause_s = LOOK_S
            self._look_at_s = now_s + LOOK_S
        if is_new:
            self._settled = {}
            self._task = asyncio.create_task(self._look(), name="lookout")

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

    async def _look(self) -> None:
        while True:
            await self._next()
            watched = self._hub.watched()
            if not watched:
                return
            try:
                found = await self._store.last_seqs(watched)
            except StoreError:
                continue  # readers meet it themselves
            self._tell(watched, found)
            for run in watched:
                self._hub.elsewhere.follow(run)
            if len(self._settled) > len(found):
                self._settled = {run: seq for run, seq in self._settled.items() if run in found}

    async def _next(self) -> None:
        """Wait until the next look. The bell signals that its time has changed."""
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
    second for all of them. A read of each row a second costs more than the runs, when thousands wait in the queue."""

    def __init__(self, store: Store, callers: Callers) -> None:
        self._store = store
        self._callers = callers
        self._seqs: dict[str, int] = {}  # as callers have read them
        self._task: asyncio.Task[None] | None = None

    def expect(self, run: str, seq: int) -> None:
        """A caller has read this row, has a future of `watch_left`, and waits for it."""
        self._seqs[run] = seq
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look(), name="ends")

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _look(self) -> None:
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
