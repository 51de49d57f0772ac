"""Many timers over restarts and over steps of the wall clock: each fires once, none early, none is lost."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from executor.kernel.store.statements import RunStatus
from executor.open.engine import Engine
from tests.load.world import opened, sleep
from tests.support.clock import ManualClock
from tests.support.size import WHOLE, size
from tests.support.spoil import let_change
from tests.support.until import until

TIMERS = size(400, 10_000)
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
PATIENCE_S = 60 + TIMERS / 40

pytestmark = [pytest.mark.proof, pytest.mark.soak, pytest.mark.timeout(0 if WHOLE else 180)]


class Steps:
    """When which clock reading was left behind: a timer that is recorded as fired may not be before its due time."""

    def __init__(self, db: Path) -> None:
        self._db = db

    def fired(self) -> dict[str, tuple[int, int, int]]:
        """run -> (times fired, recorded at, due)."""
        query = """
            SELECT w.run_id, count(*), min(c.at_ms), w.expires_at_ms
              FROM waits AS w JOIN events AS c ON c.run_id = w.run_id AND c.type = 'wait.closed'
             GROUP BY w.run_id
        """
        with closing(sqlite3.connect(self._db)) as connection, connection:
            return {run: (times, at_ms, due_ms) for run, times, at_ms, due_ms in connection.execute(query)}


async def submitted(engine: Engine) -> None:
    """Timers of one to two hours, all parked."""
    for start in range(0, TIMERS, 100):
        await asyncio.gather(*(engine.submit(sleep(3600 + i % 3600)) for i in range(start, min(start + 100, TIMERS))))
    await reached(engine, "waiting")


async def reached(engine: Engine, status: RunStatus) -> None:
    """All runs have this status, and none is in memory."""

    async def there() -> bool:
        return (await engine.runs.count())[status] >= TIMERS and not len(engine.parts.owned)

    await until(there, within_s=PATIENCE_S)


@pytest.mark.parametrize("step_ms", [0, DAY_MS, -DAY_MS], ids=["steady", "a day forward", "a day back"])
async def test_each_timer_fires_once_and_not_early_over_a_restart(tmp_path: Path, step_ms: int) -> None:
    db, clock = tmp_path / "weft.db", ManualClock()
    async with opened(db, clock) as engine:
        await submitted(engine)
    clock.advance(step_ms)  # while no process runs
    async with opened(db, clock) as engine:
        if step_ms <= 0:
            await asyncio.sleep(0.2)
            assert not Steps(db).fired(), "nothing is due yet"
            clock.advance(2 * HOUR_MS - step_ms)
        engine.parts.owned.wake()
        await reached(engine, "succeeded")
    fired = Steps(db).fired()
    assert len(fired) == TIMERS
    assert {times for times, _, _ in fired.values()} == {1}
    assert all(at_ms >= due_ms for _, at_ms, due_ms in fired.values())


async def test_a_clock_set_back_under_a_running_server_loses_nothing(tmp_path: Path) -> None:
    """Forward a day: all are due. Back a day while they are being woken: what fired stays, the rest waits its time."""
    db, clock = tmp_path / "weft.db", ManualClock()
    async with opened(db, clock) as engine:
        await submitted(engine)
        clock.advance(DAY_MS)
        engine.parts.owned.wake()
        async with asyncio.timeout(PATIENCE_S):
            while (await engine.runs.count())["succeeded"] < TIMERS // 10:
                await asyncio.sleep(0.01)
        clock.advance(-DAY_MS)
    ahead = Steps(db).fired()
    # The process that held leases of tomorrow is gone; its runs must not wait for tomorrow.
    async with opened(db, clock) as engine:
        await asyncio.sleep(0.5)  # time to fire, if they did not wait for theirs
        early = Steps(db).fired().keys() - ahead.keys()
        clock.advance(2 * HOUR_MS)
        engine.parts.owned.wake()
        await reached(engine, "succeeded")
    fired = Steps(db).fired()
    assert not early
    assert len(fired) == TIMERS
    assert {times for times, _, _ in fired.values()} == {1}
    assert all(at_ms >= due_ms for _, at_ms, due_ms in fired.values())


async def test_a_run_left_by_a_killed_process_does_not_wait_for_a_lease_of_tomorrow(tmp_path: Path) -> None:
    db, clock = tmp_path / "weft.db", ManualClock()
    async with opened(db, clock) as engine:
        run = (await engine.submit(sleep(3600))).run
        assert (await engine.wait_finished(run, 60)).status == "waiting"
    # As kill -9 of a worker leaves it, on a machine whose clock was a day ahead.
    with closing(sqlite3.connect(db)) as connection, connection:
        let_change(connection)
        lease_ms = clock.now_ms() + DAY_MS + 15_000
        connection.execute(
            "UPDATE runs SET status = 'running', lease_owner = 'gone', lease_until_ms = ?, next_run_at_ms = ?",
            (lease_ms, clock.now_ms() + DAY_MS),
        )
    async with opened(db, clock) as engine:
        clock.advance(HOUR_MS)
        engine.parts.owned.wake()
        async with asyncio.timeout(60):
            while (await engine.runs.view(run)).status != "succeeded":
                await asyncio.sleep(0.05)
