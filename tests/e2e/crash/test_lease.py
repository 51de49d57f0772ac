"""Who may write a run: the holder of its lease. Here two engines, each with a clock of its own, share a real file."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.crash.test_days_later import engine_on
from tests.support.clock import ManualClock
from tests.support.journal import Journal
from tests.support.place import Place
from tests.support.runs import ended
from tests.support.service import Service, chain
from tests.support.until import until

pytestmark = pytest.mark.proof

HOUR_MS = 3600 * 1000
DAY_MS = 24 * HOUR_MS
MINUTE_MS = 60 * 1000


async def test_a_late_write_of_the_former_owner_is_refused(
    place: Place, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    """The first engine does not know that its lease has lapsed: its clock stands still."""
    first_clock, second_clock = ManualClock(), ManualClock()
    service.holds.add("/step/2")
    async with engine_on(place, first_clock, service, lease_ms=HOUR_MS) as first:
        run = (await first.submit(chain(service.url, 3))).run
        await until(lambda: len(service.held()) == 1)

        second_clock.advance(2 * HOUR_MS)
        async with engine_on(place, second_clock, service, lease_ms=HOUR_MS) as second:
            await until(lambda: len(service.held()) == 2)
            late, fresh = service.held()
            assert late.key == fresh.key == f"{run}:step2"
            with caplog.at_level(logging.WARNING, "weft.worker"):
                late.gate.set()
                await until(lambda: "lost the lease to another worker" in caplog.text)
            assert (await first.runs.view(run)).status == "running"
            fresh.gate.set()
            assert (await ended(second, run)).status == "succeeded"

    journal = Journal(place)
    journal.results_are_recorded_once()
    journal.is_dense()
    (output,) = (
        row["output"] for row in journal.events[run] if (row["type"], row["node"]) == ("node.succeeded", "step2")
    )
    assert f'"serial":{fresh.serial}'.encode() in output
    assert journal.runs[run]["epoch"] == 2


async def test_who_slept_and_was_not_missed_keeps_its_runs(place: Place, service: Service) -> None:
    """A laptop that was closed for an hour continues; it does not find its own attempts lost and repeat them."""
    clock = ManualClock()
    service.holds.add("/step/2")
    async with engine_on(place, clock, service) as engine:
        run = (await engine.submit(chain(service.url, 3))).run
        await until(lambda: len(service.held()) == 1)
        clock.advance(HOUR_MS)
        await asyncio.sleep(0.1)  # time for a claim, if there were one
        service.release()
        assert (await ended(engine, run)).status == "succeeded"
    assert [call.path for call in service.calls] == ["/step/1", "/step/2", "/step/3"]
    assert Journal(place).runs[run]["epoch"] == 1


@pytest.mark.parametrize("back_ms", [2 * MINUTE_MS, HOUR_MS, DAY_MS])
async def test_a_lease_of_a_time_to_come_holds_nothing_up_at_a_start(
    tmp_path: Path, service: Service, back_ms: int
) -> None:
    """Killed, and started again on a machine that has lost its time meanwhile."""
    db, left, clock = tmp_path / "weft.db", tmp_path / "left.db", ManualClock()
    service.holds.add("/step/2")
    async with engine_on(db, clock, service) as engine:
        run = (await engine.submit(chain(service.url, 3))).run
        await until(lambda: len(service.held()) == 1)
        with closing(sqlite3.connect(db)) as source, closing(sqlite3.connect(left)) as copy:
            source.backup(copy)  # as kill -9 would leave it
        service.holds.clear()
        service.release()
        assert (await ended(engine, run)).status == "succeeded"
    async with engine_on(left, ManualClock(clock.now_ms() - back_ms), service) as successor:
        assert (await ended(successor, run)).status == "succeeded"
    assert Journal(left).runs[run]["epoch"] == 2


async def test_who_starts_leaves_the_longer_lease_of_another_alone(place: Place, service: Service) -> None:
    clock = ManualClock()
    service.holds.add("/step/2")
    async with engine_on(place, clock, service, lease_ms=MINUTE_MS) as first:
        run = (await first.submit(chain(service.url, 3))).run
        await until(lambda: len(service.held()) == 1)
        async with engine_on(place, clock, service, lease_ms=1000):
            await asyncio.sleep(0.3)  # time for a claim, if there were one
        service.release()
        assert (await ended(first, run)).status == "succeeded"
    assert len(service.calls) == 3
    assert Journal(place).runs[run]["epoch"] == 1


async def test_a_clock_set_days_ahead_ends_no_run(place: Place, service: Service) -> None:
    """A machine that starts with a clock of last year asks for the time when its server runs already. The limit of a
    run, a day, is of time that passes."""
    clock = ManualClock()
    service.holds.add("/step/2")
    async with engine_on(place, clock, service) as engine:
        run = (await engine.submit(chain(service.url, 3))).run
        await until(lambda: len(service.held()) == 1)
        clock.advance(400 * DAY_MS)
        await asyncio.sleep(0.1)  # time to fail, if the limit went by the clock
        service.release()
        view = await ended(engine, run)
        assert (view.status, view.error) == ("succeeded", None)
    assert Journal(place).runs[run]["epoch"] == 1


async def test_the_limit_of_a_run_holds_with_a_clock_that_stands_still(place: Place, service: Service) -> None:
    service.holds.add("/step/2")
    async with engine_on(place, ManualClock(), service) as engine:
        run = (await engine.submit({**chain(service.url, 3), "settings": {"timeout_s": 1}})).run
        view = await ended(engine, run)
        service.release()
        assert (view.status, view.error["code"] if view.error else None) == ("failed", "run_timeout")
