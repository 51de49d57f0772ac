"""The file that a server has open is the one that its path names, and one of weft."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from executor.errors import BackupUnusable, DatabaseDamaged, DatabaseFull, DatabaseReplaced, ForeignDatabase, StoreError
from executor.kernel.store import migrate
from executor.kernel.store.sqlite.connection import Database, plain_connect
from executor.kernel.store.sqlite.reading import open_reading
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.sqlite.writer import LOOK_EVERY_S
from executor.service.upkeep.backup import backup, inspect
from executor.service.upkeep.doctor import examine
from server.http.errors import status_of
from tests.support.documents import chain, value
from tests.support.rows import T0, change, new_run, owned_run, record
from tests.support.runs import engine_on


def remove(db: Path) -> None:
    for path in db.parent.glob(f"{db.name}*"):
        path.unlink()


def replace(db: Path) -> None:
    backup(db, db.with_name("copy"))
    db.rename(db.with_name("moved"))
    shutil.copy(db.with_name("copy"), db)


def remove_the_log(db: Path) -> None:
    db.with_name(f"{db.name}-wal").unlink()


@pytest.mark.parametrize("lose", [remove, replace, remove_the_log])
async def test_nothing_is_acknowledged_into_a_file_that_is_gone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, lose: Any
) -> None:
    db = tmp_path / "weft.db"
    caplog.set_level(logging.ERROR, "weft")
    async with engine_on(db) as engine:
        first = await engine.submit(chain("a", a=value(1)))
        await engine.healthy()
        await asyncio.to_thread(lose, db)
        await asyncio.sleep(2 * LOOK_EVERY_S)
        for _ in range(16):
            with pytest.raises(DatabaseReplaced) as refused:
                await engine.submit(chain("a", a=value(1)))
            assert (status_of(refused.value), refused.value.code) == (503, "db_replaced")
            assert str(db) in refused.value.message and refused.value.hint
        with pytest.raises(DatabaseReplaced):
            engine.store.check_identity()
        with pytest.raises(DatabaseReplaced):
            await engine.healthy()
        assert (await engine.runs.row(first.run)).id == first.run  # what is open can be read still
    told = [line for line in caplog.records if line.name == "weft.store" and "replaced" in line.getMessage()]
    assert len(told) == 1


async def test_a_file_that_is_put_back_is_used_again(tmp_path: Path) -> None:
    db = tmp_path / "weft.db"
    async with engine_on(db) as engine:
        db.rename(tmp_path / "elsewhere")
        await asyncio.sleep(2 * LOOK_EVERY_S)
        with pytest.raises(DatabaseReplaced):
            await engine.submit(chain("a", a=value(1)))
        (tmp_path / "elsewhere").rename(db)
        await engine.submit(chain("a", a=value(1)))
        engine.store.check_identity()


async def test_no_empty_database_is_made_in_the_place_of_a_lost_one(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "weft.db")
    await store.open()
    store._writer._database.drop()  # as after a failed write
    remove(tmp_path / "weft.db")
    with pytest.raises(DatabaseReplaced):
        await store.create_run(new_run("run-1"))
    assert not (tmp_path / "weft.db").exists()
    await store.close()


def test_a_log_that_another_connection_deleted_before_this_one_opened_is_not_a_loss(tmp_path: Path) -> None:
    """The last connection to be closed deletes the log: here after this one looked at it, before it opens it anew."""
    path = str(tmp_path / "weft.db")
    close_other = False

    def connect(path: str) -> sqlite3.Connection:
        if close_other:
            other.drop()
        return plain_connect(path)

    other = Database(path, 1000, plain_connect, lambda _: None)
    database = Database(path, 1000, connect, lambda _: None)
    assert other.db and database.db
    database.drop()  # as after a failed write
    close_other = True
    with open(f"{path}-wal") as log:  # so that the new one has another inode
        assert database.db
        assert os.fstat(log.fileno()).st_ino != os.stat(f"{path}-wal").st_ino
    database.check_file()
    database.drop()


def of_another_program(db: Path, version: int = 0, application: int = 0) -> str:
    with closing(sqlite3.connect(db)) as file:
        file.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, distance REAL)")
        file.execute(f"PRAGMA user_version = {version}")
        file.execute(f"PRAGMA application_id = {application}")
        file.commit()
    return hashlib.sha256(db.read_bytes()).hexdigest()


@pytest.mark.parametrize(("version", "application"), [(0, 0), (3, 0), (9, 0), (99, 0), (0, 0x0F055112), (12, 1)])
async def test_a_file_of_another_program_is_refused_untouched(tmp_path: Path, version: int, application: int) -> None:
    db = tmp_path / "tracks.db"
    digest = of_another_program(db, version, application)
    with pytest.raises(ForeignDatabase, match=r"tracks\.db is not a weft database") as refused:
        await SQLiteStore(db).open()
    assert refused.value.hint and "\n" not in refused.value.message
    assert hashlib.sha256(db.read_bytes()).hexdigest() == digest
    assert [path.name for path in tmp_path.iterdir()] == ["tracks.db"]
    with pytest.raises(BackupUnusable):
        inspect(db)
    with pytest.raises(ForeignDatabase), closing(open_reading(db)) as reading:
        examine(reading, T0)


async def test_a_new_database_says_whose_it_is(tmp_path: Path) -> None:
    db = tmp_path / "weft.db"
    db.touch()  # empty: of no program
    store = SQLiteStore(db)
    await store.open()
    await store.close()
    with closing(sqlite3.connect(db)) as file:
        assert file.execute("PRAGMA application_id").fetchone() == (migrate.APPLICATION_ID,)


async def test_damage_is_not_a_full_disk(tmp_path: Path) -> None:
    db = tmp_path / "weft.db"
    async with engine_on(db):
        pass
    whole = db.read_bytes()
    db.write_bytes(whole[:100] + os.urandom(len(whole) - 100))
    with pytest.raises(StoreError) as refused:
        await SQLiteStore(db).open()
    assert isinstance(refused.value, DatabaseDamaged)
    assert (status_of(refused.value), refused.value.code) == (503, "db_damaged")
    assert "weft restore" in refused.value.hint


class Full(sqlite3.Connection):
    full = False

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if Full.full and sql.startswith("INSERT"):
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        return super().execute(sql, *values)


async def test_a_full_disk_says_so_once_a_minute(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = tmp_path / "weft.db"
    monkeypatch.setattr(Full, "full", False)
    store = SQLiteStore(db, connect=lambda path: sqlite3.connect(path, isolation_level=None, factory=Full))
    await store.open()
    run = await owned_run(store)
    Full.full = True
    for n in range(50):
        with pytest.raises(DatabaseFull) as refused:
            await store.create_run(new_run(f"more-{n}"))
    assert (status_of(refused.value), refused.value.code) == (507, "db_full")
    assert str(tmp_path) in refused.value.hint
    assert [line.getMessage() for line in caplog.records if "failed" in line.getMessage()] == [
        "the database failed: the disk is full: database or disk is full: writing failed (1 times)"
    ]
    Full.full = False
    assert (await store.append(change(run, record(), now_ms=T0))).seq == 2
    await store.close()
