"""What is stored by its hash, once: plans, documents and blobs."""

from __future__ import annotations

from executor.store.sqlite.connection import Tx
from executor.store.sqlite.readers import Readers

PLAN = "SELECT ir FROM plans WHERE hash = ?"
ADD_PLAN = "INSERT INTO plans (hash, ir) VALUES (?, ?) ON CONFLICT DO NOTHING"  # by hash: the same bytes
DOCUMENT = "SELECT document FROM documents WHERE hash = ?"
ADD_DOCUMENT = "INSERT INTO documents (hash, document) VALUES (?, ?) ON CONFLICT DO NOTHING"  # by hash: the same bytes
BLOB = "SELECT bytes FROM blobs WHERE hash = ?"
ADD_BLOB = "INSERT INTO blobs (hash, bytes) VALUES (?, ?) ON CONFLICT DO NOTHING"  # by hash: the same bytes
ADD_BLOB_REF = "INSERT INTO blob_refs (run_id, hash) VALUES (?, ?) ON CONFLICT DO NOTHING"


async def get_plan(readers: Readers, hash: str) -> bytes | None:
    row = await readers.one(PLAN, (hash,))
    return None if row is None else bytes(row[0])


async def get_document(readers: Readers, hash: str) -> bytes | None:
    row = await readers.one(DOCUMENT, (hash,))
    return None if row is None else bytes(row[0])


async def get_blob(readers: Readers, hash: str) -> bytes | None:
    row = await readers.one(BLOB, (hash,))
    return None if row is None else bytes(row[0])


def put_plan(tx: Tx, hash: str, plan: bytes) -> None:
    tx.db.execute(ADD_PLAN, (hash, plan))


def add_document(tx: Tx, hash: str, document: bytes) -> None:
    tx.db.execute(ADD_DOCUMENT, (hash, document))


def add_blob(tx: Tx, hash: str, content: bytes) -> None:
    tx.db.execute(ADD_BLOB, (hash, content))


def add_blob_ref(tx: Tx, run_id: str, hash: str) -> None:
    """The run needs the blob from now on."""
    tx.db.execute(ADD_BLOB_REF, (run_id, hash))
