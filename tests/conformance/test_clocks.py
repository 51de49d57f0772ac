"""Engines on one PostgreSQL database: their clocks, which may be wrong, and the schedules that they fire."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psycopg")

from executor.kernel.process.clock import Clock
from executor.kernel.process.database_clock import DatabaseClock
from executor.kernel.store.postgres.store import PostgresStore
from tests.support.blocks import Hold
from tests.support.clock import ManualClock
from tests.support.documents import document, value
from tests.support.postgres import by_its_clock
from tests.support.runs import ended, engine_on, until_event
from tests.support.until import until

LEASE_MS = 2_000


class Wrong:
    """This machine's clock, off by so much."""

    def __init__(self, off_ms: int) -> None:
        self.off_ms = off_ms

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.off_ms

    def on_jump(self, callback: Any) -> None:
        pass


def store_on(address: str) -> PostgresStore:
    return PostgresStore(by_its_clock(address), readers=2)


async def test_a_worker_whose_clock_is_ahead_takes_no_run_of_another(postgres: str) -> None:
    """By its clock the lease of the other has lapsed."""
    hold = Hold()
    waits: Clock = Wrong(-30_000)
    async with engine_on(store_on(postgres), hold, clock=waits, lease_ms=LEASE_MS) as first:
        run = (await first.submit(document("d", "start a", blocks={"a": {"type": "hold"}}))).run
        await until_event(first, run, "node.started", "a")
        async with engine_on(store_on(postgres), Hold(), clock=Wrong(30_000), lease_ms=LEASE_MS) as second:
            for _ in range(3):
                second.parts.owned.due.set()  # it looks
                await asyncio.sleep(LEASE_MS / 2_000)
            row = await second.store.get_run(run)
            assert row is not None and row.epoch == 1, "the run was taken from its worker"
            hold.free.set()
            assert (await ended(second, run)).status == "succeeded"


async def test_a_lease_that_lapsed_is_seen_by_a_worker_whose_clock_is_behind(postgres: str) -> None:
    store = store_on(postgres)
    async with engine_on(store_on(postgres), Hold(), work=False) as front:
        run = (await front.submit(document("d", "start a", blocks={"a": {"type": "hold"}}))).run
        await store.open()
        now_ms = front.parts.clock.now_ms()
        assert [row.id for row in await store.claim("gone", now_ms + 60_000, 600_000)] == [run]
        assert not await store.claim("other", now_ms, 500), "the lease has just begun"
        assert await store.renew("gone", [run], now_ms + 60_000, 1) == {run}
        (row,) = await until(lambda: store.claim("other", now_ms, 500))
        assert row.id == run
        await store.close()


@pytest.mark.parametrize("off_s", [-30, 30])
async def test_timers_fire_by_the_clock_of_the_database(
    postgres: str, off_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clocks of the processes are wrong, and set while they run."""
    right_ns, off_ns = time.time_ns, [off_s * 1_000_000_000]
    monkeypatch.setattr(time, "time_ns", lambda: right_ns() + off_ns[0])
    timer = {"type": "wait", "params": {"seconds": 1}}
    async with (
        engine_on(store_on(postgres), lease_ms=LEASE_MS) as first,
        engine_on(store_on(postgres), lease_ms=LEASE_MS) as second,
    ):
        assert isinstance(first.parts.clock, DatabaseClock)
        plan = document("d", "start a", "a b", blocks={"a": timer, "b": timer})
        runs = [(await engine.submit(plan)).run for engine in (first, second) for _ in range(5)]
        off_ns[0] *= -1
        for run in runs:
            assert (await ended(first, run)).status == "succeeded"
            records = await first.store.read_events(run)
            times = [record.at_ms for record in records]
            assert times == sorted(times) and times[-1] - times[0] >= 2_000
            row = await first.store.get_run(run)
            assert row is not None and row.finished_at_ms is not None
            assert row.finished_at_ms - row.created_at_ms >= 2_000
            assert abs(row.finished_at_ms - right_ns() // 1_000_000) < 25_000, "not the time of the database"


async def test_a_time_of_a_schedule_starts_one_run_in_a_fleet(postgres: str) -> None:
    clock = ManualClock(1_800_000_000_000 - 1_800_000_000_000 % 86_400_000)
    minutely = document("m", "s a", blocks={"s": {"type": "schedule", "params": {"cron": "* * * * *"}}, "a": value(1)})
    del minutely["blocks"]["start"]
    async with (
        engine_on(PostgresStore(postgres), clock=clock) as first,
        engine_on(PostgresStore(postgres), clock=clock) as second,
    ):
        await first.workflows.save(minutely)
        for minute in range(1, 6):
            clock.advance(60_000)

            async def fired(count: int = minute) -> bool:
                return (await second.runs.count())["succeeded"] >= count

            await until(fired)
        assert len(await second.runs.list()) == 5
        assert [fire.outcome for fire in await second.schedules.fires("m:s")] == ["started"] * 5


async def test_a_file_has_the_clock_of_its_machine(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        assert not isinstance(engine.parts.clock, DatabaseClock)
