"""A session that only reads a SQLite file (see `executor.kernel.store.reading`), beside a server or without one."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast
from urllib.parse import quote

from executor.kernel.store.migrate import packaged_migrations, refuse_others, version_of
from executor.kernel.store.reading import Column, Kind
from executor.kernel.store.sqlite.connection import check_log
from executor.kernel.store.sqlite.dialect import TEXTS
from executor.kernel.store.statements import Row, Values

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"


def open_read_only(path: str | os.PathLike[str], busy_timeout_ms: int = 5_000) -> sqlite3.Connection:
    """Raises sqlite3.OperationalError if there is no such file, DatabaseUnavailable if only its log is there."""
    check_log(os.fspath(path))
    db = sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro", uri=True, isolation_level=None)
    db.execute(f"PRAGMA busy_timeout = {busy_timeout_ms:d}")
    db.execute("PRAGMA query_only = 1")
    return db


def open_reading(path: str | os.PathLike[str]) -> SQLiteReading:
    return SQLiteReading(open_read_only(path), os.fspath(path))


class SQLiteReading:
    kind: Kind = "SQLite"

    def __init__(self, db: sqlite3.Connection, name: str = "") -> None:
        self.db = db
        self.name = name

    def rows(self, sql: str, values: Values = ()) -> list[Row]:
        return self.db.execute(TEXTS[sql], values).fetchall()

    def each(self, sql: str, values: Values = ()) -> Iterator[Row]:
        return self.db.execute(TEXTS[sql], values)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        if self.db.in_transaction:
            yield
            return
        self.db.execute("BEGIN")
        try:
            yield
        finally:
            self.db.execute("ROLLBACK")

    def schema(self) -> tuple[int, int]:
        refuse_others(self.db, self.name)
        return version_of(self.db), packaged_migrations()[-1].number

    def identity(self) -> str:
        found = os.stat(self.name)
        return f"{found.st_dev}:{found.st_ino}"

    def unsound(self, limit: int) -> Iterator[str]:
        for (line,) in self.db.execute(f"PRAGMA integrity_check({limit:d})"):
            if line != "ok":
                yield f"SQLite: {line}"
        for count, (table, rowid, parent, _) in enumerate(self.db.execute("PRAGMA foreign_key_check")):
            if count == limit:
                return
            yield f"row {rowid} of {table} refers to a missing row of {parent}"

    def damage(self, error: Exception) -> str | None:
        if isinstance(error, sqlite3.DatabaseError):
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            return f"SQLite: {error}" if code == sqlite3.SQLITE_CORRUPT else None
        return None

    def tables(self) -> dict[str, list[str]]:
        return {table: [name for _, name, *_ in self._columns(table)] for (table,) in self.db.execute(_TABLES)}

    def texts(self, table: str) -> list[Column]:
        columns = self._columns(table)
        return [
            Column(name, f'instr(CAST("{name}" AS BLOB), {{}}) > 0')
            for _, name, kind, *_ in columns
            if kind.upper() != "INTEGER"
        ]

    def _columns(self, table: str) -> list[Row]:
        return cast(list[Row], self.db.execute(f'PRAGMA table_info("{table}")').fetchall())

    def clock_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def close(self) -> None:
        self.db.close()
