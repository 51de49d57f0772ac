"""Durable work through the engine as a program embeds it (`executor.open.embed.open_engine`): chains, fans, loops, many
runs, an answer, short runs, each beside its floor (`floors.py`).

Everything is on a fresh database in a fresh process. A document is compiled before the clock starts (`compile` is
measured alone); nothing else is warm. A run's end is awaited with `engine.run`, as a caller does.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from benchmarks import floors, workloads
from benchmarks.measure import folder
from benchmarks.sample import program
from benchmarks.sequence import Benchmark, Part, Parted, Sampled
from benchmarks.sizes import BODY, CHAIN, FAN, ITERATIONS, PAUSE_S, PAUSES, RUN_STEPS, RUNS
from benchmarks.statistics import Target
from benchmarks.workloads import Document, Noop, Pure
from executor.open.embed import open_engine
from executor.open.engine import Engine

LOOP_STEPS = ITERATIONS * BODY
W1, W2, W3, W4, W5 = (
    f"W1 chain of {CHAIN} steps",
    f"W2 1 -> {FAN} -> 1",
    f"W3 loop of {ITERATIONS} x {BODY} steps",
    f"W4 {RUNS} runs x {RUN_STEPS} steps",
    "W5 answer to start of the next step",
)


def chain() -> list[float]:
    return asyncio.run(once(workloads.chain(CHAIN), CHAIN))


def ahead() -> list[float]:
    return asyncio.run(once(workloads.ahead(CHAIN), CHAIN))


def fan() -> list[float]:
    return asyncio.run(once(workloads.fan(FAN), FAN + 2))


def loop() -> list[float]:
    return asyncio.run(once(workloads.loop(ITERATIONS, BODY), LOOP_STEPS))


def runs() -> list[float]:
    return asyncio.run(once(workloads.chain(RUN_STEPS), RUN_STEPS, RUNS))


async def once(document: Document, steps: int, runs: int = 1) -> list[float]:
    """Milliseconds per step of `runs` concurrent runs of `steps` steps each."""
    async with engine_for(document) as (engine, noop):
        began = time.perf_counter()
        views = await asyncio.gather(*(engine.run(document) for _ in range(runs)))
        took_s = time.perf_counter() - began
        assert {view.status for view in views} == {"succeeded"}
        assert noop.calls == steps * runs
        return [took_s / steps / runs * 1e3]


def resume() -> list[float]:
    """Milliseconds from the call of `answer` to the start of the step behind it; the run had left memory."""
    return asyncio.run(_resume())


async def _resume() -> list[float]:
    took_ms = []
    document = workloads.pause()
    async with engine_for(document) as (engine, noop):
        for _ in range(PAUSES):
            run = (await engine.submit(document)).run
            view = await engine.wait_finished(run, 30)
            assert view.status == "waiting"
            [wait] = await engine.waits.list("pending", run)
            assert wait.link is not None
            await asyncio.sleep(PAUSE_S)
            reached = noop.after(1)
            began = time.perf_counter()
            await engine.answer(wait.link, {}, "yes", "a tester")
            await reached
            took_ms.append((noop.called_at - began) * 1e3)
            assert (await engine.wait_finished(run, 30)).status == "succeeded"
    return took_ms


def short() -> list[float]:
    """Milliseconds of a run of one step: the first of a process, and the median of those after it, each after a
    pause."""
    first, *later = asyncio.run(_short())
    return [first, statistics.median(later)]


async def _short() -> list[float]:
    took_ms = []
    document = workloads.chain(1)
    async with engine_for(document) as (engine, _):
        for _n in range(PAUSES):
            await asyncio.sleep(PAUSE_S)
            began = time.perf_counter()
            view = await engine.run(document)
            took_ms.append((time.perf_counter() - began) * 1e3)
            assert view.status == "succeeded"
    return took_ms


@asynccontextmanager
async def engine_for(document: Document) -> AsyncIterator[tuple[Engine, Noop]]:
    """On a fresh database, with `document` compiled; and the block that it consists of."""
    pure = any(block["type"] == "pure" for block in document["blocks"].values())
    noop = Pure() if pure else Noop()
    with folder() as path:
        async with open_engine(path / "weft.db", blocks=[noop]) as engine:
            await engine.workflows.compile(document)
            yield engine, noop


_A_STEP_AT_A_TIME = program(floors.runs, 1, CHAIN)

# Targets of pure Python; no module is compiled (docs/decisions/0062-compiled-modules.md).
WORKLOADS = {
    "chain": [Sampled(W1, "ms/step", program(chain), _A_STEP_AT_A_TIME, Target(1.45))],
    "ahead": [Sampled(f"{W1}, durability ahead", "ms/step", program(ahead), _A_STEP_AT_A_TIME, share=3)],
    "fan": [Sampled(W2, "ms/step", program(fan), program(floors.fan, FAN), Target(2.8))],
    "loop": [Sampled(W3, "ms/step", program(loop), program(floors.runs, 1, LOOP_STEPS), Target(1.9))],
    "runs": [Sampled(W4, "ms/step", program(runs), program(floors.runs, RUNS, RUN_STEPS), Target(9))],
    "resume": [Sampled(W5, "ms", program(resume), program(floors.resume), Target(6))],
}
BENCHMARKS: dict[str, Sequence[Benchmark]] = {
    **WORKLOADS,
    "short": [
        Parted(
            (Part("one step, first run of a process", "ms"), Part("one step, after a pause", "ms")),
            program(short),
            program(floors.short),
        )
    ],
}
