"""Copies of a database, made beside a writer, and databases made from copies."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest

from executor.errors import BackupUnusable, Conflict, SchemaTooNew
from executor.kernel.store.sqlite.reading import open_read_only, open_reading
from executor.service.upkeep.backup import backup, in_use, inspect, restore, vacuum
from executor.service.upkeep.invariants import check
from tests.unit.executor.service.upkeep.conftest import Copy


def rows(path: Path, query: str = "SELECT id, status, seq FROM runs ORDER BY id") -> list[tuple[object, ...]]:
    with closing(open_read_only(path)) as db:
        return db.execute(query).fetchall()


def test_a_backup_is_the_database(copy: Copy, tmp_path: Path) -> None:
    made = backup(copy.path, tmp_path / "copy.db")
    assert (made.runs, made.open_runs) == (len(copy.run), 3)
    assert rows(tmp_path / "copy.db") == rows(copy.path)
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600
    assert made.bytes == (tmp_path / "copy.db").stat().st_size
    assert sorted(path.name for path in tmp_path.glob("copy*")) == ["copy.db"]  # one file, nothing beside it
    with closing(open_reading(tmp_path / "copy.db")) as db:
        assert list(check(db)) == []


def test_a_file_that_exists_stays_unless_it_is_to_be_replaced(copy: Copy, tmp_path: Path) -> None:
    backup(copy.path, tmp_path / "copy.db")
    before = (tmp_path / "copy.db").read_bytes()
    with closing(sqlite3.connect(copy.path)) as db, db:
        db.execute("UPDATE run_details SET workflow = 'later'")
    with pytest.raises(Conflict, match="already exists"):
        backup(copy.path, tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_bytes() == before
    backup(copy.path, tmp_path / "copy.db", replace=True)
    assert rows(tmp_path / "copy.db") == rows(copy.path)


def test_a_database_is_no_place_for_a_backup(copy: Copy, tmp_path: Path) -> None:
    """Its own file, or that of another process: a process that writes to it would continue in a file without a name."""
    before = copy.path.stat().st_ino
    with pytest.raises(Conflict, match="is the database itself"):
        backup(copy.path, copy.path, replace=True)
    assert copy.path.stat().st_ino == before
    backup(copy.path, tmp_path / "trial.db")
    with closing(sqlite3.connect(tmp_path / "trial.db")) as other:
        other.execute("PRAGMA journal_mode = WAL").fetchone()
        other.execute("UPDATE run_details SET workflow = 'trial'")
        other.commit()
        with pytest.raises(Conflict, match=r"trial\.db-wal exists"):
            backup(copy.path, tmp_path / "trial.db", replace=True)
    assert rows(tmp_path / "trial.db", "SELECT DISTINCT workflow FROM runs") == [("trial",)]


def test_a_damaged_database_gives_no_backup(copy: Copy, tmp_path: Path) -> None:
    (page,) = rows(copy.path, "SELECT rootpage FROM sqlite_master WHERE name = 'waits_by_status'")[0]
    assert isinstance(page, int)
    with open(copy.path, "r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 200)
    with pytest.raises(BackupUnusable):
        backup(copy.path, tmp_path / "copy.db")
    assert not list(tmp_path.glob("copy*"))


def test_a_backup_is_one_moment_of_a_busy_database(copy: Copy, tmp_path: Path) -> None:
    """A writer that moves an amount from one run to another all the time: the sum is the same at every moment."""
    ids = [id for (id, *_) in rows(copy.path)][:2]
    copy.spoil("UPDATE run_details SET draft_rev = iif(id = ?, 1000000, 0)", ids[0])
    with closing(sqlite3.connect(copy.path)) as db, db:  # enough pages for many steps
        db.execute("CREATE TABLE ballast (bytes BLOB)")
        db.executemany("INSERT INTO ballast VALUES (randomblob(4000))", [()] * 4000)
    done = threading.Event()
    moved = 0

    def move() -> None:
        nonlocal moved
        with closing(sqlite3.connect(copy.path, timeout=60, isolation_level=None)) as db:
            while not done.is_set():
                db.execute("BEGIN IMMEDIATE")
                db.execute("UPDATE run_details SET draft_rev = draft_rev - 1 WHERE id = ?", (ids[0],))
                db.execute("UPDATE run_details SET draft_rev = draft_rev + 1 WHERE id = ?", (ids[1],))
                db.execute("COMMIT")
                moved += 1

    writer = threading.Thread(target=move)
    writer.start()
    try:
        while not moved:
            pass
        before = moved
        made = [backup(copy.path, tmp_path / f"copy{n}.db") for n in range(3)]
        while moved == before and len(made) < 30:  # its disk may be slow
            made.append(backup(copy.path, tmp_path / f"copy{len(made)}.db"))
        assert moved > before  # the writer was not kept waiting
    finally:
        done.set()
        writer.join()
    for one in made:
        found = rows(Path(one.path), f"SELECT sum(draft_rev) FROM runs WHERE id IN ('{ids[0]}', '{ids[1]}')")
        assert found == [(1_000_000,)]


def test_a_restored_database_has_no_owners(copy: Copy, tmp_path: Path) -> None:
    copy.spoil(
        "UPDATE runs SET status = 'running', lease_owner = 'w', lease_until_ms = 99, next_run_at_ms = 1 WHERE id = ?",
        copy.run["asking"],
    )
    backup(copy.path, tmp_path / "copy.db")
    target = tmp_path / "new" / "weft.db"
    found, kept = restore(tmp_path / "copy.db", target)
    assert (found.runs, kept) == (len(copy.run), None)
    assert rows(target) == rows(copy.path)
    assert rows(target, "SELECT count(*) FROM runs WHERE lease_owner IS NOT NULL") == [(0,)]
    assert rows(tmp_path / "copy.db", "SELECT count(*) FROM runs WHERE lease_owner IS NOT NULL") == [(1,)]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_what_was_there_stays(copy: Copy, tmp_path: Path) -> None:
    backup(copy.path, tmp_path / "copy.db")
    copy.spoil("UPDATE run_details SET workflow = 'later' WHERE id = ?", copy.run["hello"])
    with pytest.raises(Conflict, match="already exists"):
        restore(tmp_path / "copy.db", copy.path)
    assert rows(copy.path, "SELECT count(*) FROM runs WHERE workflow = 'later'") == [(1,)]
    _, kept = restore(tmp_path / "copy.db", copy.path, replace=True)
    assert kept is not None and kept.parent == copy.path.parent
    assert rows(copy.path, "SELECT count(*) FROM runs WHERE workflow = 'later'") == [(0,)]
    assert rows(kept, "SELECT count(*) FROM runs WHERE workflow = 'later'") == [(1,)]


def test_only_an_earlier_backup_is_replaced(copy: Copy, tmp_path: Path) -> None:
    key = tmp_path / "weft.key"
    key.write_text("all resume links are made from this")
    for target in (key, tmp_path):
        with pytest.raises(Conflict, match="is not a backup"):
            backup(copy.path, target, replace=True)
    assert key.read_text() == "all resume links are made from this"


@pytest.mark.parametrize("left", ["nothing", "an empty file"])
def test_a_log_without_its_database_is_put_aside(copy: Copy, tmp_path: Path, left: str) -> None:
    """The file is lost, and what a killed server left beside it is not. SQLite would apply that to the backup."""
    backup(copy.path, tmp_path / "copy.db")
    wal, spare = tmp_path / "weft.db-wal", tmp_path / "spare"
    with closing(sqlite3.connect(copy.path)) as db:
        db.execute("PRAGMA journal_mode = WAL").fetchone()
        db.execute("UPDATE run_details SET workflow = 'later'")
        db.commit()
        shutil.copy(wal, spare)  # the last one to close the database takes it away
    copy.path.unlink()
    if left == "an empty file":
        copy.path.touch()
    spare.rename(wal)
    _, kept = restore(tmp_path / "copy.db", copy.path, replace=True)
    assert kept is not None and kept.name.startswith("weft.db.before-")
    assert kept.name.endswith("-wal") == (left == "nothing")
    assert not wal.exists()
    [log] = tmp_path.glob("weft.db.before-*-wal")
    assert log.stat().st_size
    assert rows(copy.path) == rows(tmp_path / "copy.db")
    assert rows(copy.path, "SELECT count(*) FROM runs WHERE workflow = 'later'") == [(0,)]


def test_a_damaged_database_can_be_replaced(copy: Copy, tmp_path: Path) -> None:
    backup(copy.path, tmp_path / "copy.db")
    copy.path.write_bytes(b"nothing of a database is left " * 400)
    _, kept = restore(tmp_path / "copy.db", copy.path, replace=True)
    assert kept is not None and kept.read_bytes().startswith(b"nothing")
    assert len(rows(copy.path)) == len(copy.run)


def test_a_database_that_is_open_is_not_replaced(copy: Copy, tmp_path: Path) -> None:
    backup(copy.path, tmp_path / "copy.db")
    with closing(sqlite3.connect(copy.path)) as db:
        db.execute("SELECT count(*) FROM runs").fetchone()
        assert in_use(copy.path)
        with pytest.raises(Conflict, match="open") as refused:
            restore(tmp_path / "copy.db", copy.path, replace=True)
        assert refused.value.code == "database_in_use"
        with pytest.raises(Conflict, match="open"):
            vacuum(copy.path)
    assert not in_use(copy.path)
    assert not list(tmp_path.glob("*.part")) and not list(tmp_path.glob("*.before-*"))


def test_what_cannot_be_restored(copy: Copy, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as db, db:
        db.execute("CREATE TABLE t (x)")
    (tmp_path / "text").write_text("no database " * 100)
    for file in (other, tmp_path / "text"):
        with pytest.raises(BackupUnusable, match="not a weft database"):
            restore(file, tmp_path / "weft-2.db")
    with closing(sqlite3.connect(copy.path)) as db, db:
        db.execute("PRAGMA user_version = 999")
    with pytest.raises(SchemaTooNew, match="schema 999"):
        restore(copy.path, tmp_path / "weft-2.db")
    assert not (tmp_path / "weft-2.db").exists() and not list(tmp_path.glob("*.part"))


def test_vacuum_gives_room_back(copy: Copy) -> None:
    copy.spoil("DELETE FROM blobs")
    before = copy.path.stat().st_size
    vacuum(copy.path)
    assert copy.path.stat().st_size < before - 200_000
    assert inspect(copy.path).runs == len(copy.run)
