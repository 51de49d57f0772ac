"""The durable workloads on DBOS with SQLite and its own settings: each step's output is on disk before the workflow
continues. Workflows are Python functions, so nothing is compiled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from dbos import DBOS

from benchmarks.measure import folder
from benchmarks.sizes import BODY, CHAIN, FAN, ITERATIONS, PAUSE_S, PAUSES, RUN_STEPS, RUNS

called_at = [0.0]


@DBOS.step()
async def step() -> dict[str, bool]:
    called_at[0] = time.perf_counter()
    return {"ok": True}


@DBOS.workflow()
async def steps(count: int) -> None:
    for _ in range(count):
        await step()


@DBOS.workflow()
async def fanned(size: int) -> None:
    await step()
    await asyncio.gather(*(step() for _ in range(size)))
    await step()


@DBOS.workflow()
async def paused() -> None:
    assert await DBOS.recv_async("answer") == "yes"
    await step()


def chain() -> list[float]:
    return asyncio.run(_once(lambda: steps(CHAIN), CHAIN))


def fan() -> list[float]:
    return asyncio.run(_once(lambda: fanned(FAN), FAN + 2))


def loop() -> list[float]:
    return asyncio.run(_once(lambda: steps(ITERATIONS * BODY), ITERATIONS * BODY))


def runs() -> list[float]:
    return asyncio.run(_once(lambda: steps(RUN_STEPS), RUN_STEPS, RUNS))


def resume() -> list[float]:
    async def main() -> list[float]:
        took_ms = []
        async with _launched():
            for _ in range(PAUSES):
                handle = await DBOS.start_workflow_async(paused)
                await asyncio.sleep(PAUSE_S)
                began = time.perf_counter()
                await DBOS.send_async(handle.workflow_id, "yes", "answer")
                await handle.get_result()
                took_ms.append((called_at[0] - began) * 1e3)
        return took_ms

    return asyncio.run(main())


async def _once(run: Callable[[], Awaitable[None]], steps: int, runs: int = 1) -> list[float]:
    async with _launched():
        began = time.perf_counter()
        await asyncio.gather(*(run() for _ in range(runs)))
        return [(time.perf_counter() - began) / steps / runs * 1e3]


@asynccontextmanager
async def _launched() -> AsyncIterator[None]:
    with folder() as path:
        DBOS(
            config={
                "name": "benchmark",
                "system_database_url": f"sqlite:///{path}/dbos.db",
                "enable_otlp": False,
                "log_level": "WARNING",
            }
        )
        DBOS.launch()
        try:
            yield
        finally:
            DBOS.destroy()
