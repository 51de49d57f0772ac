"""Contents that are stored by their hash, once: plans, documents, blobs, and files in the table of blobs.

A file is a row `file_` + SHA-256 of its bytes, which are the JSON of a FileHead; that names the rows `part_` + SHA-256
of their bytes, with the content in order. So the id of a file stands for its content, its name and its media type, and
equal parts of two files are stored once. A run holds a file, and all its parts, by rows of `blob_refs`.

A value names a file by a text that is nothing but its id. That gives a run no file: a run has those that it holds.

Each use is noted, at most every USED_EVERY_MS, in the transaction that refers to the row. That write locks the row, and
`delete_orphans` deletes nothing that was used lately: so a run never begins with a plan that is just being deleted.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from msgspec import Struct

from executor.kernel.store.statements import Readers, Tx, as_list, do_once, lock_run

USED_EVERY_MS: Final = 600_000  # so often the use of a plan, document or blob is noted


def _add(table: str, column: str) -> str:
    return f"""INSERT INTO {table} (hash, {column}, used_at_ms) VALUES (:hash, :content, :now)
ON CONFLICT (hash) DO UPDATE SET used_at_ms = excluded.used_at_ms WHERE {table}.used_at_ms < :now - {USED_EVERY_MS}"""


ADD_PLAN = _add("plans", "ir")
ADD_DOCUMENT = _add("documents", "document")
USE_DOCUMENT = f"""
UPDATE documents SET used_at_ms = :now WHERE hash = :hash AND used_at_ms < :now - {USED_EVERY_MS}"""
BLOB = "SELECT bytes FROM blobs WHERE hash = :hash"
ADD_BLOB = _add("blobs", "bytes")
ADD_BLOB_REF = "INSERT INTO blob_refs (run_id, hash) VALUES (:run, :hash) ON CONFLICT (run_id, hash) DO NOTHING"


async def get_plan(readers: Readers, hash: str) -> bytes | None:
    return await readers.value(bytes, "SELECT ir FROM plans WHERE hash = :hash", {"hash": hash})


async def get_document(readers: Readers, hash: str) -> bytes | None:
    """Return the document of a run that is not one of a stored workflow; see `RunRow.document_hash`."""
    return await readers.value(bytes, "SELECT document FROM documents WHERE hash = :hash", {"hash": hash})


async def get_blob(readers: Readers, hash: str) -> bytes | None:
    return await readers.value(bytes, BLOB, {"hash": hash})


def put_plan(tx: Tx, hash: str, plan: bytes, now_ms: int) -> None:
    """Store a plan that no run has yet; once, by hash."""
    do_once(tx, ADD_PLAN, hash, {"hash": hash, "content": plan, "now": now_ms})


def add_document(tx: Tx, hash: str, document: bytes, now_ms: int) -> None:
    do_once(tx, ADD_DOCUMENT, hash, {"hash": hash, "content": document, "now": now_ms})


def use_document(tx: Tx, hash: str, now_ms: int) -> None:
    do_once(tx, USE_DOCUMENT, hash, {"hash": hash, "now": now_ms})


def add_blob(tx: Tx, hash: str, content: bytes, now_ms: int) -> None:
    tx.do(ADD_BLOB, {"hash": hash, "content": content, "now": now_ms})


def add_blob_ref(tx: Tx, run_id: str, hash: str) -> None:
    tx.do(ADD_BLOB_REF, {"run": run_id, "hash": hash})


PART_BYTES: Final = 1024 * 1024
FILES_MAX: Final = 1_000  # in one value
_MARK: Final = b'"file_'
_ID: Final = re.compile(rb'"(file_[0-9a-f]{64})"')


class FileHead(Struct, frozen=True):
    """The row stored under the id of a file. `sha256` is of the content. `parts` are their keys, in order; all but the
    last have PART_BYTES."""

    name: str
    media_type: str
    size: int
    sha256: str
    parts: tuple[str, ...] = ()


def key_of(kind: Literal["file", "part"], content: bytes) -> str:
    return f"{kind}_{hashlib.sha256(content).hexdigest()}"


def decode_head(content: bytes) -> FileHead:
    return msgspec.json.decode(content, type=FileHead)


def names_files(json: bytes) -> bool:
    """Check quickly; a True may be wrong."""
    return _MARK in json


def files_in(json: bytes) -> list[str]:
    """Return the ids of files that this JSON names, FILES_MAX at most. It has no blanks between two texts."""
    if _MARK not in json:
        return []
    return [id.decode() for id in dict.fromkeys(_ID.findall(json))][:FILES_MAX]


USE_PARTS = f"UPDATE blobs SET used_at_ms = :now WHERE hash IN $texts(:keys) AND used_at_ms < :now - {USED_EVERY_MS}"
# A part that is not there has no row: a reference to it would be one to nothing.
HOLD_PARTS = """
INSERT INTO blob_refs (run_id, hash) SELECT :run, hash FROM blobs WHERE hash IN $texts(:keys)
ON CONFLICT (run_id, hash) DO NOTHING"""
# Ids of files and of their parts have a prefix, hashes of outputs have none.
IS_OF_A_FILE = "substr(hash, 5, 1) = '_'"
HOLD_THOSE_OF = f"""
INSERT INTO blob_refs (run_id, hash) SELECT :run, hash FROM blob_refs WHERE run_id = :source AND {IS_OF_A_FILE}
ON CONFLICT (run_id, hash) DO NOTHING"""

HELD_BY = """
SELECT 1 FROM blob_refs AS f JOIN runs AS r ON r.id = f.run_id
 WHERE f.hash = :id AND r.workflow IN $texts(:workflows) LIMIT 1"""


HELD_BY_RUN = "SELECT hash FROM blob_refs WHERE run_id = :run AND hash IN $texts(:ids)"


def put_parts(tx: Tx, parts: Sequence[tuple[str, bytes]], run: str | None, now_ms: int) -> bool:
    """Store parts of a file, or its head, by key, once; storing one again is a use. With a run it holds them from
    now on. Returns False, with nothing written, if the run does not exist."""
    if run is not None and not lock_run(tx, run):
        return False
    for key, content in parts:
        add_blob(tx, key, content, now_ms)
        if run is not None:
            add_blob_ref(tx, run, key)
    return True


def hold_files(tx: Tx, ids: Sequence[str], run: str | None, now_ms: int) -> list[str]:
    """Note a use of these files with their parts; with a run it holds them from now on. Returns those that there
    are: nothing of them is deleted before the time in the rule "orphans only" has passed again."""
    if run is not None and not lock_run(tx, run):
        return []
    return hold(tx, ids, run, now_ms)


def hold(tx: Tx, ids: Sequence[str], run: str | None, now_ms: int) -> list[str]:
    """As `hold_files`, for a run whose row the transaction has written or taken."""
    found = []
    for id in ids:
        tx.run(USE_PARTS, {"keys": as_list([id]), "now": now_ms})  # first of all: what deletes it looks at this
        row = tx.rows(BLOB, {"hash": id})
        if not row:
            continue
        found.append(id)
        keys = sorted({id, *decode_head(bytes(row[0][0])).parts})
        tx.run(USE_PARTS, {"keys": as_list(keys), "now": now_ms})
        if run is not None:
            tx.run(HOLD_PARTS, {"run": run, "keys": as_list(keys)})
    return found


async def files_of_run(readers: Readers, run_id: str, ids: Sequence[str]) -> list[str]:
    held = {hash for (hash,) in await readers.all(HELD_BY_RUN, {"run": run_id, "ids": as_list(ids)})}
    return [id for id in ids if id in held]


async def holds_file(readers: Readers, id: str, workflows: Sequence[str]) -> bool:
    return await readers.one(HELD_BY, {"id": id, "workflows": as_list(workflows)}) is not None


def hold_from_the_start(tx: Tx, run: str, files: Sequence[str], sources: Sequence[str], now_ms: int) -> None:
    """Part of creating a run: it holds these files, and those of the runs that it takes something over from."""
    hold(tx, files, run, now_ms)
    for source in sources:
        tx.run(HOLD_THOSE_OF, {"run": run, "source": source})
