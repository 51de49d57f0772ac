from __future__ import annotations

import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Barrier

import pytest

from executor.errors import DatabaseUnavailable, NestedTransaction, SchemaTooNew, SchemaUnreleased
from executor.kernel.store.migrate import UNRELEASED_MIN, Migration, migrate, packaged_migrations, split, version_of
from executor.kernel.store.sqlite.connection import Database, plain_connect


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


def test_a_second_file_of_the_schema_is_applied_to_a_database_in_use(database: Database, tmp_path: Path) -> None:
    packaged = packaged_migrations()
    added = Migration(len(packaged) + 1, "colours", "ALTER TABLE workflows ADD COLUMN colour TEXT;\n")
    migrate(database, packaged)
    database.db.execute("INSERT INTO workflows VALUES ('w', 1, 'h', x'7b7d', 5)")
    assert migrate(database, [*packaged, added]) == added.number
    assert database.db.execute("SELECT name, version, colour FROM workflows").fetchall() == [("w", 1, None)]
    with closing(sqlite3.connect(tmp_path / f"weft.db.schema-{len(packaged)}")) as copy:
        assert copy.execute("SELECT * FROM workflows").fetchall() == [("w", 1, "h", b"{}", 5)]
    with pytest.raises(SchemaTooNew, match=f"schema {added.number}"):
        migrate(database, packaged)
    database.drop()


def test_a_file_of_before_the_first_release_is_refused_untouched(database: Database, tmp_path: Path) -> None:
    migrate(database, packaged_migrations())
    database.drop()
    path = tmp_path / "weft.db"
    for schema, hint in (
        (UNRELEASED_MIN, "copy it"),
        (9, f"open it once .* schema {UNRELEASED_MIN} or later, then copy it"),
    ):
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("CREATE TABLE IF NOT EXISTS old_events (run_id, seq)")
            db.execute(f"PRAGMA user_version = {schema}")
        before = path.read_bytes()
        with pytest.raises(SchemaUnreleased, match=f"weft.db has schema {schema} of a weft before") as refused:
            migrate(database, packaged_migrations())
        database.drop()
        assert re.match(hint, refused.value.hint) and "weft migrate-store OLD NEW" in refused.value.hint
        assert path.read_bytes() == before and not list(tmp_path.glob("*.schema-*"))


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


def test_work_begins_on_a_connection_that_changed_no_schema(database: Database) -> None:
    before = database.db
    migrate(database, [ONE])
    opened = database.db
    assert opened is not before
    migrate(database, [ONE])
    assert database.db is opened
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
