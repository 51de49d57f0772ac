"""A process that executes runs whose blocks have a limit, until it is killed or its input ends.

    python -m tests.support.limited DATABASE FOLDER AT_MOST

`DATABASE`: a path, or an address of PostgreSQL. A block at work holds one of AT_MOST locks of files in FOLDER, which
the operating system frees with the process: a block that finds none free is one too many. It says so in FOLDER/wrong.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compiler.catalog import BlockSpec
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.store import Store
from tests.support.documents import document
from tests.support.runs import engine_on

LEASE_MS = 2_000
KEY = "one service"


def limited(branches: int, at_most: int) -> dict[str, Any]:
    """A fan of blocks with one limit. An attempt that is lost is made again."""
    policy = {"limit": {"key": KEY, "at_most": at_most}, "on_lost": "retry", "retry": {"max_attempts": 100}}
    blocks = {
        "fan": {"type": "parallel", "params": {"mode": "count", "count": branches, "concurrency": branches}},
        "call": {"type": "call", "parent": "fan", "policy": policy},
    }
    return document("limited", "start fan", "fan body call", blocks=blocks)


class Call:
    """Block type `call`: works for some milliseconds, and counts itself in FOLDER/begun."""

    spec = BlockSpec(type="call", title="Call", description="", category="action", effect="read")

    def __init__(self, folder: Path, at_most: int) -> None:
        self._folder = folder
        self._at_most = at_most

    async def run(self, ctx: StepContext) -> Done:
        with self._place():
            with (self._folder / "begun").open("a") as begun:
                begun.write("+\n")
            await asyncio.sleep(random.random() * 0.01)
        return Done(os.getpid())

    @contextmanager
    def _place(self) -> Iterator[None]:
        for n in range(self._at_most):
            with (self._folder / f"place-{n}").open("a") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                yield
                return
        with (self._folder / "wrong").open("a") as wrong:
            wrong.write(f"process {os.getpid()}: one more than {self._at_most}\n")
        yield


def store_of(database: str) -> tuple[Store, Any]:
    if "://" in database or "host=" in database:
        from executor.kernel.store.postgres.bus import PostgresBus
        from executor.kernel.store.postgres.store import PostgresStore

        return PostgresStore(database), PostgresBus(database)
    return SQLiteStore(database), None


async def execute(database: str, folder: Path, at_most: int) -> None:
    store, bus = store_of(database)
    async with engine_on(store, Call(folder, at_most), lease_ms=LEASE_MS, bus=bus):
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(execute(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
