"""A process that makes runs which wait for a person, and says as JSON what they cost it.

python -m tests.load.waiting FILE RUNS
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from executor.kernel.process.clock import SystemClock
from executor.open.engine import Engine
from tests.load.world import ask, opened

WARM = 300  # runs before the first look: statements and thread stacks are there by then
ROUNDS = 5  # page caches fill in one of them, the allocator takes a few MiB in another; a run's share is in each


async def main(db: Path, runs: int) -> dict[str, Any]:
    async with opened(db, SystemClock()) as engine:
        await submit(engine, WARM)
        resident_after = [resident()]
        for _ in range(ROUNDS):
            await submit(engine, runs // ROUNDS)
            resident_after.append(resident())
        grown = median(after - before for before, after in pairwise(resident_after))
        tasks = len(asyncio.all_tasks())
    began, computed = time.perf_counter(), time.process_time()
    async with opened(db, SystemClock()) as engine:
        counted = await engine.runs.count()
        restart_s, restart_cpu_s = time.perf_counter() - began, time.process_time() - computed
        (wait, *_) = await engine.waits.list("pending", limit=1)
        assert wait.link is not None
        await engine.answer(wait.link.rpartition("/")[2], {}, action="approve", by="Ada")
        status = (await engine.wait_finished(wait.run, 60)).status
    return {
        "bytes_per_run": grown / (runs // ROUNDS),
        "tasks": tasks,
        "waiting": counted["waiting"],
        "restart_s": restart_s,
        "restart_cpu_s": restart_cpu_s,
        "answered": status,
    }


async def submit(engine: Engine, runs: int) -> None:
    """Returns when all of them wait and have left memory."""
    for start in range(0, runs, 100):
        await asyncio.gather(*(engine.submit(ask()) for _ in range(min(100, runs - start))))
        while len(engine.parts.owned) > 200:
            await asyncio.sleep(0.05)
    async with asyncio.timeout(60 + runs / 20):
        while len(engine.parts.owned) or (await engine.runs.count())["queued"]:
            await asyncio.sleep(0.1)


def resident() -> int:
    """Bytes of memory this process has."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))))
