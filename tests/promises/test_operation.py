"""What an operator is shown is true: of idle workers, and of a file that several processes use."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from executor.store.sqlite.store import SQLiteStore
from executor.upkeep import place
from server.app import build_engine
from server.metrics.collect import exposition
from server.metrics.process import ProcessMeters
from server.settings import Settings

HOLDS = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("SELECT 1 FROM runs").fetchall()
print(1, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("work", [True, False])
async def test_an_idle_worker_is_counted(work: bool, tmp_path: Path) -> None:
    settings = Settings(db_path=str(tmp_path / "weft.db"), secret_key="a secret", pools=("default", "gpu"))
    engine = await build_engine(settings, work=work)
    try:
        text = (await exposition(engine, ProcessMeters()))[0].decode()
    finally:
        await engine.close()
    assert "weft_workers 0.0" in text, "it holds no lease"
    for pool in ("default", "gpu"):
        assert (f'weft_worker_pools{{pool="{pool}"}} 1.0' in text) == work


@contextmanager
def opened(database: Path) -> Iterator[int]:
    """By another process; its id."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdout.readline()
    try:
        yield process.pid
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell which processes have a file open")
async def test_an_old_sqlite_is_a_warning_while_several_processes_use_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "weft.db"
    store = SQLiteStore(database)
    await store.open()
    await store.close()
    monkeypatch.setattr(place, "FIXED_WAL_RESET", (99, 0, 0))
    with ExitStack() as processes:
        levels = [next(iter(place.conditions_of_file(database))).level]
        pids = []
        for _ in range(2):
            pids.append(processes.enter_context(opened(database)))
            found = next(iter(place.conditions_of_file(database)))
            levels.append(found.level)
    assert levels == ["ok", "ok", "warning"]
    assert all(str(pid) in found.what for pid in pids)
