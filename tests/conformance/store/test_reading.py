"""Sessions that only read: the same on every database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from executor.errors import DatabaseUnavailable
from executor.kernel.store.reading import Reading
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.people import SessionRow
from executor.kernel.store.topics.store import Store
from executor.service.upkeep.sql import open_reading

HASHES = "SELECT hash FROM sessions WHERE seen_at_ms >= :since ORDER BY hash"


@pytest_asyncio.fixture
async def filled(database: str) -> Any:
    """The store behind it stays open."""
    opened: Store
    if database.startswith("postgresql:"):
        from executor.kernel.store.postgres.store import PostgresStore

        opened = PostgresStore(database)
    else:
        opened = SQLiteStore(Path(database))
    await opened.open()
    for n in range(3):
        await opened.put_session(SessionRow(hash=f"h{n}", mark=f"mark {n}", created_at_ms=n, seen_at_ms=n), -1, -1)
    yield opened
    await opened.close()


@pytest.fixture
def reading(database: str, filled: Store) -> Iterator[Reading]:
    place = database if database.startswith("postgresql:") else Path(database)
    with closing(open_reading(place)) as opened:
        yield opened


async def test_rows_have_named_parameters(reading: Reading) -> None:
    assert reading.rows(HASHES, {"since": 1}) == [("h1",), ("h2",)]
    assert reading.rows("SELECT count(*), '100%' FROM sessions") == [(3, "100%")]
    assert list(reading.each(HASHES, {"since": 0})) == [("h0",), ("h1",), ("h2",)]


async def test_other_statements_may_come_between_rows(reading: Reading) -> None:
    found = []
    for (hash,) in reading.each(HASHES, {"since": 0}):
        found += reading.rows("SELECT mark FROM sessions WHERE hash = :hash", {"hash": hash})
    assert found == [("mark 0",), ("mark 1",), ("mark 2",)]


async def test_a_snapshot_is_one_moment_for_all_statements(reading: Reading, filled: Store) -> None:
    with reading.snapshot():
        assert len(reading.rows(HASHES, {"since": 0})) == 3
        await filled.put_session(SessionRow(hash="later", mark="", created_at_ms=5, seen_at_ms=5), -1, -1)
        with reading.snapshot():  # the same
            assert len(reading.rows(HASHES, {"since": 0})) == len(list(reading.each(HASHES, {"since": 0}))) == 3
    assert len(reading.rows(HASHES, {"since": 0})) == 4


async def test_a_snapshot_ends_with_an_error(reading: Reading) -> None:
    with pytest.raises(RuntimeError), reading.snapshot():
        raise RuntimeError
    assert len(reading.rows(HASHES, {"since": 0})) == 3


async def test_it_says_what_there_is(reading: Reading, database: str) -> None:
    found, newest = reading.schema()
    assert found == newest > 0
    assert reading.tables()["sessions"] == ["hash", "mark", "created_at_ms", "seen_at_ms", "user_id", "device"]
    texts = {column.name: column.has for column in reading.texts("sessions")}
    assert texts.keys() == {"hash", "mark", "user_id", "device"}
    query = f"SELECT hash FROM sessions WHERE {texts['mark'].format(':part')}"
    assert reading.rows(query, {"part": b"rk 2"}) == [("h2",)]
    assert list(reading.unsound(10)) == [] and reading.damage(RuntimeError()) is None
    assert reading.clock_ms() > 1_700_000_000_000
    assert database in reading.name or "PostgreSQL database test-" in reading.name


async def test_it_only_reads(reading: Reading) -> None:
    import sqlite3

    with pytest.raises((DatabaseUnavailable, sqlite3.OperationalError)):
        reading.rows("DELETE FROM sessions RETURNING hash")
    assert len(reading.rows(HASHES, {"since": 0})) == 3


async def test_both_schemas_have_the_same_tables(database: str, reading: Reading, tmp_path: Path) -> None:
    """So that a database can move by rows (`executor.service.upkeep.transfer`)."""
    if reading.kind == "SQLite":
        return
    of_file = SQLiteStore(tmp_path / "weft.db")
    await of_file.open()
    await of_file.close()
    with closing(open_reading(tmp_path / "weft.db")) as file:
        theirs = {name: sorted(columns) for name, columns in file.tables().items()}
    mine = {name: sorted(columns) for name, columns in reading.tables().items() if name != "weft_schema"}
    theirs.pop("writers"), mine.pop("writers")
    assert mine == theirs
