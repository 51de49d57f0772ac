"""`weft sql` ends at its time limit, also inside one call of a function or one sort."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from executor.kernel.store.sqlite.store import SQLiteStore

ROOT = Path(__file__).parents[5]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    async def make() -> None:
        store = SQLiteStore(tmp_path / "weft.db")
        await store.open()
        await store.close()

    asyncio.run(make())
    return tmp_path / "weft.db"


@pytest.mark.parametrize(
    "query",
    [
        # 18.6 s before, with a limit of 10: one call, which nothing interrupts. As often as a fast machine needs.
        "SELECT length(" + " || ".join(["printf('%.*c', 2000000000, 'x')"] * 8) + ")",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000000) SELECT count(*) FROM n",
    ],
)
def test_a_query_ends_at_its_time_limit(database: Path, query: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "server", "sql", query, "--db", str(database), "--timeout", "0.5"],
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    assert done.returncode == 4, done.stdout
    assert "The query took too long." in done.stderr
    assert "narrow the query" in done.stderr


def test_a_quick_query_is_not_cut_off(database: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "server", "sql", "SELECT 1 AS one", "--db", str(database), "--timeout", "30"],
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout.split()) == (0, ["one", "---", "1"])
