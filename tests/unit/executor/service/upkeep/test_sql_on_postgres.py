"""The doctor, the invariants, `sql` and `export` on PostgreSQL: the same code, so what is tested is that it says the
same, and what that database has of its own."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest

pytest.importorskip("psycopg")

import psycopg

from executor.blocks.types.registry import Registry
from executor.errors import DatabaseUnavailable, ForeignDatabase, QueryRefused
from executor.kernel.store.migrate import packaged_migrations
from executor.kernel.store.postgres.reading import REFERENCES, PostgresReading, open_reading
from executor.kernel.store.postgres.store import PostgresStore
from executor.service.upkeep import export
from executor.service.upkeep.doctor import examine
from executor.service.upkeep.findings import Evidence
from executor.service.upkeep.invariants import check
from executor.service.upkeep.sql import open_asking
from executor.service.upkeep.sql import open_reading as open_any
from executor.service.upkeep.sql.asking import Asking
from server.app import build_engine
from server.settings import Settings
from tests.support.postgres import database
from tests.support.rows import T0, change, owned_run, record
from tests.unit.executor.service.upkeep.conftest import SECRET_KEY, make_on

Spoil = Callable[..., None]


@pytest.fixture(scope="module")
def filled(postgres_server: str) -> Iterator[tuple[str, dict[str, str]]]:
    """An address, and the runs in it by the name of their workflow. For tests that only read."""
    with database(postgres_server, f"filled-{uuid4().hex}") as address:
        settings = Settings(db_address=address, secret_key=SECRET_KEY, allow_private=("127.0.0.1:9",))
        yield address, asyncio.run(make_on(settings))


@pytest.fixture
def spoilt(filled: tuple[str, dict[str, str]]) -> Iterator[tuple[Spoil, PostgresReading]]:
    """Changes of the database, and a session that sees them; they are gone after the test."""
    with psycopg.connect(filled[0]) as connection:

        def spoil(sql: Any, *values: Any) -> None:
            connection.execute(sql, values)

        yield spoil, PostgresReading(connection, "spoilt")
        connection.rollback()


@pytest.fixture
def db(filled: tuple[str, dict[str, str]]) -> Iterator[PostgresReading]:
    with closing(open_reading(filled[0])) as reading:
        yield reading


@pytest.fixture
def asked(filled: tuple[str, dict[str, str]]) -> Iterator[Asking]:
    with closing(open_asking(filled[0], Registry.load())) as asking:
        yield asking


def test_all_invariants_hold_and_the_report_says_so(db: PostgresReading, filled: tuple[str, dict[str, str]]) -> None:
    report = examine(db, db.clock_ms(), evidence=Evidence(acknowledged=list(filled[1].values())))
    assert report.findings == () and report.healthy
    assert report.runs == {"succeeded": 4, "failed": 1, "waiting": 3, "cancelled": 1}
    assert isinstance(report.events, int) and report.events > 50
    assert "postgres" not in report.database.lower().replace("postgresql", "") and "password" not in report.database
    one = examine(db, db.clock_ms(), run=filled[1]["loops"])
    assert one.healthy and one.findings == ()
    with pytest.raises(LookupError):
        examine(db, db.clock_ms(), run="unknown")


@pytest.mark.parametrize(
    ("invariant", "change", "name"),
    [
        ("I2", "UPDATE run_details SET status = 'failed' WHERE id = %s", "hello"),
        ("I4", "UPDATE heads SET seq = seq + 1 WHERE id = %s", "asking"),
        ("I7", "UPDATE heads SET owner = 'w' WHERE id = %s", "asking"),
        ("I8", "UPDATE heads SET due_ms = NULL WHERE id = %s", "sleeping"),
        ("I9", "UPDATE waits SET status = 'expired' WHERE run_id = %s", "answered"),
        ("I12", "DELETE FROM plans WHERE hash = (SELECT plan_hash FROM run_details WHERE id = %s)", "hello"),
        (
            "I12",
            "UPDATE batches SET payload = payload || ' ' WHERE n = (SELECT n FROM run_details WHERE id = %s)",
            "big",
        ),
        ("I12", "DELETE FROM blobs WHERE hash IN (SELECT hash FROM blob_refs WHERE run_id = %s)", "big"),
    ],
)
def test_what_is_broken_is_found(
    spoilt: tuple[Spoil, PostgresReading], filled: tuple[str, dict[str, str]], invariant: str, change: str, name: str
) -> None:
    spoil, reading = spoilt
    spoil(change, filled[1][name])
    found = list(check(reading))
    assert (invariant, filled[1][name]) in {(finding.invariant, finding.run) for finding in found}


def test_references_are_those_that_sqlite_declares(spoilt: tuple[Spoil, PostgresReading]) -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        for migration in packaged_migrations():
            db.executescript(migration.sql)
        declared = set()
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            keys: dict[int, list[Any]] = {}
            for id, _, parent, column, key, *_ in db.execute(f"PRAGMA foreign_key_list({table})"):
                keys.setdefault(id, []).append((parent, column, key))
            for parts in keys.values():
                columns, theirs = ", ".join(part[1] for part in parts), ", ".join(part[2] for part in parts)
                declared.add((table, columns, parts[0][0], theirs))
    assert declared == set(REFERENCES)
    spoil, reading = spoilt
    assert list(reading.unsound(100)) == []
    spoil("INSERT INTO blob_refs VALUES ('nothing', 'no blob')")
    assert list(reading.unsound(100)) == [
        "row no blob of blob_refs refers to a missing row of blobs",
        "row nothing of blob_refs refers to a missing row of run_details",
    ]


def test_a_secret_is_found_in_every_table(spoilt: tuple[Spoil, PostgresReading], filled: Any) -> None:
    secret = "kept-between-us-alone"
    spoil, reading = spoilt
    run = filled[1]["asking"]
    assert list(check(reading, only={"I11"}, evidence=Evidence(secrets=[secret]))) == []
    spoil("UPDATE waits SET name = %s WHERE run_id = %s", f"a {secret} b", run)
    spoil("UPDATE run_details SET input = %s WHERE id = %s", orjson.dumps(secret.encode().hex()), run)
    spoil("UPDATE batches SET head = head || %s WHERE n = (SELECT n FROM run_details WHERE id = %s)", secret, run)
    ((batches,),) = reading.rows(f"SELECT count(*) FROM batches WHERE n = (SELECT n FROM runs WHERE id = '{run}')")
    found = list(check(reading, only={"I11"}, evidence=Evidence(secrets=[secret])))
    assert {(finding.run, finding.what) for finding in found} == {
        (run, "secret 1 is in 1 rows of waits.name"),
        (run, "secret 1 is in 1 rows of run_details.input"),
        (run, f"secret 1 is in {batches} rows of batches.head"),
    }
    assert list(check(reading, run=filled[1]["hello"], only={"I11"}, evidence=Evidence(secrets=[secret]))) == []


@pytest.mark.parametrize("migrated", [False])
def test_a_database_that_is_empty_foreign_or_not_there(postgres: str) -> None:
    with closing(open_reading(postgres)) as reading:
        assert reading.schema()[0] == 0
        report = examine(reading, 0)
        assert [c.level for c in report.conditions if c.name == "schema"] == ["warning"]
    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE TABLE of_another (x int)")
    with closing(open_reading(postgres)) as reading, pytest.raises(ForeignDatabase):
        examine(reading, 0)
    with pytest.raises(DatabaseUnavailable, match="cannot be read"):
        open_reading("postgresql:///x?host=/nowhere")
    with pytest.raises(DatabaseUnavailable, match="form") as refused:
        open_any("postgresql://user:secret@[/x")
    assert "secret" not in str(refused.value)


def test_a_snapshot_is_one_moment(filled: tuple[str, dict[str, str]], db: PostgresReading) -> None:
    query = "SELECT count(*) FROM sessions"
    with db.snapshot():
        before = db.rows(query)
        each = db.each("SELECT id FROM runs ORDER BY id")
        first = next(each)
        with psycopg.connect(filled[0]) as connection:
            connection.execute("INSERT INTO sessions VALUES ('a snapshot', '', 0, 0)")
        assert db.rows(query) == before
        assert [first, *each] == db.rows("SELECT id FROM runs ORDER BY id")
    assert db.rows(query) == [(before[0][0] + 1,)]
    with pytest.raises(DatabaseUnavailable, match="read-only"):
        db.rows("DELETE FROM sessions RETURNING 1")


# --- statements of people


def rows(asking: Asking, sql: str) -> list[tuple[Any, ...]]:
    return list(asking.query(sql))


async def test_the_view_of_steps(postgres_server: str) -> None:
    used = b'{"n":1,"usage":{"input_tokens":7},"cost":0.25,"prices":"list"}'
    begun = b'{"n":1,"kind":"model","name":"dev:m","input_hash":"h","effect":"read"}'
    with database(postgres_server, f"steps-{uuid4().hex}") as address:
        store = PostgresStore(address)
        await store.open()
        run = await owned_run(store, "r")
        records = [record("step.started", data=begun), record("step.finished", at_ms=T0 + 5, data=used)]
        await store.append(change(run, *records))
        await store.close()
        with closing(open_asking(address, Registry.load())) as asking:
            found = rows(asking, "SELECT node, n, kind, name, outcome, duration_ms, usage, cost, prices FROM steps")
    assert found == [("draft", 1, "model", "dev:m", "succeeded", 5, '{"input_tokens":7}', 0.25, "list")]


def test_views_say_what_they_say_on_sqlite(asked: Asking, filled: Any, copy: Any) -> None:
    with closing(open_asking(copy.path, Registry.load())) as on_file:
        assert [(view.workflow, view.block, view.columns) for view in asked.views] == [
            (view.workflow, view.block, view.columns) for view in on_file.views
        ]
        for query in (
            "SELECT node, path, attempt, output FROM outputs WHERE workflow <> 'answered' ORDER BY 1, 2, 3, 4",
            "SELECT workflow, node, path, attempt, outcome FROM attempts ORDER BY 1, 2, 3, 4",
            "SELECT workflow, node, path, attempts, status FROM nodes ORDER BY 1, 2, 3",
            "SELECT type, node, path, attempt, count(*) FROM events GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4",
            "SELECT version, path, attempt, result, stdout, output FROM out_loops_work ORDER BY path",
            "SELECT results, last FROM out_loops_each",
            "SELECT workflow, status, input FROM runs ORDER BY workflow",
        ):
            assert rows(asked, query) == rows(on_file, query), query


def test_columns_have_the_type_of_the_schema(postgres: str) -> None:
    properties: dict[str, Any] = {
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "name": {"type": "string"},
        "ok": {"type": "boolean"},
        "tags": {"type": "array"},
        "Seq": {"type": "integer"},  # a fixed column has that name
        "with'quote and space": {},
    }
    values = [
        {"count": 3.0, "ratio": 2, "name": "a", "ok": True, "tags": [1], "Seq": 7, "with'quote and space": "q"},
        {"count": "three", "ratio": None, "name": "nul \0 and \\u0000 stay apart", "ok": "no"},
        {"count": 10**30, "ratio": 10**400, "name": None},
    ]
    name = "My flow's, with a name that is so long that PostgreSQL would cut it off somewhere"

    async def go() -> None:
        engine = await build_engine(Settings(db_address=postgres, secret_key=SECRET_KEY))
        try:
            schema = {"type": "object", "properties": properties}
            block = {"type": "set", "params": {"value": "<input.value>"}}
            for each in ("first", "other"):
                document: dict[str, Any] = {
                    "format": "weft/1",
                    "name": name,
                    "blocks": {"start": {"type": "start"}, each: block},
                    "edges": [{"source": "start", "target": each}],
                }
                await engine.workflows.save(document)
            document["blocks"] |= {
                "first": {**block, "output_schema": schema},
                "other": {**block, "output_schema": schema},
            }
            document["edges"] += [{"source": "start", "target": "first"}]
            await engine.workflows.save(document)
        finally:
            await engine.close()

    asyncio.run(go())
    with psycopg.connect(postgres) as connection:
        connection.execute("INSERT INTO plans VALUES ('p', '', 0)")
        connection.execute(
            """INSERT INTO run_details (id, workflow, version, plan_hash, request_hash, created_at_ms, input)
               VALUES ('r', %s, 1, 'p', '', 0, '{}')""",
            (name,),
        )
        for n, value in enumerate(values):
            payload = (
                orjson.dumps(value, default=str) if n < 2 else b'{"count": 1%s, "ratio": 1%s}' % (b"0" * 30, b"0" * 400)
            )
            head = orjson.dumps([[5, "node.succeeded", "first", f"loop#{n}", 1, 0, None, len(payload)]]).decode()
            connection.execute(
                "INSERT INTO batches SELECT n, %s, %s, 0, 0, %s, %s FROM run_details WHERE id = 'r'",
                (n + 1, n + 1, head, payload),
            )
    with closing(open_asking(postgres, Registry.load())) as asking:
        other, first = [view.name for view in asking.views]
        assert len(first) == len(other) == 63 and first != other and first == first.lower()
        found = rows(
            asking,
            f'SELECT path, count, ratio, name, ok, tags, "Seq_", "with\'quote and space" FROM {first} ORDER BY path',
        )
        assert found[0] == ("loop#0", 3, 2.0, "a", 1, "[1]", 7, "q")
        assert found[1] == ("loop#1", None, None, "nul  and \\u0000 stay apart", None, None, None, None)
        assert found[2][1:3] == (1e30, None)
        assert type(found[0][1]) is int and type(found[0][2]) is float and rows(asking, f"SELECT * FROM {other}") == []


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM sessions",
        "INSERT INTO sessions VALUES ('x', '', 0, 0)",
        "CREATE TABLE t (x int)",
        "CREATE TEMP TABLE t (x int)",
        "DROP TABLE runs",
        "TRUNCATE sessions",
        "VACUUM",
        "COMMIT",
        "BEGIN",
        "SET default_transaction_read_only = off",
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "COPY sessions TO STDOUT",
        "NOTIFY weft",
        "LOCK TABLE runs",
        "DO $$ BEGIN DELETE FROM sessions; END $$",
        "CALL nothing()",
        "EXPLAIN ANALYZE DELETE FROM sessions",
        "EXPLAIN (ANALYZE) DELETE FROM sessions",
        "WITH gone AS (DELETE FROM sessions RETURNING hash) SELECT * FROM gone",
        "SELECT 1; DELETE FROM sessions",
        "SELECT 1) ; DELETE FROM sessions; SELECT (1",
        "SELECT * FROM outputs) ; DELETE FROM sessions; (SELECT 1",
        "SELECT nextval('fires_n_seq')",
        "SELECT * FROM nothing",
        "SELEC",
        "",
        "-- nothing",
    ],
)
def test_everything_but_reading_is_refused(asked: Asking, sql: str) -> None:
    tables = "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM pg_class)"
    before = rows(asked, tables)
    with pytest.raises(QueryRefused) as refused:
        rows(asked, sql)
    assert refused.value.message and refused.value.hint
    assert rows(asked, tables) == before


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1;",
        "  -- a comment\n/* another */ SELECT count(*) FROM outputs -- and one at the end",
        "WITH a AS (SELECT node FROM outputs) SELECT * FROM a ORDER BY node",
        "(SELECT node FROM nodes) UNION (SELECT node FROM attempts)",
        "TABLE outputs",
        "VALUES (1)",
        "SHOW server_version",
        "EXPLAIN SELECT * FROM outputs",
        "EXPLAIN ANALYZE SELECT * FROM out_loops_work",
        "EXPLAIN (COSTS OFF) SELECT * FROM nodes",
        "SELECT '100%', 'outputs'",
    ],
)
def test_ways_to_read(asked: Asking, sql: str) -> None:
    assert rows(asked, sql)


def test_a_query_has_a_time_and_so_many_rows(asked: Asking) -> None:
    with pytest.raises(QueryRefused, match="too long"):
        list(asked.query("SELECT pg_sleep(600)", timeout_s=0.2))
    numbers = asked.query("SELECT n FROM generate_series(1, 1000000) AS n", rows_max=5)
    assert (list(numbers), numbers.more) == ([(n,) for n in range(1, 6)], True)
    whole = asked.query("SELECT 5 AS a, now()::date - now()::date AS b", rows_max=1)
    assert (whole.columns, list(whole), whole.more) == (("a", "b"), [(5, 0)], False)
    none = asked.query("SELECT 5 AS a WHERE false")
    assert (none.columns, list(none)) == (("a",), [])
    assert rows(asked, "SELECT 'after'") == [("after",)]


def test_an_export_is_that_of_sqlite(asked: Asking, copy: Any, tmp_path: Path) -> None:
    with closing(open_asking(copy.path, Registry.load())) as on_file:
        for n, asking in enumerate((asked, on_file)):
            export.write_sqlite(asking, export.tables(asking, "loops"), tmp_path / f"{n}.db", 60)
            assert [table.name for table in export.tables(asking, "answered", "then")] == ["out_answered_then"]
    found = []
    for n in range(2):
        with closing(sqlite3.connect(tmp_path / f"{n}.db")) as db:
            tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master ORDER BY name")]
            query = "SELECT path, result, stdout, output FROM out_loops_work ORDER BY 1"
            found.append((tables, db.execute(query).fetchall()))
    assert found[0] == found[1] and len(found[0][1]) == 3
