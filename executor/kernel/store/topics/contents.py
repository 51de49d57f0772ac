"""Contents that are stored by their hash, once: plans, documents and blobs.

Each use is noted, at most every USED_EVERY_MS, in the transaction that refers to the row. That write locks the row, and
`delete_orphans` deletes nothing that was used lately: so a run never begins with a plan that is just being deleted.
"""

from __future__ import annotations

from typing import Final

from executor.kernel.store.tx import Readers, Tx, do_once

USED_EVERY_MS: Final = 600_000  # so often the use of a plan, document or blob is noted


def _add(table: str, column: str) -> str:
    """By hash: the same bytes."""
    return f"""INSERT INTO {table} (hash, {column}, used_at_ms) VALUES (:hash, :content, :now)
ON CONFLICT (hash) DO UPDATE SET used_at_ms = excluded.used_at_ms WHERE {table}.used_at_ms < :now - {USED_EVERY_MS}"""


PLAN = "SELECT ir FROM plans WHERE hash = :hash"
ADD_PLAN = _add("plans", "ir")
DOCUMENT = "SELECT document FROM documents WHERE hash = :hash"
ADD_DOCUMENT = _add("documents", "document")
USE_DOCUMENT = f"""
UPDATE documents SET used_at_ms = :now WHERE hash = :hash AND used_at_ms < :now - {USED_EVERY_MS}"""
BLOB = "SELECT bytes FROM blobs WHERE hash = :hash"
ADD_BLOB = _add("blobs", "bytes")
ADD_BLOB_REF = "INSERT INTO blob_refs (run_id, hash) VALUES (:run, :hash) ON CONFLICT (run_id, hash) DO NOTHING"


async def get_plan(readers: Readers, hash: str) -> bytes | None:
    row = await readers.one(PLAN, {"hash": hash})
    return None if row is None else bytes(row[0])


async def get_document(readers: Readers, hash: str) -> bytes | None:
    """Return the document of a run that is not one of a stored workflow; see `RunRow.document_hash`."""
    row = await readers.one(DOCUMENT, {"hash": hash})
    return None if row is None else bytes(row[0])


async def get_blob(readers: Readers, hash: str) -> bytes | None:
    row = await readers.one(BLOB, {"hash": hash})
    return None if row is None else bytes(row[0])


def put_plan(tx: Tx, hash: str, plan: bytes, now_ms: int) -> None:
    """Store a plan that no run has yet; once, by hash."""
    do_once(tx, ADD_PLAN, hash, {"hash": hash, "content": plan, "now": now_ms})


def add_document(tx: Tx, hash: str, document: bytes, now_ms: int) -> None:
    do_once(tx, ADD_DOCUMENT, hash, {"hash": hash, "content": document, "now": now_ms})


def use_document(tx: Tx, hash: str, now_ms: int) -> None:
    """It is there already."""
    do_once(tx, USE_DOCUMENT, hash, {"hash": hash, "now": now_ms})


def add_blob(tx: Tx, hash: str, content: bytes, now_ms: int) -> None:
    tx.do(ADD_BLOB, {"hash": hash, "content": content, "now": now_ms})


def add_blob_ref(tx: Tx, run_id: str, hash: str) -> None:
    """The run needs the blob from now on."""
    tx.do(ADD_BLOB_REF, {"run": run_id, "hash": hash})
