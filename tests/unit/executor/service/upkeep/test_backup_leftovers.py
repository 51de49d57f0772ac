"""The log says that the clock was set back only when it was. Nothing of a killed backup stays for ever."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from executor.kernel.store.run_rows import ClockRepair
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.service.upkeep.backup import backup
from tests.support.clock import ManualClock
from tests.support.rows import new_run
from tests.support.runs import engine_on


class LateStore(SQLiteStore):
    """Its first look for other times waits for another process, which commits a run meanwhile."""

    def __init__(self, path: Path, clock: ManualClock, step_ms: int) -> None:
        super().__init__(path)
        self.clock = clock
        self.step_ms = step_ms
        self.repaired: list[ClockRepair] = []

    async def repair_clock_skew(self, now_ms: int, lease_max_ms: int) -> ClockRepair:
        if not self.repaired:
            self.clock.advance(2_000)
            await self.create_run(new_run("run-1", self.clock.now_ms() + self.step_ms))
        self.repaired.append(await super().repair_clock_skew(now_ms, lease_max_ms))
        return self.repaired[-1]


@pytest.mark.parametrize(("step_ms", "told"), [(0, False), (3_600_000, True)])
async def test_a_look_that_waited_is_no_clock_that_was_set_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, step_ms: int, told: bool
) -> None:
    clock = ManualClock()
    store = LateStore(tmp_path / "weft.db", clock, step_ms)
    async with engine_on(store, clock=clock), asyncio.timeout(30):
        while not store.repaired:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)
    assert store.repaired[0].runs == 1
    assert ("the clock was set back" in caplog.text) == told


async def test_the_next_backup_clears_away_what_a_killed_one_left(tmp_path: Path) -> None:
    db, folder = tmp_path / "weft.db", tmp_path / "backups"
    folder.mkdir()
    async with engine_on(db):
        pass
    program = (
        "import os, signal, sys; from pathlib import Path; from executor.service.upkeep import backup as b\n"
        "b._sync = lambda path: os.kill(os.getpid(), signal.SIGKILL)\n"
        "b.backup(Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    killed = [sys.executable, "-c", program, str(db), str(folder / "monday.db")]
    assert (await asyncio.to_thread(subprocess.run, killed, check=False)).returncode == -9
    left = sorted(folder.iterdir())
    assert [path.suffix for path in left] == [".part", ".part-owner"]
    kept = [folder / "thesis.part", folder / "notes.0123456789abcdef.part", folder / "thesis.part-owner"]
    for path in kept:
        path.write_text("of another program")
    await asyncio.to_thread(backup, db, folder / "tuesday.db")
    assert sorted(folder.iterdir()) == sorted([*kept, folder / "tuesday.db"])
