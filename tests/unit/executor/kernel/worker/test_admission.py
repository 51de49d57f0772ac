"""Runs enter memory by their bytes, and attempts that were lost together do not count as failures of their node."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from executor.kernel.handler.needs import RunLimits
from executor.kernel.store.statements import TERMINAL
from executor.open.engine import Engine
from tests.support.blocks import Hold, Probe, Step
from tests.support.clock import ManualClock
from tests.support.documents import chain
from tests.support.runs import engine_on, until_event
from tests.support.until import until

LEASE_MS = 15_000
SIZE = 200_000


def resting() -> dict[str, Any]:
    """Puts out SIZE bytes, waits for an hour, holds."""
    return chain(
        "big",
        "rest",
        "hold",
        big={"type": "probe", "params": {"value": "x" * SIZE}},
        rest={"type": "wait", "params": {"seconds": 3600}},
        hold={"type": "hold"},
    )


async def test_runs_are_taken_into_memory_by_their_bytes(tmp_path: Path) -> None:
    clock, hold = ManualClock(), Hold()
    limits = RunLimits(memory_bytes=5 * SIZE)
    async with engine_on(tmp_path / "weft.db", Probe(), hold, clock=clock, limits=limits) as engine:
        runs = [(await engine.submit(resting())).run for _ in range(30)]
        for run in runs:
            await until_event(engine, run, "run.parked")
        await until(lambda: not (len(engine.parts.owned)))
        most = 0
        clock.advance(3_600_000)
        async with asyncio.timeout(60):
            for run in runs:
                while (await engine.runs.row(run)).status not in TERMINAL:
                    most = max(most, len(engine.parts.owned))
                    if len(engine.parts.owned) >= 4:
                        hold.free.set()
                    await asyncio.sleep(0.002)
        assert 4 <= most <= 5
        assert [(await engine.runs.row(run)).status for run in runs] == ["succeeded"] * 30


async def one_is_in(engine: Engine) -> None:
    await until(lambda: len(engine.parts.owned) == 1 and engine._worker._admission.waiting)


async def test_small_runs_pass_by_large_ones(tmp_path: Path) -> None:
    clock, hold = ManualClock(), Hold()
    limits = RunLimits(memory_bytes=SIZE)
    async with engine_on(tmp_path / "weft.db", Probe(), hold, clock=clock, limits=limits) as engine:
        large = [(await engine.submit(resting())).run for _ in range(3)]
        for run in large:
            await until_event(engine, run, "run.parked")
        clock.advance(3_600_000)
        await one_is_in(engine)
        small = (await engine.submit(chain("a", a={"type": "probe"}))).run
        await until_event(engine, small, "run.finished")
        hold.free.set()
        for run in large:
            await until_event(engine, run, "run.finished")


async def test_a_stop_lets_go_of_runs_that_wait_for_memory(tmp_path: Path) -> None:
    db, clock, hold = tmp_path / "weft.db", ManualClock(), Hold()
    async with engine_on(db, Probe(), hold, clock=clock, limits=RunLimits(memory_bytes=SIZE)) as engine:
        runs = [(await engine.submit(resting())).run for _ in range(5)]
        for run in runs:
            await until_event(engine, run, "run.parked")
        clock.advance(3_600_000)
        await one_is_in(engine)
        await engine.stop_working(grace_s=0)
        rows = [await engine.runs.row(run) for run in runs]
        assert [row.lease_owner for row in rows] == [None] * 5
    hold.free.set()
    async with engine_on(db, Probe(), hold, clock=clock) as engine:
        for run in runs:
            await until_event(engine, run, "run.finished")


async def lost(db: Path, clock: ManualClock, runs: int, times: int) -> list[str]:
    """Kill the process that has `runs` runs under way so many times: its leases stay."""
    ids: list[str] = []
    for _ in range(times):
        step = Step()
        step.holding["a"] = asyncio.Event()
        async with engine_on(db, step, clock=clock, lease_ms=LEASE_MS) as engine:
            if not ids:
                ids = [(await engine.submit(chain("a"))).run for _ in range(runs)]
            async with asyncio.timeout(30):
                while step.ran["a"] < runs and not await engine.waits.list():
                    await asyncio.sleep(0.005)
            worker = engine._worker
            for task in worker._tasks.values():  # as a kill: nothing is written any more
                task.cancel()
            await worker._claiming.stop()
            await worker._renewing.stop()
            worker.name = "another"  # whose runs `close` frees
            worker._tasks.clear()
            clock.advance(2 * LEASE_MS)
    return ids


async def test_what_is_lost_together_is_repeated(tmp_path: Path) -> None:
    db, clock = tmp_path / "weft.db", ManualClock()
    runs = await lost(db, clock, runs=3, times=12)
    async with engine_on(db, Step(), clock=clock) as engine:
        for run in runs:
            await until_event(engine, run, "run.finished")
            assert (await engine.runs.row(run)).status == "succeeded"


async def test_a_run_that_takes_its_worker_down_alone_ends_at_a_bound(tmp_path: Path) -> None:
    db, clock = tmp_path / "weft.db", ManualClock()
    [run] = await lost(db, clock, runs=1, times=12)
    async with engine_on(db, Step(), clock=clock) as engine:
        [wait] = await engine.waits.list(run=run)
        assert wait.kind == "attention"
