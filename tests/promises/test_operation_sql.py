"""Queries of the documentation take as long on a large database as on a small one."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from server import cli
from server.app import build_engine
from server.settings import Settings
from tests.support.documents import document

RUNS = 6
DOCS = Path(__file__).parents[2] / "docs" / "howto" / "operate.md"
VIEWS = ("events", "outputs", "attempts", "nodes", "steps")
FLOW = document("flow", "start a", blocks={"a": {"type": "set", "params": {"value": 5}}})
Asked = Callable[..., Result]


def spoil(database: Path | str, text: str) -> None:
    if isinstance(database, Path):
        with closing(sqlite3.connect(database)) as db, db:
            db.execute(text)
    else:
        import psycopg

        with psycopg.connect(database) as connection:
            connection.execute(text)


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def asked(request: pytest.FixtureRequest, tmp_path: Path) -> Asked:
    """`weft sql` on a database in which the journal of each run but the newest cannot be read."""
    database: Path | str = tmp_path / "weft.db" if request.param == "SQLite" else request.getfixturevalue("postgres")
    place = {"db_path": str(database)} if isinstance(database, Path) else {"db_address": database}

    async def make() -> None:
        engine = await build_engine(Settings(secret_key="a secret for tests only", **place))  # type: ignore[arg-type]
        try:
            for _ in range(RUNS):
                await engine.wait_finished((await engine.submit(FLOW)).run, 60)
        finally:
            await engine.close()

    asyncio.run(make())
    spoil(database, "UPDATE batches SET head = 'not read' WHERE n < (SELECT max(n) FROM batches)")
    return lambda *arguments: CliRunner().invoke(
        cli.weft, ["sql", "--db", str(database), *arguments], standalone_mode=False
    )


def commands() -> list[list[str]]:
    found = re.findall(r"^weft sql (.*)$", DOCS.read_text(), re.MULTILINE)
    assert len(found) == 2
    return [shlex.split(line) for line in found]


def test_the_queries_of_the_documentation_read_no_old_journal(asked: Asked) -> None:
    for arguments in commands():
        narrowed = [argument.replace("1000", "1") for argument in arguments]
        ran = asked("--format", "json", *narrowed)
        assert ran.return_value == 0, (arguments, ran.exception)
        assert ran.stdout.strip()


@pytest.mark.parametrize("view", VIEWS)
def test_the_newest_runs_are_read_alone(asked: Asked, view: str) -> None:
    query = f"SELECT count(DISTINCT run_id) AS runs FROM {view}"
    assert asked(query).exception is not None, "it reads all journals"
    found = json.loads(asked("--last", "1", "--format", "json", query).stdout)
    assert found == {"runs": 0 if view == "steps" else 1}
    named = f"WITH RECURSIVE n(i) AS (SELECT 1) SELECT count(*) AS rows FROM {view}, n"
    assert json.loads(asked("--last", "1", "--format", "json", named).stdout)["rows"] >= 0


def test_what_is_cut_off_says_how_to_narrow_it(asked: Asked) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    refused = asked("--timeout", "0.3", endless).exception
    assert "took too long" in str(refused) and "--last 1000" in getattr(refused, "hint", "")
