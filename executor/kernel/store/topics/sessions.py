"""Sessions of browsers."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from executor.kernel.store.tx import Readers, Tx

SESSIONS_MAX: Final = 1_000


class SessionRow(Struct, frozen=True):
    """`mark` is of the token that it was made with: with another token it does not count. `user_id`: who signed in;
    `device`: what their browser calls itself."""

    hash: str
    mark: str
    created_at_ms: int
    seen_at_ms: int
    user_id: str = ""
    device: str = ""


SESSION = "hash, mark, created_at_ms, seen_at_ms, user_id, device"
PUT = f"INSERT INTO sessions ({SESSION}) VALUES (:hash, :mark, :created_at_ms, :seen_at_ms, :user_id, :device)"
GET = f"SELECT {SESSION} FROM sessions WHERE hash = :hash"
SEE = "UPDATE sessions SET seen_at_ms = :seen WHERE hash = :hash AND seen_at_ms < :seen"
DELETE = "DELETE FROM sessions WHERE hash = :hash"
LIST = f"SELECT {SESSION} FROM sessions ORDER BY seen_at_ms DESC, hash"
DELETE_ALL = "DELETE FROM sessions"
DELETE_OF = "DELETE FROM sessions WHERE user_id = :user"
DELETE_EXPIRED = "DELETE FROM sessions WHERE created_at_ms <= :created_after OR seen_at_ms <= :seen_after"
# Those after the first :most. (Many at a time; there is no standard way to write: all.)
DELETE_SURPLUS = """
DELETE FROM sessions
 WHERE hash IN (SELECT hash FROM sessions ORDER BY seen_at_ms DESC, hash LIMIT 1000000 OFFSET :most)"""


async def get_session(readers: Readers, hash: str) -> SessionRow | None:
    row = await readers.one(GET, {"hash": hash})
    return None if row is None else SessionRow(*row)


async def list_sessions(readers: Readers) -> list[SessionRow]:
    """Seen last first."""
    return [SessionRow(*row) for row in await readers.all(LIST)]


def put_session(tx: Tx, row: SessionRow, created_after_ms: int, seen_after_ms: int) -> bool:
    """Store a new session. Those that were created, or seen, no later than these times are deleted. Returns
    True."""
    tx.run(DELETE_EXPIRED, {"created_after": created_after_ms, "seen_after": seen_after_ms})
    tx.run(DELETE_SURPLUS, {"most": SESSIONS_MAX - 1})
    tx.run(PUT, msgspec.structs.asdict(row))
    return True


def see_session(tx: Tx, hash: str, seen_at_ms: int) -> None:
    tx.run(SEE, {"hash": hash, "seen": seen_at_ms})


def delete_session(tx: Tx, hash: str) -> bool:
    return tx.run(DELETE, {"hash": hash}) == 1


def delete_sessions(tx: Tx, user_id: str | None = None) -> int:
    """Delete all sessions, or those of a user."""
    return tx.run(DELETE_ALL) if user_id is None else tx.run(DELETE_OF, {"user": user_id})
