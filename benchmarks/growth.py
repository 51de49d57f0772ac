"""What grows with the size of a run, or with what a database has: CPU time and memory at a small and at a large size,
each in a fresh process.

CPU time is that of all threads of the process; the database of the steps is in memory, as syncs are not what is asked
for. Memory is counted when the last step begins: the run is still in memory then, and no view of it. What one more step
needs is the slope between two sizes: the rest does not depend on them.

A document has at most 2,000 blocks (docs/reference/limits.md); the chains and the fans here are of engines that permit
more, and one node is all that their steps share.
"""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from itertools import pairwise
from pathlib import Path

from msgspec import Struct

from benchmarks import core, workloads
from benchmarks.measure import folder, memory_bytes, memory_folder
from benchmarks.sample import program
from benchmarks.sequence import Benchmark, Part, Take, collect, spread_of
from benchmarks.statistics import Figure, Target
from benchmarks.workloads import LIMITS, Document, Noop
from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.open.engine import GC_THRESHOLDS, Engine
from executor.service.topics.waits import WaitFilter

RUN_STEPS = 10
LOOKS, LOOK_MAX_S = 50, 1.0  # of each kind, at a full database
DAYS = 30  # on which they used a model
USED = """
INSERT INTO usage SELECT id, created_at_ms / 86400000, workflow, 'a-model', '', 1, 0, 900, 0, 0, 100, 0, 5000
  FROM run_details WHERE id = :run"""
OPEN = 20  # runs that wait in it, beside those that have ended
UNIT, FLAT, STEP_BYTES = "us CPU", Target(1.3), Target(768)
PAGE_US = Target(20_000, of="value")


class Growing(Struct, frozen=True):
    """A benchmark of one program at several sizes, each beside the one before. The program takes `what` and the size,
    and its values are the figures of `parts`, whose names have {} for the size; with `memory` there is one more, bytes,
    of which the slope is reported. `samples`: of each size, at most; a large size alone says enough."""

    what: str
    sizes: tuple[int, ...]
    call: Callable[[str, str], list[float]]
    parts: tuple[Part, ...]
    memory: str = ""
    memory_target: Target | None = STEP_BYTES
    samples: int = 3

    def figures(self, section: str, wanted: int, take: Take) -> list[Figure]:
        programs = {str(size): program(self.call, self.what, size) for size in self.sizes}
        series = collect(programs, min(wanted, self.samples), take)
        found = []
        for small, large in pairwise(self.sizes):
            pair = series[str(large)], series[str(small)]
            samples, thrown = sum(len(one.samples) for one in pair), sum(one.thrown for one in pair)
            for n, part in enumerate(self.parts):
                ours, floor = (spread_of(one, n) for one in pair)
                name = part.name.format(f"{large:,} ÷ {small:,}")
                found.append(
                    Figure(
                        section,
                        name,
                        part.unit,
                        ours,
                        floor,
                        "floor",
                        target=part.target,
                        samples=samples,
                        thrown=thrown,
                    )
                )
            if self.memory:
                more, less = (spread_of(one, len(self.parts)) for one in pair)
                if more and less:
                    slope = (more.p50 - less.p50) / (large - small)
                    name = self.memory.format(f"{small:,} to {large:,}")
                    found.append(Figure(section, name, "bytes", counted=max(0.0, slope), target=self.memory_target))
        return found


# --- runs ---


def steps(shape: str, size: str) -> list[float]:
    """Of one run, or of `size` runs at once: CPU microseconds of a step, and bytes of memory."""
    return asyncio.run(_steps(SHAPES[shape](int(size)), int(size) if shape == "runs" else 1))


async def _steps(workload: tuple[Document, int], runs: int) -> list[float]:
    document, calls = workload
    async with _engine() as (engine, noop):
        plan = (await engine.workflows.compile(document)).plan
        assert plan is not None and plan.hash  # what a document needs is there before: the run shares it
        gc.collect()
        last = noop.after(calls * runs)
        memory, cpu_s = memory_bytes(), time.process_time()
        for _ in range(runs):
            await engine.submit(document)
        await last
        cpu_s, memory = time.process_time() - cpu_s, memory_bytes() - memory
        assert noop.calls == calls * runs
    return [cpu_s / calls / runs * 1e6, memory]


@asynccontextmanager
async def _engine(path: Path | None = None, *, work: bool = True) -> AsyncIterator[tuple[Engine, Noop]]:
    """As programs embed it, but for the size of documents."""
    gc.set_threshold(*GC_THRESHOLDS)
    noop, sandbox = Noop(), Sandbox(threads=1)
    with memory_folder() as made:
        engine = await Engine.open(
            SQLiteStore(path or made / "weft.db"),
            registry=Registry.load([noop], sandbox=sandbox),
            services=Services(sandbox=sandbox, http=GuardedClient(allow_private=())),
            documents=LIMITS,
            work=work,
        )
        try:
            yield engine, noop
        finally:
            await engine.close()


SHAPES: dict[str, Callable[[int], tuple[Document, int]]] = {
    "chain": lambda size: (workloads.chain(size), size),
    "fan": lambda size: (workloads.fan(size), size + 2),
    "loop": lambda size: (workloads.loop(size, 2), size * 2),
    "parallel": lambda size: (workloads.parallel(size), size),
    "runs": lambda size: (workloads.chain(RUN_STEPS), RUN_STEPS),
}


# --- a full database ---


def looks(_: str, ended: str) -> list[float]:
    """CPU microseconds of each of LOOKED, in a database with so many runs that have ended."""
    return asyncio.run(_looks(int(ended)))


async def _looks(ended: int) -> list[float]:
    with folder() as where:
        path = where / "weft.db"
        async with _engine(path) as (engine, _):
            run = (await engine.submit(workloads.pause())).run
            assert (await engine.wait_finished(run, 60)).status == "waiting"
            [wait] = await engine.waits.list("pending", run)
            assert wait.link is not None
            await engine.answer(wait.link, {}, "yes", "a tester")
            assert (await engine.wait_finished(run, 60)).status == "succeeded"
        _repeat(path, run, ended - 1)
        async with _engine(path) as (engine, _):
            for _n in range(OPEN):
                run = (await engine.submit(workloads.pause())).run
                assert (await engine.wait_finished(run, 60)).status == "waiting"
        async with _engine(path, work=False) as (engine, _):
            for _n in range(LOOKS + 1):
                await engine.submit(workloads.chain(1))
            return [await _cpu_us(engine, look) for _, _, look in LOOKED]


def _repeat(path: Path, run: str, times: int) -> None:
    """That run with all that belongs to it, so many times; one of a hundred has failed. The newest are last."""
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")  # each page is written once
        (first,) = db.execute("SELECT n FROM run_details WHERE id = ?", (run,)).fetchone()
        db.execute(USED, {"run": run})
        numbers = "WITH RECURSIVE i (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < :times)"
        name = "substr(:run, 1, 8) || printf('%024d', i)"
        for table, changed in {
            "run_details": {
                "n": ":first + i",
                "id": name,
                "created_at_ms": "created_at_ms - :times + i",
                "status": "iif(i % 100, status, 'failed')",
            },
            "batches": {"n": ":first + i"},
            "waits": {"run_id": name, "token_hash": "token_hash || i"},
            "usage": {"run_id": name, "day": f"day - i % {DAYS}"},
        }.items():
            columns = [column for _, column, *_ in db.execute(f"PRAGMA table_info({table})")]
            values = ", ".join(changed.get(column, column) for column in columns)
            own = "run_id = :run" if "run_id" in changed else "n = :first"
            copies = f"{numbers} SELECT {values} FROM i CROSS JOIN {table} WHERE {own}"
            db.execute(
                f"INSERT INTO {table} ({', '.join(columns)}) {copies}", {"run": run, "first": first, "times": times}
            )


async def _cpu_us(engine: Engine, look: Callable[[Engine], Awaitable[object]]) -> float:
    await look(engine)
    began, count = time.process_time(), 0
    while count < LOOKS and time.process_time() < began + LOOK_MAX_S:
        await look(engine)
        count += 1
    return (time.process_time() - began) / count * 1e6


async def _claim(engine: Engine) -> None:
    now_ms = engine.parts.clock.now_ms()
    assert len(await engine.store.claim("a worker", now_ms, 60_000, 1)) == 1


# Counts end at 100,000 (COUNT_MAX): they grow until then, in a thread of a reader. So does usage, without an end.
LOOKED: list[tuple[str, Target | None, Callable[[Engine], Awaitable[object]]]] = [
    ("a page of runs", FLAT, lambda engine: engine.runs.list(limit=50)),
    ("a page of failed runs", FLAT, lambda engine: engine.runs.list(status="failed", limit=10)),
    ("a page of runs that wait", FLAT, lambda engine: engine.runs.list(status="waiting", limit=10)),
    ("the counts of runs", PAGE_US, lambda engine: engine.runs.count()),
    ("a page of the inbox", FLAT, lambda engine: engine.waits.page(WaitFilter(limit=10, counts=False))),
    ("the counts of the inbox", PAGE_US, lambda engine: engine.store.count_waits()),
    ("the usage of thirty days", None, lambda engine: engine.usage.between()),
    ("when the next run is due", FLAT, lambda engine: engine.store.next_due()),
    ("a claim", FLAT, _claim),
]

BENCHMARKS: dict[str, Sequence[Benchmark]] = {
    "growth": [
        *core.GROWTH,
        Growing(
            "chain",
            (100, 10_000, 100_000),
            steps,
            (Part("chain, a step of {}", UNIT, FLAT),),
            "chain, memory of a step, {}",
            samples=1,
        ),
        Growing(  # its memory is that of steps under way: all are, at the same time
            "fan",
            (1_000, 20_000),
            steps,
            (Part("fan, a step of {}", UNIT, FLAT),),
            "fan, memory of a parallel step, {}",
            memory_target=None,
            samples=1,
        ),
        Growing(
            "parallel",
            (1_000, 10_000),
            steps,
            (Part("parallel, a step of {}", UNIT, FLAT),),
            "parallel, memory of a branch, {}",
            memory_target=None,
            samples=1,
        ),
        Growing(
            "loop",
            (1_000, 50_000),
            steps,
            (Part("loop of two steps, a step of {}", UNIT, FLAT),),
            "loop, memory of an iteration, {}",
            samples=1,
        ),
        Growing(
            "runs",
            (100, 1_000, 5_000),
            steps,
            (Part("runs of 10 steps at once, a step of {}", UNIT, FLAT),),
            "memory of a run, {}",
            samples=2,
        ),
        Growing(
            "looks",
            (1_000, 1_000_000),
            looks,
            tuple(Part(f"{name}, of {{}} ended runs", UNIT, target) for name, target, _ in LOOKED),
            samples=1,
        ),
    ]
}
