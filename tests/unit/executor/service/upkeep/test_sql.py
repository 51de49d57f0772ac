"""Read-only SQL: the generated views, and everything that is refused."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from executor.blocks.types.registry import Registry
from executor.errors import QueryRefused
from executor.service.upkeep.sql import open_asking
from executor.service.upkeep.sql.asking import Asking, Query
from tests.unit.executor.service.upkeep.conftest import Copy


@pytest.fixture
def asked(copy: Copy) -> Iterator[Asking]:
    db = open_asking(copy.path, Registry.load())
    with closing(db):
        yield db


def rows(db: Asking, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    return list(db.query(sql, values))


def store(copy: Copy, name: str, blocks: dict[str, Any], version: int = 1) -> None:
    data = orjson.dumps({"format": "weft/1", "name": name, "blocks": blocks})
    copy.spoil("INSERT INTO workflows VALUES (?, ?, ?, ?, 0)", name, version, f"{name}{version}", data)
    copy.spoil("INSERT OR REPLACE INTO active_versions (workflow, version, since_ms) VALUES (?, ?, 0)", name, version)


def outputs(copy: Copy, workflow: str, node: str, *values: Any) -> None:
    """A run of the workflow in whose journal the node put these out."""
    run = copy.run["hello"]
    copy.spoil("UPDATE runs SET workflow = ? WHERE id = ?", workflow, run)
    for n, value in enumerate(values):
        copy.spoil(
            "INSERT INTO loose_events VALUES (?, ?, 5, 'node.succeeded', ?, ?, 1, NULL, ?)",
            *(run, 100 + n, node, f"loop#{n}", orjson.dumps(value)),
        )


def test_tables_and_their_views_can_be_read(copy: Copy, asked: Asking) -> None:
    found = asked.query("SELECT workflow, status, input FROM runs ORDER BY workflow LIMIT 2")
    assert found.columns == ("workflow", "status", "input")
    assert list(found) == [("answered", "succeeded", "{}"), ("asking", "waiting", "{}")]  # bytes are shown as text
    greeting = rows(asked, "SELECT output FROM outputs WHERE node = 'greet'")
    assert orjson.loads(greeting[0][0]) == {"text": "hello", "n": 3}
    assert rows(asked, "SELECT count(*) FROM runs WHERE id = ?", copy.run["hello"]) == [(1,)]
    assert rows(asked, "SELECT x'ff00'") == [("x'ff00'",)]


def test_a_block_of_a_stored_workflow_has_a_view(copy: Copy, asked: Asking) -> None:
    found = rows(asked, "SELECT run_id, version, path, result, stdout FROM out_loops_work ORDER BY path")
    assert found == [(copy.run["loops"], 1, f"fan[{n}]", 1, "") for n in range(3)]
    (container,) = rows(asked, "SELECT results, last FROM out_loops_each")
    assert [orjson.loads(value) for value in container] == [[[0], [1], [2]], {"set": 2}]


def test_a_view_has_the_columns_of_the_schema_of_the_block(copy: Copy) -> None:
    properties = {
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "name": {"type": "string"},
        "ok": {"type": "boolean"},
        "tags": {"type": "array"},
        "Seq": {"type": "integer"},  # a fixed column has that name
        'quo"te': {},
        "with'quote and space": {},
        "untyped": True,
    }
    schema = {"type": "object", "properties": properties}
    store(copy, "my flow's", {"make-it": {"type": "set", "output_schema": schema}})
    outputs(
        copy,
        "my flow's",
        "make-it",
        {"count": 3.0, "ratio": 2, "name": "a", "ok": True, "tags": [1], "Seq": 7, "with'quote and space": "q"},
        {"count": "three", "ratio": None},
    )
    db = open_asking(copy.path, Registry.load())
    with closing(db):
        (view,) = [view for view in db.views if view.workflow == "my flow's"]
        assert view.name == "out_my_flow_s_make_it"
        assert view.columns == ("count", "ratio", "name", "ok", "tags", "Seq_", "with'quote and space", "untyped")
        found = rows(
            db, 'SELECT path, count, ratio, name, ok, tags, Seq_, "with\'quote and space" FROM out_my_flow_s_make_it'
        )
        assert found[0] == ("loop#0", 3, 2.0, "a", 1, "[1]", 7, "q")
        assert found[1] == ("loop#1", "three", None, None, None, None, None, None)  # what does not fit stays as it is
        types = "SELECT typeof(count), typeof(ratio) FROM out_my_flow_s_make_it"
        assert rows(db, types) == [("integer", "real"), ("text", "null")]


def test_the_active_version_counts_and_names_do_not_collide(copy: Copy) -> None:
    def schema(name: str) -> dict[str, Any]:
        return {"b": {"type": "set", "output_schema": {"properties": {name: {}}}}}

    store(copy, "a b", schema("old"))
    store(copy, "a b", schema("new"), 2)
    store(copy, "A-B", schema("other"))
    store(copy, "odd", {"x": "no block", "y": {"type": "unknown"}, "z": {"type": "set", "output_schema": 5}})
    db = open_asking(copy.path, Registry.load())
    with closing(db):
        found = {view.name: view.columns for view in db.views if view.block == "b"}
        assert found == {"out_A_B_b": ("other",), "out_a_b_b_2": ("new",)}
        assert rows(db, "SELECT * FROM out_a_b_b_2") == []
    copy.spoil("UPDATE active_versions SET version = 1 WHERE workflow = 'a b'")
    db = open_asking(copy.path, Registry.load())
    with closing(db):
        assert next(view.columns for view in db.views if view.name == "out_a_b_b_2") == ("old",)


def test_a_large_output_is_in_its_view(copy: Copy) -> None:
    store(copy, "big", {"long": {"type": "function", "params": {"code": "return 1"}}})
    db = open_asking(copy.path, Registry.load())
    with closing(db):
        assert rows(db, "SELECT length(result) FROM out_big_long") == [(300_000,)]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM runs",
        "INSERT INTO inbox (run_id, n, fact) VALUES ('a', 1, x'')",
        "UPDATE runs SET seq = 0",
        "DROP TABLE runs",
        "CREATE TABLE t (x)",
        "CREATE TEMP TABLE t (x)",
        "DROP VIEW outputs",
        "ALTER TABLE runs RENAME TO r",
        "ATTACH 'other.db' AS other",
        "ATTACH ':memory:' AS other",
        "DETACH main",
        "VACUUM INTO 'copy.db'",
        "VACUUM",
        "REINDEX",
        "ANALYZE",
        "BEGIN",
        "PRAGMA query_only = 0",
        "PRAGMA user_version = 9",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA writable_schema = 1",
        "PRAGMA wal_checkpoint",
        "SELECT load_extension('x')",
        "WITH gone AS (DELETE FROM runs RETURNING id) SELECT * FROM gone",
        "SELECT 1; DELETE FROM runs",
        "SELECT * FROM nothing",
        "SELEC",
        "SELECT readfile('/etc/passwd')",
        "SELECT writefile('x', 'y')",
    ],
)
def test_everything_but_reading_is_refused(copy: Copy, asked: Asking, sql: str, tmp_path: Path) -> None:
    before = copy.path.read_bytes(), sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(QueryRefused) as refused:
        rows(asked, sql)
    assert refused.value.message and refused.value.hint
    assert (copy.path.read_bytes(), sorted(path.name for path in tmp_path.iterdir())) == before
    assert rows(asked, "SELECT count(*) FROM runs") == [(len(copy.run),)]


@pytest.mark.parametrize("sql", ["PRAGMA table_info(runs)", "PRAGMA user_version", "EXPLAIN SELECT 1", "VALUES (1)"])
def test_asking_about_the_file_is_reading(asked: Asking, sql: str) -> None:
    assert rows(asked, sql)


def test_a_query_has_a_time(asked: Asking) -> None:
    began = time.monotonic()
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"
    with pytest.raises(QueryRefused, match="too long"):
        list(asked.query(endless, timeout_s=0.2))
    assert time.monotonic() - began < 60
    assert rows(asked, "SELECT 1") == [(1,)]  # the next one has its own


def test_a_query_gives_so_many_rows_at_most(asked: Asking) -> None:
    numbers = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT {}) SELECT n FROM c"

    def some(rows: int) -> tuple[int, bool]:
        found: Query = asked.query(numbers.format(rows), rows_max=5)
        return len(list(found)), found.more

    assert [some(4), some(5), some(6)] == [(4, False), (5, False), (5, True)]


def test_a_value_has_a_largest_size(asked: Asking) -> None:
    with pytest.raises(QueryRefused, match="too big"):
        rows(asked, "SELECT length(zeroblob(100000000))")


def test_what_is_no_database_of_weft(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as db, db:
        db.execute("CREATE TABLE t (x)")
    with pytest.raises(sqlite3.OperationalError):
        open_asking(tmp_path / "other.db", Registry.load())
