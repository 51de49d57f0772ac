"""A limit of five blocks is never six: processes that execute runs, and are killed meanwhile. None waits forever."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.limited import Call, limited, store_of
from tests.support.runs import engine_on
from tests.support.size import size

AT_MOST = 5
PROCESSES = 4


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "weft.db") if request.param == "sqlite" else str(request.getfixturevalue("postgres"))


def start(database: str, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.support.limited", database, str(folder), str(AT_MOST)]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stderr=log)


async def contend(database: str, folder: Path, runs: int, branches: int, calls_per_kill: int, within_s: float) -> int:
    """How many processes were killed."""
    chance = random.Random(7)
    store, _ = store_of(database)
    begun = folder / "begun"
    begun.touch()
    killed, next_kill, until_s = 0, calls_per_kill, time.monotonic() + within_s
    async with engine_on(store, Call(folder, AT_MOST), work=False) as engine:
        made = [(await engine.submit(limited(branches, AT_MOST))).run for _ in range(runs)]
        processes = [start(database, folder) for _ in range(PROCESSES)]
        try:
            while (await engine.store.count_runs()).get("succeeded", 0) < runs:
                counts = await engine.store.count_runs()
                assert time.monotonic() < until_s, f"{counts}, {begun.stat().st_size // 2} calls, {killed} killed"
                assert "failed" not in counts, counts
                assert not (folder / "wrong").exists(), (folder / "wrong").read_text()
                for n, process in enumerate(processes):
                    if process.poll() is not None:
                        assert process.returncode == -signal.SIGKILL, (folder / "log").read_text()[-2000:]
                        process.communicate()
                        processes[n] = start(database, folder)
                if begun.stat().st_size // 2 >= next_kill:
                    chance.choice(processes).kill()
                    killed, next_kill = killed + 1, next_kill + chance.randint(1, 2 * calls_per_kill)
                await asyncio.sleep(0.01)
        finally:
            for process in processes:
                process.kill()
                process.communicate()
        assert not (folder / "wrong").exists(), (folder / "wrong").read_text()
        assert begun.stat().st_size // 2 >= runs * branches
        for run in made:
            assert await engine.store.places_of(run) == []
    return killed


@pytest.mark.proof
@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_a_limit_of_five_blocks_is_never_six(database: str, tmp_path: Path) -> None:
    assert await contend(database, tmp_path, size(6, 40), 50, size(15, 100), 1700) >= 5
