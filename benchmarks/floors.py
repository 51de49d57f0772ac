"""The least a durable program can do on SQLite with synchronous=FULL: each step's output is on disk before a step that
follows from it starts. Written by hand for each workload; no journal, no fences, no waits, no events for readers.

Commits are made on a thread, in groups, because a program that also serves clients must not stop for a sync. `inline`
is the same chain with the commit in the loop's own thread, as a program that serves nobody could do it.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue

from benchmarks.measure import folder, on_loop

OUTPUT = b'{"ok":true}'
GROUP_MAX = 1024
ADD = "INSERT INTO steps (run, step, output) VALUES (?, ?, ?)"

Row = tuple[int, int, bytes]
Waiting = tuple[asyncio.Future[None], Row]


class Disk:
    """One table, one writing thread with group commit."""

    def __init__(self, path: Path) -> None:
        self._path = path / "floor.db"
        self._queue: SimpleQueue[Waiting | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def write(self, run: int, step: int) -> asyncio.Future[None]:
        """Done when the row is on disk."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._queue.put((future, (run, step, OUTPUT)))
        return future

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _serve(self) -> None:
        db = connect(self._path)
        while (item := self._queue.get()) is not None:
            group = [item]
            try:
                while len(group) < GROUP_MAX and (item := self._queue.get_nowait()) is not None:
                    group.append(item)
            except Empty:
                pass
            db.execute("BEGIN IMMEDIATE")
            db.executemany(ADD, [row for _, row in group])
            db.execute("COMMIT")
            self._loop.call_soon_threadsafe(_resolve, group)
        db.close()


def connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE IF NOT EXISTS steps (run INTEGER, step INTEGER, output BLOB, PRIMARY KEY (run, step))")
    return db


def _resolve(group: list[Waiting]) -> None:
    for future, _ in group:
        future.set_result(None)


async def _step() -> bytes:
    return OUTPUT


async def _runs(disk: Disk, runs: int, steps: int) -> None:
    async def one(run: int) -> None:
        await disk.write(run, -1)
        for step in range(steps):
            await asyncio.create_task(_step())
            await disk.write(run, step)

    await asyncio.gather(*(one(run) for run in range(runs)))


async def _fan(disk: Disk, size: int) -> None:
    async def one(step: int) -> None:
        await _step()
        await disk.write(0, step)

    await one(0)
    await asyncio.gather(*(one(step) for step in range(1, size + 1)))
    await one(size + 1)


async def _resume(disk: Disk) -> None:
    await disk.write(0, 0)
    await asyncio.create_task(_step())


def _timed(program: Callable[[Disk], asyncio.Future[None] | object]) -> float:
    async def main() -> float:
        with folder() as path:
            disk = Disk(path)
            await disk.write(-1, 0)  # the table is there
            began = time.perf_counter()
            await program(disk)  # type: ignore[misc]
            took_s = time.perf_counter() - began
            disk.close()
            return took_s

    return on_loop(main)


def runs(count: int, steps: int) -> float:
    """Seconds for `count` concurrent chains of `steps` steps."""
    return _timed(lambda disk: _runs(disk, count, steps))


def fan(size: int) -> float:
    return _timed(lambda disk: _fan(disk, size))


def resume() -> float:
    """Seconds from an answer to the start of what follows: one commit."""
    return _timed(_resume)


def inline(steps: int) -> float:
    """A chain that commits in its own thread."""
    with folder() as path:
        db = connect(path / "floor.db")
        began = time.perf_counter()
        for step in range(steps):
            db.execute("BEGIN IMMEDIATE")
            db.execute(ADD, (0, step, OUTPUT))
            db.execute("COMMIT")
        took_s = time.perf_counter() - began
        db.close()
    return took_s
