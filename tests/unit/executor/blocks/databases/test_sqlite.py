"""Queries on real SQLite files."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from executor.blocks.databases.databases import Databases
from executor.blocks.databases.rows import BYTES_MAX, Answer, Query
from executor.blocks.http.client import GuardedClient
from executor.errors import BlockError

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as db, db:
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT, amount REAL, raw BLOB)")
        db.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", [(n, f"o{n}", n / 2, b"\x01") for n in range(1, 6)])
    return tmp_path


@pytest.fixture
async def databases(folder: Path) -> AsyncIterator[Databases]:
    made = Databases(GuardedClient(), [str(folder)])
    yield made
    await made.close()


async def ask(databases: Databases, text: str, name: str = "shop.db", **more: Any) -> Answer:
    return await databases.ask(name, Query(text, **more), run="a test")


async def refusal(databases: Databases, text: str, name: str = "shop.db", **more: Any) -> BlockError:
    with pytest.raises(BlockError) as caught:
        await ask(databases, text, name, **more)
    return caught.value


async def test_rows(databases: Databases) -> None:
    query = "SELECT id, name, amount, raw, NULL AS empty FROM orders WHERE amount > :least ORDER BY id"
    answer = await ask(databases, query, parameters={"least": 1.5}, max_rows=1)
    assert answer.columns == ["id", "name", "amount", "raw", "empty"]
    assert answer.rows == [{"id": 4, "name": "o4", "amount": 2.0, "raw": "AQ==", "empty": None}]
    assert (answer.cut, answer.affected) == ("rows", None)
    assert (await ask(databases, query, "sqlite:shop.db", parameters={"least": 9})).rows == []


async def test_values_are_bound_and_never_text_of_the_query(databases: Databases) -> None:
    hostile = "x'; DELETE FROM orders; --"
    given = {"a": hostile, "b": True, "c": [1, {"d": None}], "e": 2**40}
    answer = await ask(databases, "SELECT :a AS a, :b AS b, :c AS c, :e AS e", parameters=given)
    assert answer.rows == [{"a": hostile, "b": 1, "c": '[1,{"d":null}]', "e": 2**40}]
    for value in (2**70, "\ud800"):
        assert (await refusal(databases, "SELECT :a", parameters={"a": value})).code == "params_invalid"
    assert "the query uses it" in (await refusal(databases, "SELECT :a")).message


async def test_a_change_is_committed_only_when_the_block_does_not_only_read(databases: Databases) -> None:
    change = "UPDATE orders SET name = 'x' WHERE id > :id RETURNING id"
    error = await refusal(databases, change, parameters={"id": 3})
    assert (error.code, error.retryable) == ("sql_refused", False)
    assert "Read only" in error.hint
    answer = await ask(databases, change, parameters={"id": 2}, read_only=False, max_rows=1)
    assert ([row["id"] for row in answer.rows], answer.cut, answer.affected) == ([3], "rows", 3)
    assert (await ask(databases, "SELECT count(*) AS n FROM orders WHERE name = 'x'")).rows == [{"n": 3}]


async def test_a_change_that_fails_is_undone(databases: Databases, folder: Path) -> None:
    query = "INSERT INTO orders (id) VALUES (10), (1)"
    error = await refusal(databases, query, read_only=False)
    assert error.message == "the database refused the query: UNIQUE constraint failed: orders.id"
    assert (await ask(databases, "SELECT count(*) AS n FROM orders")).rows == [{"n": 5}]


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    "query",
    [
        "ATTACH DATABASE '{folder}/other.db' AS other",
        "DETACH DATABASE main",
        "VACUUM INTO '{folder}/other.db'",
        "COMMIT",
        "BEGIN",
        "ROLLBACK",
        "SAVEPOINT a",
        "PRAGMA query_only = OFF",
        "PRAGMA writable_schema = ON",
        "PRAGMA journal_mode = WAL",
        "PRAGMA max_page_count = 4294967294",
        "SELECT load_extension('x')",
        "SELECT * FROM pragma_journal_mode('off')",
        "CREATE VIRTUAL TABLE t USING dbstat",
        "SELECT 1; DELETE FROM orders",
        "SELECT writefile('{folder}/other.db', 'x')",
    ],
)
async def test_nothing_leads_out_of_the_file(databases: Databases, folder: Path, query: str, read_only: bool) -> None:
    error = await refusal(databases, query.format(folder=folder), read_only=read_only)
    assert error.code in ("sql_refused", "sql_failed"), error.message
    assert not error.retryable
    assert sorted(path.name for path in folder.iterdir()) == ["shop.db"]
    assert (await ask(databases, "SELECT count(*) AS n FROM orders")).rows == [{"n": 5}]


@pytest.mark.parametrize(
    "query",
    ["DELETE FROM orders", "DROP TABLE orders", "CREATE TABLE t (a)", "CREATE TEMP TABLE t (a)",
     "INSERT INTO orders (id) VALUES (9)", "WITH a AS (SELECT 1) DELETE FROM orders"],
)  # fmt: skip
async def test_reading_changes_nothing(databases: Databases, query: str) -> None:
    assert (await refusal(databases, query)).code == "sql_refused"
    assert (await ask(databases, "SELECT count(*) AS n FROM orders")).rows == [{"n": 5}]


async def test_a_schema_can_be_read(databases: Databases) -> None:
    assert [row["name"] for row in (await ask(databases, "PRAGMA table_info(orders)")).rows][:2] == ["id", "name"]
    assert (await ask(databases, "SELECT name FROM sqlite_schema")).rows == [{"name": "orders"}]
    assert (await ask(databases, "SELECT name FROM pragma_table_info('orders') LIMIT 1")).rows == [{"name": "id"}]


async def test_a_new_file_and_its_table(databases: Databases, folder: Path) -> None:
    await ask(databases, "CREATE TABLE days (day TEXT)", "new.db", read_only=False)
    answer = await ask(
        databases, "INSERT INTO days VALUES (:day)", "new.db", read_only=False, parameters={"day": "mon"}
    )
    assert (answer.affected, answer.rows) == (1, [])
    assert (await ask(databases, "SELECT * FROM days", "new.db")).rows == [{"day": "mon"}]
    assert (await refusal(databases, "SELECT 1", "missing.db")).code == "sql_no_file"


async def test_full_text_search_works(databases: Databases) -> None:
    await ask(databases, "CREATE VIRTUAL TABLE notes USING fts5(text)", "notes.db", read_only=False)
    await ask(databases, "INSERT INTO notes VALUES ('a blue whale'), ('a cat')", "notes.db", read_only=False)
    found = await ask(
        databases, "SELECT text FROM notes WHERE notes MATCH :word", "notes.db", parameters={"word": "whale"}
    )
    assert found.rows == [{"text": "a blue whale"}]


async def test_errors_say_where(databases: Databases) -> None:
    assert (await refusal(databases, "SELECT id,\n  nam FROM orders")).message == (
        "the database refused the query at line 2, column 3: no such column: nam"
    )
    error = await refusal(databases, "SELECT id FORM orders")
    assert error.message == 'the database refused the query at line 1, column 16: near "orders": syntax error'


async def test_a_file_that_is_no_database(databases: Databases, folder: Path) -> None:
    (folder / "text.db").write_text("no database at all, but long enough to be looked at" * 20)
    assert (await refusal(databases, "SELECT 1 FROM sqlite_schema", "text.db")).code == "sql_no_file"


async def test_a_query_that_does_not_end_is_stopped(databases: Databases) -> None:
    error = await refusal(databases, ENDLESS, timeout_s=0.05)
    assert (error.code, error.retryable) == ("sql_timeout", False)


async def test_large_values_are_refused_and_large_results_cut(databases: Databases) -> None:
    assert (await refusal(databases, f"SELECT zeroblob({BYTES_MAX + 1})")).code == "sql_too_large"
    many = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100) SELECT printf('%100000d', i) FROM n"
    )
    answer = await ask(databases, many)
    assert answer.cut == "bytes"
    assert 30 < len(answer.rows) < 45


async def test_a_locked_file_is_tried_again_later(databases: Databases, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "shop.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        error = await refusal(databases, "DELETE FROM orders", read_only=False, timeout_s=0.01)
    assert (error.code, error.retryable) == ("sql_busy", True)


async def test_other_schemes_are_no_databases(databases: Databases) -> None:
    for name in ("mysql://host/db", "file:///etc/passwd", "sqlite://shop.db"):
        assert (await refusal(databases, "SELECT 1", name)).code == "params_invalid"
