"""A durable function beside a drawn chain of the same steps, and a long one beside a short one: CPU time, because the
work of a step is nothing here. Databases are in memory."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Any

import weft
from benchmarks.growth import FLAT, UNIT, Growing
from benchmarks.measure import memory_bytes, memory_folder
from benchmarks.sample import program
from benchmarks.sequence import AtAnyLoad, Benchmark, Part, Sampled
from benchmarks.statistics import Target
from benchmarks.workloads import Document, document

STEPS = 1_000
SIZES = (1_000, 10_000)


@weft.step
async def work(n: int) -> int:
    return n


@weft.durable
async def in_a_row(steps: int, wait_after: int = 0) -> int:
    """With `wait_after`, a pause after so many steps; it is short, and passes in memory."""
    for n in range(1, steps + 1):
        await work(n)
        if wait_after and n % wait_after == 0:
            await weft.sleep(0.001)
    return steps


@weft.workflow
async def once() -> Any:
    """Makes the step known to the engine, for drawn workflows."""
    return await work(1)


def drawn(steps: int) -> Document:
    ids = [f"s{n}" for n in range(steps)]
    given = [1, *(f"<{id}>" for id in ids)]  # each gets the result of the one before
    blocks = {
        id: {"type": "python", "params": {"function": work.name, "arguments": {"n": n}}}
        for id, n in zip(ids, given, strict=False)
    }
    return document("drawn", blocks, [*zip(["start", *ids], ids, strict=False)])


def durable(steps: str) -> list[float]:
    return asyncio.run(_cpu_us(in_a_row, int(steps), {"steps": int(steps)}))[:1]


def chain(steps: str) -> list[float]:
    return asyncio.run(_cpu_us(drawn(int(steps)), int(steps)))[:1]


def long(what: str, steps: str) -> list[float]:
    """CPU microseconds of a step, and bytes of memory when the last one has ended."""
    wait_after = 10 if what == "waits" else 0
    return asyncio.run(_cpu_us(in_a_row, int(steps), {"steps": int(steps), "wait_after": wait_after}))


async def _cpu_us(flow: Any, steps: int, input: dict[str, int] | None = None) -> list[float]:
    with memory_folder() as path:
        async with weft.open(path / "weft.db", workflows=[in_a_row, once]) as engine:
            await engine.run(in_a_row, steps=1)
            if input is None:
                await engine.workflows.compile(flow)
            gc.collect()
            memory, cpu_s = memory_bytes(), time.process_time()
            view = await engine.run(flow, input)
            assert view.status == "succeeded", view.error
            return [(time.process_time() - cpu_s) / steps * 1e6, memory_bytes() - memory]


def long_of(what: str, name: str) -> Benchmark:
    return AtAnyLoad(Growing(what, SIZES, long, (Part(name, UNIT, FLAT),), samples=3))


BENCHMARKS: dict[str, list[Benchmark]] = {
    "durable": [
        AtAnyLoad(
            Sampled(
                f"durable function, {STEPS:,} steps; the floor is a drawn chain of them",
                UNIT,
                program(durable, STEPS),
                program(chain, STEPS),
                Target(1.3),
            )
        ),
        long_of("steps", "durable function, a step of {}"),
        long_of("waits", "with a short pause after each tenth, a step of {}"),
    ]
}
