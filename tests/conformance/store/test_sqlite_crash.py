"""Promises 1 and 2 under kill -9: acknowledged data is present, and a group is there as a whole or not at all."""

from __future__ import annotations

import contextlib
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from executor.kernel.store.sqlite.store import SQLiteStore

RUNS = 8


def acknowledged_until_death(
    path: Path, *how: str, runs: int = RUNS, kill_after_s: float | None = None
) -> dict[str, int]:
    """Run an appender to its end. Highest acknowledged seq by run."""
    command = [sys.executable, "-m", "tests.conformance.store.appender", str(path), str(runs), *how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            lines = [process.stdout.readline()]  # now it appends
            if kill_after_s is not None:
                time.sleep(kill_after_s)
                process.kill()
            lines += process.stdout.readlines()
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL
    acknowledged: dict[str, int] = {}
    for line in lines:
        if line.endswith("\n"):  # the last one may be torn
            run, seq = line.split()
            acknowledged[run] = max(int(seq), acknowledged.get(run, 0))
    return acknowledged


def stored(path: Path, with_blobs: bool = True) -> dict[str, int]:
    """Seq by run, after checking that the file is sound and each run is whole: events 1..seq, a blob for each pair."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        seqs: dict[str, int] = dict(db.execute("SELECT id, seq FROM runs"))
        for run, seq in seqs.items():
            events = [row[0] for row in db.execute("SELECT seq FROM events WHERE run_id = ? ORDER BY seq", (run,))]
            assert events == list(range(1, seq + 1))
            (blobs,) = db.execute("SELECT count(*) FROM blobs WHERE hash GLOB ?", (f"{run}/*",)).fetchone()
            assert blobs == (seq - 1) // 2 * with_blobs
        return seqs


@pytest.mark.parametrize("here", [False, True])
def test_nothing_acknowledged_is_lost_to_kill_9(tmp_path: Path, here: bool) -> None:
    path = tmp_path / "weft.db"
    chance = random.Random(20_261_120)
    before = 0
    for _ in range(5):  # each continues with the file the one before left behind
        how, runs = (["here"], 1) if here else ([], RUNS)
        acknowledged = acknowledged_until_death(path, *how, runs=runs, kill_after_s=chance.uniform(0.02, 0.3))
        found = stored(path, with_blobs=not here)
        assert acknowledged
        for run, seq in acknowledged.items():
            assert found[run] >= seq, f"{run}: {seq} was acknowledged, {found[run]} is stored"
        assert sum(found.values()) > before
        before = sum(found.values())


def test_a_group_killed_before_its_commit_leaves_nothing(tmp_path: Path) -> None:
    acknowledged_until_death(tmp_path / "weft.db", "tx.group.before_commit")
    assert stored(tmp_path / "weft.db") == {f"run-{i}": 1 for i in range(RUNS)}


def test_a_group_killed_after_its_commit_is_there_as_a_whole(tmp_path: Path) -> None:
    acknowledged_until_death(tmp_path / "weft.db", "tx.group.after_commit")
    assert stored(tmp_path / "weft.db") == {f"run-{i}": 3 for i in range(RUNS)}


async def test_the_store_continues_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    acknowledged_until_death(path, "tx.group.before_commit")
    found = stored(path)
    store = SQLiteStore(path)
    await store.open()
    for run, seq in found.items():
        assert len(await store.read_events(run)) == seq
    await store.ping()
    await store.close()
