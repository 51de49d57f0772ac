"""Commands that look after a PostgreSQL database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("psycopg")

import psycopg
from psycopg.conninfo import conninfo_to_dict

from executor.errors import Conflict
from executor.kernel.store.postgres.store import PostgresStore
from server import cli
from server.app import build_engine
from server.cli.common import Refused
from server.settings import Settings
from tests.support.documents import document

Weft = Callable[..., Result]


@pytest.fixture
def address(postgres: str) -> str:
    """In the form of WEFT_DB, with two runs: one has ended, one waits."""
    parts = conninfo_to_dict(postgres)
    address = f"postgresql:///{parts['dbname']}?host={quote(str(parts['host']), safe='')}&user={parts['user']}"

    async def make() -> None:
        engine = await build_engine(Settings(db_address=address, secret_key="a secret for tests only"))
        try:
            block = {"type": "set", "params": {"value": {"n": 5}}}
            await engine.workflows.save(document("flow", "start a", blocks={"a": block}))
            ended = await engine.submit("flow")
            await engine.wait_finished(ended.run, 60)
            asking = await engine.submit(document("asking", "start a", blocks={"a": {"type": "approval"}}))
            await engine.wait_finished(asking.run, 60)
        finally:
            await engine.close()

    asyncio.run(make())
    return address


@pytest.fixture
def weft(address: str, monkeypatch: pytest.MonkeyPatch) -> Weft:
    monkeypatch.setenv("WEFT_DB", address)
    return lambda *arguments: CliRunner().invoke(cli.weft, arguments, standalone_mode=False)


def refusal(ran: Result) -> str:
    assert isinstance(ran.exception, Refused), ran.output
    return f"{ran.exception.message} {ran.exception.hint}"


def test_doctor_sql_and_export(weft: Weft) -> None:
    checked = weft("doctor")
    assert checked.return_value == 0, checked.output
    assert "1 succeeded, 1 waiting" in checked.stdout and "PostgreSQL: version" in checked.stdout
    report = json.loads(weft("doctor", "--json").stdout)
    assert report["findings"] == [] and report["database"].startswith("PostgreSQL database test-")
    asked = weft("sql", "SELECT workflow, node, output FROM outputs ORDER BY 1, 2", "--format", "json")
    assert "a" in [json.loads(line)["node"] for line in asked.stdout.splitlines()]
    assert "nly reading" in refusal(weft("sql", "DELETE FROM heads"))
    assert '"{""n"":5}"' in weft("export", "flow", "--node", "a").stdout
    assert "There is no run 'x'" in refusal(weft("doctor", "--run", "x"))


def test_copies_are_made_by_the_means_of_the_database(weft: Weft, address: str) -> None:
    made = refusal(weft("backup", "copy.dump"))
    assert 'pg_dump --format=custom --file=copy.dump --dbname="$WEFT_DB"' in made
    assert "--dbname=ADDRESS" in refusal(weft("backup", "copy.dump", "--db", address))


def test_old_runs_are_deleted_by_one_process_at_a_time(weft: Weft, address: str) -> None:
    assert "--vacuum is for SQLite" in refusal(weft("gc", "--db", address, "--vacuum"))
    would = json.loads(weft("gc", "--db", address, "--older-than", "0s", "--dry-run", "--json").stdout)
    assert (would["runs"], would["dry_run"]) == (1, True)

    async def beside() -> Result:
        async with PostgresStore(address).deleting() as alone:
            assert alone
            engine = await build_engine(Settings(db_address=address, secret_key="a secret for tests only"))
            try:
                with pytest.raises(Conflict, match="another process"):
                    await engine.upkeep.collect(0)
            finally:
                await engine.close()
            return await asyncio.to_thread(weft, "gc", "--db", address, "--older-than", "0s")

    assert "nother process is deleting" in refusal(asyncio.run(beside()))
    gone = json.loads(weft("gc", "--db", address, "--older-than", "0s", "--snapshots", "--json").stdout)
    assert (gone["runs"], gone["snapshots"]) == (1, 0)
    with psycopg.connect(address) as connection:
        connection.execute("INSERT INTO workers VALUES ('w', 9000000000000, 0)")
    assert "A worker has runs" in refusal(weft("gc", "--db", address, "--snapshots"))
    assert weft("doctor").return_value == 0


def test_a_database_is_moved(weft: Weft, address: str, tmp_path: Path) -> None:
    file = tmp_path / "weft.db"
    made = weft("migrate-store", address, str(file))
    assert made.return_value == 0, made.output
    assert "run_details: 2 rows" in made.stdout and "journals: 2 runs" in made.stdout and "Done" in made.stdout
    assert "do not start one on the old database" in made.stderr and "WEFT_SECRET_KEY" in made.stderr
    assert weft("doctor", "--db", str(file)).return_value == 0
    assert "already exists" in refusal(weft("migrate-store", address, str(file)))
    assert "is not empty" in refusal(weft("migrate-store", str(file), address))
    assert "There is no database" in refusal(weft("migrate-store", str(tmp_path / "x.db"), address))
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    file.with_suffix(".key").write_text("ab" * 32)
    back = weft("migrate-store", str(file), address)
    assert f'WEFT_SECRET_KEY="hex:$(cat {file.with_suffix(".key")})"' in back.stderr
    assert weft("doctor").return_value == 0
