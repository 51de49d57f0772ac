"""A limit of five is never six: processes that claim at the same time, and are killed meanwhile."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.claimer import owned, store_of
from tests.support.rows import T0, placed
from tests.support.size import size

AT_MOST = 5
PROCESSES = 4
LINE = len(b"1 5\n")
RUNS = size(400, 3_000)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "weft.db") if request.param == "sqlite" else str(request.getfixturevalue("postgres"))


def start(database: str, out: Path, seed: float) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.support.claimer", database, str(AT_MOST), str(seed)]
    with out.open("ab") as stdout:
        return subprocess.Popen(command, stdout=stdout)


async def contend(database: str, folder: Path, runs: int, claims_per_kill: int, within_s: float) -> tuple[int, int]:
    """How many runs were claimed, with repeats, and how many processes were killed."""
    chance = random.Random(5)
    store = store_of(database)
    await store.open()
    for n in range(runs):
        await store.create_run(placed(f"run-{n:05}", T0 + n, limits=(("key", AT_MOST),), fair=f"tenant {n % 7}"))
    out = folder / "claims"
    processes = [start(database, out, n) for n in range(PROCESSES)]
    killed, next_kill, until_s = 0, claims_per_kill, time.monotonic() + within_s
    try:
        while (await store.count_runs()).get("succeeded", 0) < runs:
            assert await owned(store) <= AT_MOST
            assert time.monotonic() < until_s, f"{await store.count_runs()}, {killed} killed"
            for n, process in enumerate(processes):
                assert process.poll() in (None, 0, -signal.SIGKILL), out.read_text()[-200:]
                if process.poll() is not None:
                    processes[n] = start(database, out, chance.random())
            if out.stat().st_size >= LINE * next_kill:
                chance.choice(processes).kill()
                killed, next_kill = killed + 1, next_kill + chance.randint(1, 2 * claims_per_kill)
            await asyncio.sleep(0.002)
    finally:
        for process in processes:
            process.kill()
            process.wait()
        await store.close()
    claims = [line.split() for line in out.read_text().splitlines()]
    return sum(int(line[0]) for line in claims if len(line) == 2), killed


async def test_a_limit_holds_over_processes(database: str, tmp_path: Path) -> None:
    claimed, killed = await contend(database, tmp_path, 80, 15, 120)
    assert claimed >= 80 - 4 * killed


@pytest.mark.proof
@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_a_limit_of_five_is_never_six(database: str, tmp_path: Path) -> None:
    claimed, killed = await contend(database, tmp_path, RUNS, size(10, 60), 840)
    assert claimed >= RUNS - 4 * killed and killed >= 5
