"""Who may write a run: the holder of its lease. Here two engines, each with a clock of its own, share a real file."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from executor.runtime.clock import ManualClock
from tests.e2e.crash.people import until
from tests.e2e.crash.service import Service
from tests.e2e.crash.test_days_later import ended, engine_on
from tests.e2e.crash.verify import Journal
from tests.e2e.crash.workload import chain

HOUR_MS = 3600 * 1000


async def test_a_late_write_of_the_former_owner_is_refused(
    tmp_path: Path, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    """The first engine does not know that its lease has lapsed: its clock stands still."""
    db, first_clock, second_clock = tmp_path / "weft.db", ManualClock(), ManualClock()
    service.holds.add("/step/2")
    async with engine_on(db, first_clock, service, lease_ms=HOUR_MS) as first:
        run = (await first.submit(chain(service.url, 3))).run
        await until(lambda: len(service.held()) == 1, 10)

        second_clock.advance(2 * HOUR_MS)
        async with engine_on(db, second_clock, service, lease_ms=HOUR_MS) as second:
            await until(lambda: len(service.held()) == 2, 10)
            late, fresh = service.held()
            assert late.key == fresh.key == f"{run}:step2"
            with caplog.at_level(logging.WARNING, "weft.worker"):
                late.gate.set()
                await until(lambda: "another worker has it" in caplog.text, 10)
            assert (await first.get_run(run)).status == "running"
            fresh.gate.set()
            assert (await ended(second, run)).status == "succeeded"

    journal = Journal(db)
    journal.results_are_recorded_once()
    journal.is_dense()
    (output,) = (
        row["output"] for row in journal.events[run] if (row["type"], row["node"]) == ("node.succeeded", "step2")
    )
    assert f'"serial":{fresh.serial}'.encode() in output
    assert journal.runs[run]["epoch"] == 2


async def test_who_slept_and_was_not_missed_keeps_its_runs(tmp_path: Path, service: Service) -> None:
    """A laptop that was closed for an hour goes on; it does not take its own attempts for lost and repeat them."""
    db, clock = tmp_path / "weft.db", ManualClock()
    service.holds.add("/step/2")
    async with engine_on(db, clock, service) as engine:
        run = (await engine.submit(chain(service.url, 3))).run
        await until(lambda: len(service.held()) == 1, 10)
        clock.advance(HOUR_MS)
        await asyncio.sleep(0.1)  # time for a claim, if there were one
        service.release()
        assert (await ended(engine, run)).status == "succeeded"
    assert [call.path for call in service.calls] == ["/step/1", "/step/2", "/step/3"]
    assert Journal(db).runs[run]["epoch"] == 1
