"""A process to be killed: appends to several runs at once and says on stdout what was acknowledged.

    python -m tests.conformance.store.appender FILE RUNS                 until killed; prints `run seq` after each
    append python -m tests.conformance.store.appender FILE RUNS FAULT_POINT     one append for each run, all in one
                                                                         group, and kills itself (SIGKILL) at that
                                                                         point of the commit

    python -m tests.conformance.store.appender FILE 1 here               until killed: appends that come alone, which
                                                                         the event loop's thread commits

Each append holds two events, and a blob unless it comes alone.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import sys
import threading
from pathlib import Path

from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.sqlite.store import SQLiteStore
from tests.support.rows import LEASE_MS, T0, change, new_run, record


async def until_killed(path: Path, runs: int, here: bool) -> None:
    store = SQLiteStore(path, commit_here_below_s=math.inf if here else 0.0)
    await store.open()
    owners = [await owned(store, f"run-{i}") for i in range(runs)]
    await asyncio.gather(*(append_for_ever(store, run, blobs=not here) for run in owners))


async def append_for_ever(store: SQLiteStore, run: RunRow, blobs: bool) -> None:
    seq = run.seq
    while True:
        seq = await append(store, run, seq, blobs)
        print(run.id, seq, flush=True)


async def one_group(path: Path, runs: int, point: str) -> None:
    held, queued = threading.Event(), threading.Event()
    commits: list[str] = []

    def fault(name: str) -> None:
        if not armed or not name.startswith("tx."):
            return
        if name == "tx.group.before_commit" and not commits:
            held.set()
            queued.wait(30)  # the ping's group stays open until all appends wait behind it
        commits.append(name)
        if name == point and commits.count(name) == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    armed = False
    store = SQLiteStore(path, fault=fault)
    await store.open()
    owners = [await owned(store, f"run-{i}") for i in range(runs)]
    armed = True
    ping = asyncio.create_task(store.ping(), name="ping")
    assert await asyncio.to_thread(held.wait, 30)
    appends = [asyncio.create_task(append(store, run, run.seq), name=run.id) for run in owners]
    await asyncio.sleep(0)
    queued.set()
    await asyncio.gather(ping, *appends)


async def owned(store: SQLiteStore, run_id: str) -> RunRow:
    found = await store.get_run(run_id)
    if found is None:
        found, _ = await store.create_run(new_run(run_id))
    now = max(found.lease_until_ms or 0, T0)  # takes over from a process that was killed
    (run,) = await store.claim("appender", now, LEASE_MS, run_id=run_id)
    return run


async def append(store: SQLiteStore, run: RunRow, seq: int, with_blob: bool = True) -> int:
    blobs = ((f"{run.id}/{seq}", b"x" * 500),) if with_blob else ()
    change_ = change(run, record(), record("node.started"), expected_seq=seq, blobs=blobs)
    return (await store.append(change_)).seq


if __name__ == "__main__":
    file, runs, *how = Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
    asyncio.run(until_killed(file, runs, bool(how)) if how in ([], ["here"]) else one_group(file, runs, how[0]))
