"""The least a durable program can do on SQLite with synchronous=FULL: each step's output is on disk before a step that
follows from it starts. Bare asyncio, one row a step in a table that only grows, one thread that writes, group commit.
Written by hand for each workload: no journal, no fences, no waits, no events for readers, no row for a run, no task for
a step.

Commits are made on a thread, because a program that also serves clients must not stop for a sync. What one pass of the
event loop writes goes to the thread at once, and one call back says that it is on disk.
"""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from queue import Empty, SimpleQueue

from benchmarks.measure import folder
from benchmarks.sizes import PAUSE_S, PAUSES

OUTPUT = b'{"ok":true}'
GROUP_MAX = 1024
ADD = "INSERT INTO steps (run, step, output) VALUES (?, ?, ?)"

Row = tuple[int, int, bytes]
Waiting = tuple[asyncio.Future[None], Row]


class Disk:
    """One table, one writing thread with group commit."""

    def __init__(self, path: Path) -> None:
        self.path = path / "floor.db"
        self._gathered: list[Waiting] = []
        self._queue: SimpleQueue[list[Waiting]] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def write(self, run: int, step: int) -> asyncio.Future[None]:
        """Done when the row is on disk."""
        if not self._gathered:
            self._loop.call_soon(self._hand_over)
        future: asyncio.Future[None] = self._loop.create_future()
        self._gathered.append((future, (run, step, OUTPUT)))
        return future

    def _hand_over(self) -> None:
        gathered, self._gathered = self._gathered, []
        self._queue.put(gathered)

    def close(self) -> None:
        self._queue.put([])
        self._thread.join()

    def _serve(self) -> None:
        db = connect(self.path)
        while group := self._queue.get():
            try:
                while len(group) < GROUP_MAX and (more := self._queue.get_nowait()):
                    group += more
            except Empty:
                pass
            if len(group) == 1:
                db.execute(ADD, group[0][1])  # commits itself
            else:
                db.execute("BEGIN")
                db.executemany(ADD, [row for _, row in group])
                db.execute("COMMIT")
            self._loop.call_soon_threadsafe(_resolve, group)
        db.close()


def connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE IF NOT EXISTS steps (run INTEGER, step INTEGER, output BLOB)")
    return db


def _resolve(group: list[Waiting]) -> None:
    for future, _ in group:
        future.set_result(None)


@asynccontextmanager
async def _disk() -> AsyncIterator[Disk]:
    with folder() as path:
        disk = Disk(path)
        await disk.write(-1, 0)  # the table is there
        try:
            yield disk
        finally:
            disk.close()


async def _step() -> bytes:
    return OUTPUT


async def _chain(disk: Disk, run: int, steps: int) -> None:
    for step in range(steps):
        await _step()
        await disk.write(run, step)


async def _chains(disk: Disk, runs: int, steps: int) -> None:
    await asyncio.gather(*(_chain(disk, run, steps) for run in range(runs)))


async def _fan(disk: Disk, size: int) -> None:
    async def one(step: int) -> None:
        await _step()
        await disk.write(0, step)

    await one(0)
    await asyncio.gather(*(one(step) for step in range(1, size + 1)))
    await one(size + 1)


async def _seconds(workload: Callable[[Disk], Awaitable[None]]) -> float:
    async with _disk() as disk:
        began = time.perf_counter()
        await workload(disk)
        return time.perf_counter() - began


def runs(count: str, steps: str) -> list[float]:
    """Milliseconds per step of `count` concurrent chains of `steps` steps."""
    took_s = asyncio.run(_seconds(lambda disk: _chains(disk, int(count), int(steps))))
    return [took_s / int(count) / int(steps) * 1e3]


def fan(size: str) -> list[float]:
    """Milliseconds per step of a fan."""
    return [asyncio.run(_seconds(lambda disk: _fan(disk, int(size)))) / (int(size) + 2) * 1e3]


def resume() -> list[float]:
    """Milliseconds from an answer to the start of what follows: the answer is committed, and the output of the step
    before it read from disk."""

    async def main() -> list[float]:
        took_ms = []
        async with _disk() as disk:
            reader = connect(disk.path)
            for run in range(PAUSES):
                await disk.write(run, 0)
                await asyncio.sleep(PAUSE_S)
                began = time.perf_counter()
                await disk.write(run, 1)
                rows = reader.execute("SELECT output FROM steps WHERE rowid = ?", (2 * run + 2,)).fetchall()
                assert len(rows) == 1
                await _step()
                took_ms.append((time.perf_counter() - began) * 1e3)
            reader.close()
        return took_ms

    return asyncio.run(main())


def short() -> list[float]:
    """Milliseconds of a run of one step: the first of a process, and the median of those after it, each after a
    pause."""

    async def main() -> list[float]:
        took_ms = []
        async with _disk() as disk:
            for run in range(PAUSES):
                await asyncio.sleep(PAUSE_S)
                began = time.perf_counter()
                await _chain(disk, run, 1)
                took_ms.append((time.perf_counter() - began) * 1e3)
        return took_ms

    first, *later = asyncio.run(main())
    return [first, statistics.median(later)]
