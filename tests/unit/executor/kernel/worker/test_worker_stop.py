"""A process that goes down starts nothing more, and says of nothing that it was started."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.writer import Retry
from tests.support.blocks import Step
from tests.support.documents import Json, chain
from tests.support.other_process import OtherProcess
from tests.support.runs import engine_on, journal, outputs, until_event
from tests.support.until import until


async def stopped_while_it_held(path: Path, step: Step, document: Json) -> str:
    """A run whose block `a` came to its end between the wish to stop and the stop."""
    free = step.holding["a"] = asyncio.Event()
    async with engine_on(path, step) as engine:
        run = (await engine.submit(document)).run
        await until_event(engine, run, "node.started", "a")
        stop = asyncio.create_task(engine.stop_working(grace_s=30))
        await until(lambda: engine._worker._stopping)
        free.set()
        await stop
        row = await engine.runs.row(run)
        assert (row.status, row.lease_owner) == ("running", None)
        assert (await journal(engine, run))[-1] == ("node.succeeded", "a", 1)
    return run


@pytest.mark.parametrize("on_lost", ["ask", "fail", "retry"])
async def test_what_was_not_begun_is_not_lost(tmp_path: Path, on_lost: str) -> None:
    step = Step()
    document = chain("a", "b", b={"policy": {"on_lost": on_lost}})
    run = await stopped_while_it_held(tmp_path / "weft.db", step, document)
    async with engine_on(tmp_path / "weft.db", step) as engine:
        await until_event(engine, run, "run.finished")
        view = await engine.runs.view(run)
        assert (view.status, step.ran) == ("succeeded", {"a": 1, "b": 1})
        assert [attempt for type, _, attempt in await journal(engine, run) if type == "node.started"] == [1, 1, 1]


async def test_a_run_that_also_waits_does_not_fall_asleep_over_it(tmp_path: Path) -> None:
    step = Step()
    document = chain("a", "b")
    document["blocks"]["ask"] = {"type": "approval"}
    document["edges"].append({"source": "start", "target": "ask"})
    run = await stopped_while_it_held(tmp_path / "weft.db", step, document)
    async with engine_on(tmp_path / "weft.db", step) as engine:
        await until_event(engine, run, "run.parked")
        assert outputs(await engine.runs.view(run))["b"]["n"] == 1


async def test_a_lock_of_another_process_does_not_keep_it_from_stopping(tmp_path: Path) -> None:
    """What ended is not recorded, and the lease lapses by itself: nothing is lost, and the next worker continues."""
    step = Step()
    step.holding["a"] = asyncio.Event()
    for_ever = Retry(attempts=1_000_000, base_ms=10, cap_ms=10)
    store = SQLiteStore(tmp_path / "weft.db", busy_timeout_ms=0, retry=for_ever)
    async with engine_on(store, step, lease_ms=300) as engine:
        run = (await engine.submit(chain("a", "b"))).run
        await until_event(engine, run, "node.started", "a")
        other = OtherProcess(store.path)
        try:
            step.holding.pop("a").set()
            async with asyncio.timeout(60):
                while not store.stats.retries:
                    await asyncio.sleep(0.001)
                await engine.stop_working(grace_s=30)
        finally:
            other.let_go()
        assert (await engine.runs.row(run)).status == "running"
        assert (await journal(engine, run))[-1] == ("node.started", "a", 1)
    async with engine_on(tmp_path / "weft.db", step) as engine:
        await until_event(engine, run, "run.finished")
        assert (await engine.runs.view(run)).status == "succeeded"
