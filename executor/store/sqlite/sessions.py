"""Sessions in SQLite. The contract is in `executor.store.contract`."""

# ruff: noqa: S608  (the pieces put together here are constants of this file, never values)

from __future__ import annotations

import msgspec

from executor.store.rows import SESSIONS_MAX, SessionRow
from executor.store.sqlite.connection import Tx
from executor.store.sqlite.readers import Readers
from executor.store.sqlite.writer import Writer

SESSION = "hash, mark, created_at_ms, seen_at_ms"
PUT = f"INSERT INTO sessions ({SESSION}) VALUES (?, ?, ?, ?)"
GET = f"SELECT {SESSION} FROM sessions WHERE hash = ?"
SEE = "UPDATE sessions SET seen_at_ms = max(seen_at_ms, ?2) WHERE hash = ?1"
DELETE = "DELETE FROM sessions WHERE hash = ?"
DELETE_ALL = "DELETE FROM sessions"
DELETE_EXPIRED = "DELETE FROM sessions WHERE created_at_ms <= ? OR seen_at_ms <= ?"
DELETE_SURPLUS = """
DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions ORDER BY seen_at_ms DESC, hash LIMIT -1 OFFSET ?)"""


class SQLiteSessions:
    """What SQLiteStore can do with sessions."""

    _writer: Writer
    _readers: Readers

    async def put_session(self, row: SessionRow, created_after_ms: int, seen_after_ms: int) -> None:
        await self._writer.submit(_put_session, row, created_after_ms, seen_after_ms)

    async def get_session(self, hash: str) -> SessionRow | None:
        row = await self._readers.one(GET, (hash,))
        return None if row is None else SessionRow(*row)

    async def see_session(self, hash: str, seen_at_ms: int) -> None:
        await self._writer.submit(_see_session, hash, seen_at_ms)

    async def delete_session(self, hash: str) -> bool:
        return await self._writer.submit(_delete_session, hash)

    async def delete_sessions(self) -> int:
        return await self._writer.submit(_delete_sessions)


def _put_session(tx: Tx, row: SessionRow, created_after_ms: int, seen_after_ms: int) -> None:
    tx.db.execute(DELETE_EXPIRED, (created_after_ms, seen_after_ms))
    tx.db.execute(DELETE_SURPLUS, (SESSIONS_MAX - 1,))
    tx.db.execute(PUT, msgspec.structs.astuple(row))


def _see_session(tx: Tx, hash: str, seen_at_ms: int) -> None:
    tx.db.execute(SEE, (hash, seen_at_ms))


def _delete_session(tx: Tx, hash: str) -> bool:
    return tx.db.execute(DELETE, (hash,)).rowcount == 1


def _delete_sessions(tx: Tx) -> int:
    return tx.db.execute(DELETE_ALL).rowcount
