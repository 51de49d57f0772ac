"""An apsw connection that looks like the part of `sqlite3.Connection` which the store uses.

The store thus runs as it is over a VFS written in Python (`vfs.py`), which the standard library's module cannot use.
Rows are tuples, errors are sqlite3's with their `sqlite_errorcode`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, cast

import apsw

from executor.kernel.store.sqlite.connection import Connect

Row = tuple[Any, ...]
Rewrite = Callable[[str], str]  # of each statement, before it is run


def connects(vfs: str, rewrite: Rewrite = lambda sql: sql) -> tuple[Connect, Connect]:
    """The two factories of `SQLiteStore`, for the writer and for readers, over the VFS of that name."""

    def opened(path: str, flags: int) -> sqlite3.Connection:
        with _raised_as_sqlite3():
            connection = apsw.Connection(path, flags, vfs, statementcachesize=256)
        return cast(sqlite3.Connection, Adapter(connection, rewrite))

    return (
        lambda path: opened(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE),
        lambda path: opened(path, apsw.SQLITE_OPEN_READONLY),
    )


class Adapter:
    def __init__(self, connection: apsw.Connection, rewrite: Rewrite) -> None:
        self._connection = connection
        self._rewrite = rewrite

    @property
    def total_changes(self) -> int:
        return self._connection.total_changes()

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def execute(self, sql: str, values: Any = ()) -> _Cursor:
        with _raised_as_sqlite3():
            return _Cursor(self._connection.execute(self._rewrite(sql), values or None), self._connection.changes())

    def executemany(self, sql: str, rows: Iterable[Any]) -> _Cursor:
        with _raised_as_sqlite3():
            return _Cursor(self._connection.executemany(self._rewrite(sql), rows), self._connection.changes())

    def close(self) -> None:
        with suppress(apsw.Error):  # SQLite closes whatever goes wrong, and says nothing of it; apsw does
            self._connection.close(True)


class _Cursor:
    """`rowcount` is that of the last statement which changed something: who asks has just run one."""

    def __init__(self, cursor: apsw.Cursor, rowcount: int) -> None:
        self._cursor = cursor
        self.rowcount = rowcount

    def __iter__(self) -> Iterator[Row]:
        while (row := self.fetchone()) is not None:
            yield row

    def fetchone(self) -> Row | None:
        with _raised_as_sqlite3():
            return self._cursor.fetchone()

    def fetchall(self) -> list[Row]:
        with _raised_as_sqlite3():
            return self._cursor.fetchall()

    def close(self) -> None:
        self._cursor.close(True)


@contextmanager
def _raised_as_sqlite3() -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise as_sqlite3(error) from error


def as_sqlite3(error: apsw.Error) -> sqlite3.Error:
    code: int = getattr(error, "extendedresult", sqlite3.SQLITE_ERROR)
    match code & 0xFF:
        case sqlite3.SQLITE_CONSTRAINT:
            kind: type[sqlite3.Error] = sqlite3.IntegrityError
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            kind = sqlite3.DatabaseError
        case _:
            kind = sqlite3.OperationalError
    told = kind(str(error))
    told.sqlite_errorcode = code
    return told
