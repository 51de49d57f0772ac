"""A cancel that one process acknowledges reaches the run although another process drives it."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

from compiler.catalog import BlockSpec
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.store.sqlite.reading import open_reading
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.service.upkeep.invariants import check
from tests.support.blocks import Hold
from tests.support.documents import chain, value
from tests.support.runs import engine_on, until_event

LEASE_MS = 600_000  # its renewal, at which an owner looks for news anyway, does not come within a test


async def test_none_of_sixty_cancels_is_lost(tmp_path: Path) -> None:
    db, hold = tmp_path / "weft.db", Hold()
    async with (
        engine_on(db, hold, lease_ms=LEASE_MS) as driver,
        engine_on(db, Hold(), work=False) as other,
    ):
        runs = [(await driver.submit(chain("a", "b", a={"type": "hold"}, b=value(1)))).run for _ in range(60)]
        for run in runs:
            await until_event(driver, run, "node.started", "a")
        for run in runs:
            assert await other.cancel(run, "enough")
        hold.free.set()
        for run in runs:
            await until_event(driver, run, "run.finished")
        ended = [(await other.runs.view(run)).status for run in runs]
        assert ended == ["cancelled"] * 60
    with closing(open_reading(db)) as file:
        assert list(check(file)) == []


class Count:
    """Block type `count`: counts how often it is called, and lets `then` happen the third time."""

    spec = BlockSpec("count", "Count", "", "action", effect="write")

    def __init__(self) -> None:
        self.calls = 0
        self.then: Any = None

    async def run(self, ctx: StepContext) -> Done:
        self.calls += 1
        if self.calls == 3:
            await self.then()
        return Done(self.calls)


async def test_nothing_starts_after_the_cancel(tmp_path: Path) -> None:
    """The owner hears of it at its next commit, before it starts what that commit made ready."""
    db, count = tmp_path / "weft.db", Count()
    loop = {"type": "loop", "params": {"mode": "for", "count": 50}}
    document = chain("loop", loop=loop)
    document["blocks"]["call"] = {"type": "count", "parent": "loop"}
    document["edges"].append({"source": "loop", "handle": "body", "target": "call"})
    async with (
        engine_on(db, count, lease_ms=LEASE_MS) as driver,
        engine_on(db, count, work=False) as other,
    ):
        asked: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def cancel() -> None:
            await other.cancel(await asked)

        count.then = cancel
        run = (await driver.submit(document)).run
        asked.set_result(run)
        await until_event(driver, run, "run.finished")
        assert (await driver.runs.view(run)).status == "cancelled"
        assert count.calls == 3


async def test_the_doctor_finds_a_run_that_ended_without_having_heard(tmp_path: Path) -> None:
    db = tmp_path / "weft.db"
    async with engine_on(db) as engine:
        run = (await engine.submit(chain("a", a=value(1)))).run
        await until_event(engine, run, "run.finished")
    store = SQLiteStore(db)
    await store.open()
    await store._writer.submit(lambda tx: tx.db.execute("UPDATE run_details SET cancel_n = 1") and None)
    await store.close()
    with closing(open_reading(db)) as file:
        assert [(found.invariant, found.run) for found in check(file)] == [("I1", run)]
