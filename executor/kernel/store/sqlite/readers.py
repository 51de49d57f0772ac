"""Read-only connections, each on a thread of aiosqlite. Readers never wait for the writer.

Each call is one SELECT in a transaction of its own: it sees one state, and a caller that is cancelled leaves nothing
open.
"""

from __future__ import annotations

import os
import sqlite3
from functools import partial
from typing import Any
from urllib.parse import quote

import aiosqlite

from executor.errors import DatabaseUnavailable, store_closed
from executor.kernel.store.sqlite.connection import Connect
from executor.kernel.store.sqlite.dialect import TEXTS
from executor.kernel.store.statements import Readers as BaseReaders
from executor.kernel.store.statements import Row, Values

PING_READ = "SELECT count(*) FROM writers"


def plain_read_only(path: str) -> sqlite3.Connection:
    uri = f"file:{quote(os.path.abspath(path))}?mode=ro"
    return sqlite3.connect(uri, uri=True, isolation_level=None, cached_statements=128)


class Readers(BaseReaders):
    """Connections that read. `connect` makes a raw read-only connection. The copy of SQLite that it uses must be the
    writer's: the locks of two copies in one process cancel each other."""

    def __init__(self, path: str, count: int, busy_timeout_ms: int, connect: Connect = plain_read_only) -> None:
        self._connect = partial(connect, path)
        self._count = count
        self._busy_timeout_ms = busy_timeout_ms
        self._connections: list[aiosqlite.Connection] = []
        self._busy: list[int] = []  # queries under way, by connection

    async def open(self) -> None:
        try:
            for _ in range(self._count):
                connection = aiosqlite.Connection(self._connect, iter_chunk_size=64)
                _let_the_process_end(connection)
                self._connections.append(await connection)
                self._busy.append(0)
                await connection.execute_fetchall(f"PRAGMA busy_timeout = {self._busy_timeout_ms:d}")
                await connection.execute_fetchall("PRAGMA query_only = 1")
                # Proves that it works, and joins the WAL: see SQLiteStore.close.
                await connection.execute_fetchall(PING_READ)
        except sqlite3.Error as error:
            raise DatabaseUnavailable(f"the database cannot be read: {error}") from error

    async def close(self) -> None:
        connections, self._connections, self._busy = self._connections, [], []
        for connection in connections:
            await connection.close()

    async def all(self, sql: str, values: Values = ()) -> list[Row]:
        if not self._connections:
            raise store_closed()
        return await self._ask(self._busy.index(min(self._busy)), TEXTS[sql], values)

    async def version(self) -> int | None:
        if not self._connections:
            raise store_closed()
        [[version]] = await self._ask(0, "PRAGMA data_version")  # each connection counts for itself
        return int(version)

    async def _ask(self, i: int, sql: str, values: Values = ()) -> list[Row]:
        busy = self._busy
        busy[i] += 1
        try:
            rows = await self._connections[i].execute_fetchall(sql, values)
        except sqlite3.Error as error:
            raise DatabaseUnavailable(f"the database cannot be read: {error}") from error
        finally:
            busy[i] -= 1  # of the list this query began with: `close` starts a new one
        return rows  # type: ignore[return-value]  # declared as Iterable[Row], is the list of tuples of fetchall()


def _let_the_process_end(connection: aiosqlite.Connection) -> None:
    """Python waits at exit for aiosqlite's thread, which has no public switch for it; a reader has nothing to lose."""
    thread: Any = getattr(connection, "_thread", connection)
    thread.daemon = True
