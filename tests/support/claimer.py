"""A process that claims runs of a limit, ends some and releases others, until it is killed or none is open.

    python -m tests.support.claimer DATABASE AT_MOST SEED

`DATABASE`: a path, or an address of PostgreSQL. Prints a line for each claim: the number of runs, and how many runs had
an owner right after it. More than AT_MOST end the process with code 3.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time

from executor.errors import Fenced, StoreError
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.store import Store
from tests.support.rows import finish

LEASE_MS = 400
OWNED = "SELECT count(*) FROM heads WHERE owner IS NOT NULL"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def store_of(database: str) -> Store:
    if "://" in database or "host=" in database:
        from executor.kernel.store.postgres.store import PostgresStore

        return PostgresStore(database)
    return SQLiteStore(database)


async def owned(store: Store) -> int:
    [(count,)] = await store._readers.all(OWNED)
    return int(count)


async def claim_all(database: str, at_most: int, chance: random.Random) -> int:
    store = store_of(database)
    await store.open()
    name = f"w-{os.getpid()}-{chance.random()}"
    while await store.count_runs():
        rows = await store.claim(name, now_ms(), LEASE_MS, chance.randint(1, 4))
        if (count := await owned(store)) > at_most:
            print(f"{count} runs have an owner", flush=True)
            return 3
        if not rows:
            if not {"queued", "running", "waiting"} & (await store.count_runs()).keys():
                break
            await asyncio.sleep(0.005)
            continue
        print(len(rows), count, flush=True)
        for run in rows:
            await asyncio.sleep(chance.random() * 0.004)
            try:
                if chance.random() < 0.2:
                    await store.release(run.id, run.epoch, run.seq, now_ms(), "running")
                else:
                    await finish(store, run)
            except (Fenced, StoreError):
                pass  # another process has it
    await store.close()
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(claim_all(sys.argv[1], int(sys.argv[2]), random.Random(sys.argv[3]))))
