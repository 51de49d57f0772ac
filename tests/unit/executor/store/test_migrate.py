from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Barrier

import pytest

from executor.errors import DatabaseUnavailable, NestedTransaction, SchemaTooNew
from executor.store.migrate import Migration, migrate, packaged_migrations, split, version_of
from executor.store.sqlite.connection import Database, plain_connect


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(str(tmp_path / "weft.db"), 100, plain_connect, lambda name: None)


ONE = Migration(1, "one", "CREATE TABLE a (x); -- with; semicolons\nINSERT INTO a VALUES ('1;2');\n")
TWO = Migration(2, "two", "ALTER TABLE a ADD COLUMN y;\n")
BAD = Migration(2, "bad", "INSERT INTO a VALUES (9);\nINSERT INTO nowhere VALUES (1);\n")


def test_only_what_is_missing_is_applied(database: Database) -> None:
    assert migrate(database, [ONE]) == 1
    assert migrate(database, [ONE]) == 1
    assert migrate(database, [ONE, TWO]) == 2
    assert version_of(database.db) == 2
    assert database.db.execute("SELECT x, y FROM a").fetchall() == [("1;2", None)]
    database.drop()


def test_a_failed_migration_leaves_the_file_as_it_was(database: Database) -> None:
    migrate(database, [ONE])
    with pytest.raises(sqlite3.OperationalError):
        migrate(database, [ONE, BAD])
    assert version_of(database.db) == 1
    assert database.db.execute("SELECT count(*) FROM a").fetchone() == (1,)
    assert migrate(database, [ONE, TWO]) == 2
    database.drop()


def test_a_newer_file_is_refused(database: Database) -> None:
    migrate(database, [ONE, TWO])
    with pytest.raises(SchemaTooNew, match="schema 2"):
        migrate(database, [ONE])
    database.drop()


def test_the_packaged_migrations_are_dense_and_apply(database: Database) -> None:
    migrations = packaged_migrations()
    assert [migration.number for migration in migrations] == list(range(1, len(migrations) + 1))
    assert migrate(database, migrations) == len(migrations)
    tables = {name for (name,) in database.db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert tables >= {
        "workflows",
        "plans",
        "run_details",
        "heads",
        "workers",
        "old_events",
        "batches",
        "blobs",
        "waits",
        "inbox",
        "signals",
        "drafts",
        "documents",
    }
    strict = database.db.execute("SELECT name FROM pragma_table_list WHERE type = 'table' AND strict = 0").fetchall()
    assert [name for (name,) in strict if not name.startswith("sqlite_")] == []
    for view in ("runs", "events", "outputs", "attempts", "nodes"):
        assert database.db.execute(f"SELECT * FROM {view}").fetchall() == []
    database.drop()


def test_split_keeps_semicolons_in_texts_and_comments() -> None:
    statements = list(split("-- a; b\nCREATE TABLE a (x);\nINSERT INTO a\n  VALUES (';');\n-- the end\n"))
    assert [statement.splitlines()[-1] for statement in statements] == ["CREATE TABLE a (x);", "  VALUES (';');"]
    with pytest.raises(AssertionError, match="unfinished"):
        list(split("CREATE TABLE a (x)"))


def test_transactions_do_not_nest(database: Database) -> None:
    migrate(database, [ONE])
    with pytest.raises(NestedTransaction, match="'inner' was opened inside 'outer'"), database.tx("outer") as tx:
        tx.db.execute("INSERT INTO a VALUES (2)")
        with database.tx("inner"):
            pass
    assert database.db.execute("SELECT count(*) FROM a").fetchone() == (1,)
    with database.tx("next") as tx:
        tx.db.execute("INSERT INTO a VALUES (3)")
    assert database.db.execute("SELECT count(*) FROM a").fetchone() == (2,)
    database.drop()


def test_a_transaction_passes_its_named_points(tmp_path: Path) -> None:
    points: list[str] = []
    database = Database(str(tmp_path / "weft.db"), 100, plain_connect, points.append)
    with database.tx("first"):
        pass
    with pytest.raises(ZeroDivisionError), database.tx("second"):
        raise ZeroDivisionError
    assert points == ["tx.first.before_commit", "tx.first.after_commit"]
    database.drop()


def test_a_file_of_the_first_schema_keeps_its_runs(database: Database) -> None:
    first, *later = packaged_migrations()
    migrate(database, [first])
    database.db.execute("INSERT INTO plans (hash, ir) VALUES ('p', x'00')")
    database.db.execute(
        "INSERT INTO runs (id, workflow, plan_hash, status, seq, epoch, stalls, request_hash, created_at_ms, input)"
        " VALUES ('r', 'w', 'p', 'failed', 1, 1, 0, '', 5, x'31')"
    )
    migrate(database, [first, *later])
    found = database.db.execute("SELECT id, status, document_hash, draft_id, draft_rev FROM runs").fetchall()
    assert found == [("r", "failed", None, None, None)]
    assert database.db.execute("PRAGMA foreign_key_check").fetchall() == []
    database.drop()


def test_work_begins_on_a_connection_that_changed_no_schema(database: Database) -> None:
    before = database.db
    migrate(database, [ONE])
    opened = database.db
    assert opened is not before
    migrate(database, [ONE])
    assert database.db is opened
    database.drop()


def test_blobs_of_before_are_counted_and_left_over_facts_are_gone(database: Database) -> None:
    """What 0006 makes of a database that was in use before it."""
    migrations = packaged_migrations()
    migrate(database, migrations[:5])
    db = database.db
    run = (
        "INSERT INTO runs (id, workflow, plan_hash, status, seq, epoch, stalls, request_hash, created_at_ms, input)"
        " VALUES (?, 'w', 'p', ?, 2, 1, 0, '', 0, x'')"
    )
    for id, status in (("done", "succeeded"), ("open", "waiting")):
        db.execute(run, (id, status))
        db.execute("INSERT INTO inbox VALUES (?, 1, x'7b7d')", (id,))
        for seq, data in (
            (1, b'{"text":"\\"blob\\" is a word"}'),
            (2, b'{"blob":"h","size":9}'),
            (3, b'{"blob":"gone"}'),
        ):
            db.execute("INSERT INTO events VALUES (?, ?, 0, 'node.succeeded', 'n', '', 1, ?, NULL)", (id, seq, data))
    db.execute("INSERT INTO blobs VALUES ('h', x'00')")
    migrate(database, migrations)
    assert database.db.execute("SELECT run_id, hash FROM blob_refs ORDER BY 1").fetchall() == [
        ("done", "h"),
        ("open", "h"),
    ]
    assert database.db.execute("SELECT run_id FROM inbox").fetchall() == [("open",)]
    database.drop()


def test_a_failure_of_the_last_migration_takes_the_others_back(database: Database) -> None:
    migrate(database, [ONE])
    with pytest.raises(sqlite3.OperationalError):
        migrate(database, [ONE, TWO, Migration(3, "bad", BAD.sql)])
    assert version_of(database.db) == 1
    assert [name for _, name, *_ in database.db.execute("PRAGMA table_info(a)")] == ["x"]
    database.drop()


def test_a_file_in_use_is_copied_before_it_is_changed(database: Database, tmp_path: Path) -> None:
    migrate(database, [ONE])
    assert list(tmp_path.glob("*.schema-*")) == []  # a new file has nothing to keep
    kept = tmp_path / "weft.db.schema-1"
    for leftover in (kept, tmp_path / "weft.db.schema-1.part"):
        leftover.write_bytes(b"of an earlier try")
    migrate(database, [ONE, TWO])
    assert [path.name for path in tmp_path.glob("*.schema-*")] == [kept.name]
    assert kept.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(kept)) as copy:
        assert version_of(copy) == 1
        assert copy.execute("SELECT * FROM a").fetchall() == [("1;2",)]
    database.drop()


def test_without_room_for_a_copy_nothing_is_changed(database: Database, tmp_path: Path) -> None:
    migrate(database, [ONE])
    (tmp_path / "weft.db.schema-1.part").mkdir()  # in the way of the copy, as a full disk is
    with pytest.raises(DatabaseUnavailable, match=r"has schema 1 and was not migrated.*weft\.db\.schema-1") as refused:
        migrate(database, [ONE, TWO])
    assert "free space" in (refused.value.hint or "")
    assert version_of(database.db) == 1
    database.drop()


def test_two_that_open_an_old_file_at_once_change_it_once(tmp_path: Path) -> None:
    path = str(tmp_path / "weft.db")
    both = [
        Database(
            path, 60_000, partial(sqlite3.connect, check_same_thread=False, isolation_level=None), lambda name: None
        )
        for _ in range(2)
    ]
    migrate(both[0], [ONE])
    begin = Barrier(2)

    def start(database: Database) -> int:
        begin.wait(60)
        return migrate(database, [ONE, TWO])

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(start, both)) == [2, 2]
    with closing(sqlite3.connect(tmp_path / "weft.db.schema-1")) as copy:
        assert version_of(copy) == 1
    assert both[0].db.execute("SELECT x, y FROM a").fetchall() == [("1;2", None)]
    for database in both:
        database.drop()


def test_what_was_read_out_of_bytes_is_in_columns(database: Database) -> None:
    """What 0013 makes of a database that was in use before it."""
    migrations = packaged_migrations()
    migrate(database, migrations[:12])
    db = database.db
    for id in ("source", "reader", "other"):
        db.execute(
            "INSERT INTO runs (id, workflow, plan_hash, status, seq, epoch, stalls, request_hash, created_at_ms, input)"
            " VALUES (?, ?, 'p', 'waiting', 1, 1, 0, '', 0, x'')",
            (id, f"workflow of {id}"),
        )
        data = (
            b'{"source_run":"source","text":"\\"source_run\\""}' if id == "reader" else b'{"text":"\\"source_run\\""}'
        )
        db.execute("INSERT INTO events VALUES (?, 1, 0, 'run.started', NULL, '', 1, ?, NULL, NULL)", (id, data))
        db.execute(
            "INSERT INTO waits (run_id, id, node, path, kind, token_hash, request, status, opened_at_ms, on_expire)"
            " VALUES (?, 'ask!1', 'ask', '', 'approval', ?, x'', 'pending', 0, 'fail')",
            (id, id),
        )
    for n, message in enumerate((b'{"type":"migrate","plan":"next"}', b'{"type":"signal","name":"\\"migrate\\""}'), 1):
        db.execute("INSERT INTO inbox VALUES ('other', ?, ?)", (n, message))
    db.execute("INSERT INTO plans VALUES ('p', x'00')")
    migrate(database, migrations[:13])
    db = database.db
    assert dict(db.execute("SELECT id, source_run_id FROM runs")) == {"source": None, "reader": "source", "other": None}
    assert db.execute("SELECT n, plan_hash FROM inbox ORDER BY n").fetchall() == [(1, "next"), (2, None)]
    assert db.execute("SELECT used_at_ms FROM plans").fetchall() == [(0,)]
    assert {run: f"workflow of {run}" for run in ("source", "reader", "other")} == dict(
        db.execute("SELECT run_id, workflow FROM waits")
    )
    database.drop()
