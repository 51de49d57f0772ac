"""Databases with runs of every kind move from SQLite to PostgreSQL and back: each run continues where it was, and old
links are answered there."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psycopg")

import psycopg

from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.errors import BadRequest, Conflict, CorruptJournal, SchemaUnreleased, WeftError
from executor.kernel.store.migrate import UNRELEASED_MIN
from executor.kernel.store.postgres.migrate import UNRELEASED_MIN as SERVER_UNRELEASED_MIN
from executor.kernel.store.postgres.store import PostgresStore
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.open.engine import Engine
from executor.service.upkeep.invariants import check
from executor.service.upkeep.sql import open_reading
from executor.service.upkeep.transfer import Copied, transfer
from tests.golden.play import HOUR_S, SECRET, T0
from tests.golden.test_upgrade import ENDS, all_over, answer, answer_rounds, nothing_under_way, readdress, told_of
from tests.support.clock import ManualClock
from tests.support.recorded import SCHEMAS, contents, restore, runs
from tests.support.service import Service, serve
from tests.support.until import until


@pytest.fixture
def migrated() -> bool:
    return False


async def updated(folder: Path) -> Path:
    """The newest recorded database with the schema of this code. Nothing in it is executed."""
    db = restore(SCHEMAS[-1], folder)
    store = SQLiteStore(db)
    await store.open()
    await store.close()
    return db


async def moved(source: Path | str, target: Path | str) -> dict[str, Copied]:
    tables: dict[str, Copied] = {}
    await asyncio.to_thread(transfer, source, target, lambda table: tables.update({table.name: table}))
    return tables


def broken(place: Path | str) -> list[Any]:
    with closing(open_reading(place)) as db:
        return list(check(db))


async def to_the_end(store: SQLiteStore | PostgresStore, named: dict[str, str], service: Service) -> None:
    """What a server does with it, and people."""
    sandbox = Sandbox(threads=1)
    services = Services(
        sandbox=sandbox, http=GuardedClient(allow_private=(service.place,)), env={"SERVICE": service.url}
    )
    clock = ManualClock(T0 + 30_000)
    registry = Registry.load(sandbox=sandbox)
    engine = await Engine.open(store, registry=registry, services=services, secret=SECRET, clock=clock)
    try:
        await until(lambda: nothing_under_way(engine, set(named.values())))
        await until(lambda: told_of(service, named["told"]))
        for wait in await engine.waits.list("pending"):
            if wait.run != named["expires"]:
                await answer(engine, wait)
        await answer_rounds(engine, named["rounds"])
        clock.advance((HOUR_S + 1) * 1000)
        await until(lambda: all_over(engine))
        found = {name: await engine.runs.view(run) for name, run in named.items() if name != "rounds"}
        assert {name: (view.status, view.output) for name, view in found.items()} == {n: ENDS[n] for n in found}
    finally:
        await engine.close(grace_s=2)


async def test_runs_of_all_kinds_continue_on_the_other_side(tmp_path: Path, postgres: str) -> None:
    db = await updated(tmp_path)
    named = runs(db)
    async with serve() as service:
        readdress(db, service)
        before = contents(db)
        tables = await moved(db, postgres)
        assert contents(db) == before, "the source is as it was"
        assert tables["run_details"].count == tables["journals"].count >= len(named)
        for table in ("waits", "schedules", "webhooks", "drafts", "cache", "checkpoints", "inbox", "notifications"):
            assert table in tables and (table == "checkpoints" or tables[table].count), table
        assert broken(db) == broken(postgres) == []
        await to_the_end(PostgresStore(postgres), named, service)
    assert broken(postgres) == []
    back = tmp_path / "back" / "weft.db"
    with pytest.raises(Conflict, match="is not empty"):
        await moved(db, postgres)
    ended = await moved(postgres, back)
    assert sorted(path.name for path in back.parent.iterdir()) == ["weft.db"]
    assert ended["heads"].count == 0 and broken(back) == []
    assert runs(back).items() >= named.items() and back.stat().st_mode & 0o777 == 0o600


async def test_there_and_back_is_the_same_database(tmp_path: Path, postgres: str) -> None:
    db = await updated(tmp_path)
    named, back = runs(db), tmp_path / "back" / "weft.db"
    tables = await moved(db, postgres)
    assert await moved(postgres, back) == tables, "rows and hashes of each table, and of all journals"
    for place in (db, back):
        with closing(sqlite3.connect(place, isolation_level=None)) as connection:  # what is not moved
            connection.execute("DELETE FROM writers")
            connection.execute("DELETE FROM workers")
            connection.execute(
                "UPDATE heads SET owner = NULL, stalls = 0, seq = (SELECT seq FROM runs WHERE n = heads.n)"
            )
    here, there = contents(db)[1], contents(back)[1]
    assert [line for line in here if "sqlite_s" not in line] == [line for line in there if "sqlite_s" not in line]
    async with serve() as service:
        readdress(back, service)
        await to_the_end(SQLiteStore(back), named, service)
    assert broken(back) == []


async def test_a_new_run_gets_the_next_number(tmp_path: Path, postgres: str) -> None:
    db = await updated(tmp_path)
    await moved(db, postgres)
    with psycopg.connect(postgres) as connection:
        for table in ("run_details", "fires", "deliveries"):
            query = f"SELECT nextval(pg_get_serial_sequence('{table}', 'n')), (SELECT coalesce(max(n), 0) FROM {table})"
            ((number, highest),) = connection.execute(query.encode()).fetchall()
            assert number == highest + 1, table


# --- from the last schema of before the first release


def as_unreleased(db: Path, schema: int) -> None:
    """Make the file one that a version before the first release wrote."""
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS old_events (run_id TEXT, seq INTEGER, checksum INTEGER)")
        connection.execute(f"PRAGMA user_version = {schema}")


async def test_a_file_of_before_the_first_release_is_copied_once(tmp_path: Path) -> None:
    db, new = await updated(tmp_path), tmp_path / "new" / "weft.db"
    named = runs(db)
    as_unreleased(db, UNRELEASED_MIN)
    with pytest.raises(SchemaUnreleased, match=f"schema {UNRELEASED_MIN} .* before its first release"):
        await SQLiteStore(db).open()
    before = contents(db)
    tables = await moved(db, new)
    assert contents(db) == before, "the source is as it was"
    assert tables["run_details"].count == tables["journals"].count >= len(named) and broken(new) == []
    async with serve() as service:
        readdress(new, service)
        await to_the_end(SQLiteStore(new), named, service)
    assert broken(new) == []

    third = tmp_path / "third.db"
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        connection.execute("INSERT INTO old_events VALUES ('r', 1, NULL)")
    with pytest.raises(Conflict, match="events as rows of their own"):
        await moved(db, third)
    as_unreleased(db, UNRELEASED_MIN - 1)
    with pytest.raises(SchemaUnreleased) as refused:
        await moved(db, third)
    assert "open it once with the last version before" in refused.value.hint and not third.exists()


async def test_a_server_of_before_the_first_release_is_copied_once(tmp_path: Path, postgres: str) -> None:
    db = await updated(tmp_path)
    tables = await moved(db, postgres)
    with psycopg.connect(postgres) as connection:
        connection.execute("ALTER TABLE weft_schema DROP COLUMN release")
        connection.execute(f"UPDATE weft_schema SET version = {SERVER_UNRELEASED_MIN}".encode())
    with pytest.raises(SchemaUnreleased):
        await PostgresStore(postgres).open()
    assert await moved(postgres, tmp_path / "new.db") == tables and broken(tmp_path / "new.db") == []
    with psycopg.connect(postgres) as connection:
        connection.execute("UPDATE weft_schema SET version = 1")
    with pytest.raises(SchemaUnreleased):
        await moved(postgres, tmp_path / "other.db")


# --- refusals: nothing is there afterwards


def rows_there(address: str) -> int:
    with psycopg.connect(address) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        counts = [
            connection.execute(f'SELECT count(*) FROM "{table}"'.encode()).fetchall()[0][0]
            for (table,) in tables
            if table != "weft_schema"
        ]
    return sum(counts)


async def test_a_source_that_is_in_use(tmp_path: Path, postgres: str) -> None:
    db = await updated(tmp_path)
    store = SQLiteStore(db)
    await store.open()
    try:
        with pytest.raises(Conflict, match="a process is using"):
            await moved(db, postgres)
    finally:
        await store.close()
    await moved(db, postgres)
    on_server = PostgresStore(postgres)
    await on_server.open()
    try:
        with pytest.raises(Conflict, match=r"is in use: .* sessions of weft are open"):
            await moved(postgres, tmp_path / "new.db")
    finally:
        await on_server.close()
    with psycopg.connect(postgres) as connection:
        connection.execute("INSERT INTO workers VALUES ('far away', 9000000000000, 0)")
    with pytest.raises(Conflict, match="1 workers have runs"):
        await moved(postgres, tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


async def test_what_cannot_be_a_source_or_a_target(tmp_path: Path, postgres: str) -> None:
    db = await updated(tmp_path / "new")
    with pytest.raises(Conflict, match="one of the two"):
        await moved(db, tmp_path / "copy.db")
    with pytest.raises(Conflict, match="schema 0"):
        await moved(postgres, tmp_path / "copy.db")
    with pytest.raises(WeftError, match="form postgresql"):
        await moved(db, "postgresql://user:secret@[/x")
    with pytest.raises(sqlite3.OperationalError):
        await moved(tmp_path / "nothing.db", postgres)
    await moved(db, postgres)
    with pytest.raises(Conflict, match="already exists"):
        await moved(postgres, db)
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ("UPDATE batches SET payload = CAST(payload || ' ' AS BLOB) WHERE seq = first_seq + 0", CorruptJournal),
        ("UPDATE waits SET correlation = 'nul ' || char(0) || ' inside'", BadRequest),
    ],
)
async def test_a_source_that_cannot_be_moved_leaves_the_target_empty(
    change: str, error: type[Exception], tmp_path: Path, postgres: str
) -> None:
    db = await updated(tmp_path)
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        assert connection.execute(change).rowcount
    with pytest.raises(error):
        await moved(db, postgres)
    assert rows_there(postgres) == 0
    await moved(await updated(tmp_path / "sound"), postgres)


@pytest.mark.parametrize("broken_off", ["heads", "batches"])
async def test_a_move_that_is_broken_off_leaves_nothing(
    broken_off: str, tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from executor.service.upkeep.transfer import FileTarget
    from executor.service.upkeep.transfer_postgres import ServerTarget

    db = await updated(tmp_path)
    kinds: tuple[Any, ...] = (ServerTarget, FileTarget)
    for kind in kinds:
        add = kind.add

        def breaks(self: Any, table: str, *more: Any, add: Any = add) -> None:
            add(self, table, *more)
            if table == broken_off:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(kind, "add", breaks)
            source, target = (db, postgres) if kind is kinds[0] else (postgres, tmp_path / "back.db")
            with pytest.raises(KeyboardInterrupt):
                transfer(source, target)
        if kind is kinds[0]:
            assert rows_there(postgres) == 0
            await moved(db, postgres)
    assert not (tmp_path / "back.db").exists() and not list(tmp_path.glob("*.part*"))


async def test_what_was_changed_on_the_way_is_noticed(
    tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from executor.service.upkeep.transfer_postgres import ServerTarget

    db = await updated(tmp_path)
    add = ServerTarget.add
    for table in ("waits", "batches"):

        def loses(self: ServerTarget, name: str, columns: Any, rows: Any, table: str = table) -> None:
            kept = list(rows)
            add(self, name, columns, kept[:-1] if name == table else kept)

        monkeypatch.setattr(ServerTarget, "add", loses)
        with pytest.raises(WeftError, match=r"were read back instead of|not what was written"):
            await moved(db, postgres)
        assert rows_there(postgres) == 0
