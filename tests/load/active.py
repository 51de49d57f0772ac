"""A process that has many runs under way at once, and says as JSON what they cost it.

python -m tests.load.active FILE RUNS
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from executor.kernel.process.clock import SystemClock
from tests.load.world import ending, opened

TICK_S = 0.005
AT_ONCE = 50  # submissions under way


def five() -> dict[str, Any]:
    """Five blocks between start and end: two that compute in the sandbox, two that do not, and a pause."""
    return ending(
        "five",
        {
            "n": {"type": "set", "params": {"value": {"n": "<start.n>"}}},
            "double": {"type": "function", "params": {"code": "return <n.n> * 2"}},
            "big": {
                "type": "router",
                "params": {"value": "<double.result>", "routes": [{"id": "zero", "equals": 0}], "default": "out"},
            },
            "nap": {"type": "wait", "params": {"seconds": 0.01}},
            "text": {"type": "set", "params": {"value": "x" * 1_000}},
        },
    )


async def main(db: Path, runs: int) -> dict[str, Any]:
    gaps: list[float] = []
    busy: list[float] = []
    peak = 0

    async def tick() -> None:
        """How much later than asked for the loop comes round, and how long it computed meanwhile."""
        nonlocal peak
        while True:
            before, worked = time.perf_counter(), time.thread_time()
            await asyncio.sleep(TICK_S)
            gaps.append((time.perf_counter() - before - TICK_S) * 1000)
            busy.append((time.thread_time() - worked) * 1000)
            peak = max(peak, resident())

    async with opened(db, SystemClock(), work=False) as front:
        gate = asyncio.Semaphore(AT_ONCE)

        async def submit(number: int) -> str:
            async with gate:
                return (await front.submit(five(), input={"n": number + 1})).run

        ids = await asyncio.gather(*(submit(number) for number in range(runs)))
        queued = (await front.runs.count())["queued"]
    gc.collect()  # as the server does when it is ready
    gc.freeze()
    gc.set_threshold(10_000, 10, 500)
    load, began = os.getloadavg()[0], time.perf_counter()
    async with opened(db, SystemClock()) as engine:
        ticking = asyncio.create_task(tick(), name="tick")
        while True:
            counted = await engine.runs.count()
            if not any(counted[status] for status in ("queued", "running", "waiting")):
                break
            await asyncio.sleep(0.2)
        seconds = time.perf_counter() - began
        ticking.cancel()
        with suppress(asyncio.CancelledError):
            await ticking
    gaps.sort()
    busy.sort()
    return {
        "ids": ids,
        "runs_s": round(runs / seconds),
        "ended": counted,
        "queued": queued,
        "gap_p99_ms": round(gaps[len(gaps) * 99 // 100], 1),
        "gap_max_ms": round(gaps[-1], 1),
        "busy_p99_ms": round(busy[len(busy) * 99 // 100], 1),
        "busy_max_ms": round(busy[-1], 1),
        "ticks": len(gaps),
        "rss_mb": round(peak / 2**20),
        "seconds": round(seconds, 1),
        "load": round(load, 1),
    }


def resident() -> int:
    """Bytes of memory this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))))
