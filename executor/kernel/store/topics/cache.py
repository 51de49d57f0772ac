"""Cached results."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from compiler.plan import CacheScope
from executor.kernel.store.statements import Readers, Tx, columns, insert, replacing


class CacheRow(Struct, frozen=True):
    """`key`: see `cache_key` in `kernel.run.kept`. `output` is JSON, `route` the handle that the block chose,
    `run_id` the run that put it out."""

    key: str
    scope: CacheScope
    workflow: str
    run_id: str
    block: str
    type: str
    schema_sig: str
    route: str | None
    created_at_ms: int
    expires_at_ms: int
    output: bytes


FIND = f"SELECT {columns(CacheRow)} FROM cache WHERE key = :key AND expires_at_ms > :now"
PUT = insert("cache", CacheRow) + replacing(CacheRow, "key")
# Once more in the end: another process may have just put a new result under a key that was found.
DELETE_EXPIRED = """
DELETE FROM cache
 WHERE key IN (SELECT key FROM cache WHERE expires_at_ms <= :now ORDER BY expires_at_ms LIMIT :limit)
   AND expires_at_ms <= :now"""


async def find_cached(readers: Readers, key: str, now_ms: int) -> CacheRow | None:
    """Return the row, or None if there is none or it has expired (expires_at <= now)."""
    return await readers.fetch_one(CacheRow, FIND, {"key": key, "now": now_ms})


def put_cached(tx: Tx, rows: Sequence[CacheRow]) -> None:
    for row in rows:
        tx.run(PUT, msgspec.structs.asdict(row))


def clear_cache(tx: Tx, workflow: str | None = None) -> int:
    """Delete everything, or what runs of this workflow left. Returns how many rows were deleted."""
    if workflow is None:
        return tx.run("DELETE FROM cache")
    return tx.run("DELETE FROM cache WHERE workflow = :workflow", {"workflow": workflow})


def delete_expired_cache(tx: Tx, now_ms: int, limit: int) -> int:
    """Delete at most `limit` rows that expired before `now_ms`, oldest first. Returns how many were deleted."""
    return tx.run(DELETE_EXPIRED, {"now": now_ms, "limit": limit})
