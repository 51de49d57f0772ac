"""A SQLite file as the source or the target of `transfer`."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from executor.errors import Conflict
from executor.kernel.store.migrate import migrate, packaged_migrations
from executor.kernel.store.reading import Reading
from executor.kernel.store.sqlite.connection import Database, check_log, plain_connect, sync_directory
from executor.kernel.store.sqlite.reading import SQLiteReading
from executor.kernel.store.tx import Row
from executor.service.upkeep.drafts import Draft


class FileSource:
    """Held alone: no other process can open it meanwhile."""

    def __init__(self, path: Path) -> None:
        """Raises Conflict, sqlite3.Error."""
        check_log(str(path))
        self._db = sqlite3.connect(f"file:{path.absolute()}?mode=rw", uri=True, isolation_level=None, timeout=0)
        self.reading: Reading = SQLiteReading(self._db, str(path))
        try:
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE").fetchone()
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            self._db.close()
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise Conflict(
                    f"a process is using {path}",
                    code="database_in_use",
                    hint="stop each `weft serve` and `weft worker`, then try again",
                ) from None
            raise

    def close(self) -> None:
        self._db.close()


class FileTarget:
    """Made under another name; `finish` gives it its own."""

    def __init__(self, path: Path) -> None:
        """Raises Conflict, OSError, sqlite3.Error."""
        for there in (path, path.with_name(f"{path.name}-wal")):
            if there.exists():
                raise Conflict(f"the file {there} already exists", code="file_exists", hint="choose another name")
        self._path = path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._draft = Draft(path)
        database = Database(str(self._draft.path), 0, plain_connect, lambda name: None)
        try:
            migrate(database, packaged_migrations())
        except BaseException:
            database.drop()
            self._draft.close()
            raise
        database.drop()
        self._db = sqlite3.connect(self._draft.path, isolation_level=None)
        self._db.execute("PRAGMA foreign_keys = OFF")
        self.reading: Reading = SQLiteReading(self._db, str(path))
        self._db.execute("BEGIN")

    def add(self, table: str, columns: tuple[str, ...], rows: Iterable[Row]) -> None:
        names = ", ".join(f'"{name}"' for name in columns)
        marks = ", ".join("?" * len(columns))
        self._db.executemany(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', rows)  # noqa: S608 - of the schema

    def finish(self) -> None:
        self._db.execute("COMMIT")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._db.close()
        descriptor = os.open(self._draft.path, os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.link(self._draft.path, self._path)  # does not replace a file that another process has just made
        os.unlink(self._draft.path)
        sync_directory(str(self._path))

    def close(self) -> None:
        self._db.close()
        self._draft.close()
