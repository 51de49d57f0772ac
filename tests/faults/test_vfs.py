"""An apsw connection in the place of a sqlite3 one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.support.adapter import connects
from tests.support.vfs import Op, Vfs, trouble


@pytest.fixture
def faults() -> Iterator[list[Exception]]:
    """What the next changes of files raise."""
    waiting: list[Exception] = []

    def before(op: Op) -> None:
        if waiting:
            raise waiting.pop()

    vfs = Vfs("weft-test", before=before)
    yield waiting
    vfs.unregister()


def test_it_speaks_as_sqlite3_does(tmp_path: Path, faults: list[Exception]) -> None:
    connect, connect_reader = connects("weft-test", lambda sql: sql.replace("numbers", "n"))
    path = str(tmp_path / "db")
    db, plain = connect(path), sqlite3.connect(tmp_path / "plain", isolation_level=None)
    for one in (db, plain):
        one.execute("CREATE TABLE n (a INTEGER PRIMARY KEY, b BLOB, c TEXT)")
        one.execute("BEGIN IMMEDIATE")
        assert one.in_transaction
        assert one.execute("INSERT INTO n VALUES (:a, :b, :c)", {"a": 1, "b": b"x", "c": None}).rowcount == 1
        one.executemany("INSERT INTO n VALUES (?, ?, ?)", [(2, b"y", "t"), (3, b"z", "u")])
        one.execute("COMMIT")
        assert one.total_changes == 3
        assert one.execute("SELECT * FROM n WHERE a < ?", (3,)).fetchall() == [(1, b"x", None), (2, b"y", "t")]
        assert list(one.execute("SELECT a FROM n")) == [(1,), (2,), (3,)]
        assert one.execute("SELECT a FROM n WHERE a > 3").fetchone() is None
        assert one.execute("UPDATE n SET c = 'v' WHERE a > 1").rowcount == 2
        assert one.execute("DELETE FROM n WHERE a > 3").rowcount == 0
        with pytest.raises(sqlite3.IntegrityError) as refused:
            one.execute("INSERT INTO n VALUES (1, NULL, NULL)")
        assert refused.value.sqlite_errorcode == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
    reader = connect_reader(path)
    assert reader.execute("SELECT count(*) FROM numbers").fetchone() == (3,)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("DELETE FROM n")
    for one in (db, plain, reader):
        one.close()


def test_what_the_operating_system_says_comes_through(tmp_path: Path, faults: list[Exception]) -> None:
    db = connects("weft-test")[0](str(tmp_path / "db"))
    db.execute("PRAGMA journal_mode = WAL").fetchone()
    db.execute("CREATE TABLE n (a)")
    for error, code in (
        (trouble("ENOSPC", Op("write", "-wal")), sqlite3.SQLITE_FULL),
        (trouble("EIO", Op("write", "-wal")), sqlite3.SQLITE_IOERR_WRITE),
        (trouble("EIO", Op("sync", "-wal")), sqlite3.SQLITE_IOERR_FSYNC),
    ):
        faults.append(error)
        with pytest.raises(sqlite3.OperationalError) as failed:
            db.execute("INSERT INTO n VALUES (1)")
        assert failed.value.sqlite_errorcode == code
        assert isinstance(failed.value.__cause__, apsw.Error)
    assert db.execute("SELECT count(*) FROM n").fetchone() == (0,)
    db.close()
