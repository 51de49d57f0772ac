"""Drafts: documents that are being edited."""

# ruff: noqa: S608  (the pieces put together here are constants of this package, never values)

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from executor.store.rows import DraftHead, DraftRow, LastRun
from executor.store.sqlite.connection import Tx
from executor.store.sqlite.readers import Readers

DRAFT_HEAD = "id, name, rev, base_name, base_version, base_rev, created_at_ms, updated_at_ms"
DRAFT = f"{DRAFT_HEAD}, document"
DRAFT_BY_ID = f"SELECT {DRAFT} FROM drafts WHERE id = ?"
ADD_DRAFT = f"INSERT INTO drafts ({DRAFT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
REVISE_DRAFT = "UPDATE drafts SET name = ?, rev = ?, updated_at_ms = ?, document = ? WHERE id = ? AND rev = ?"
REBASE_DRAFT = "UPDATE drafts SET base_name = ?, base_version = ?, base_rev = ? WHERE id = ?"
UNBASE_DRAFTS = "UPDATE drafts SET base_name = NULL, base_version = NULL, base_rev = NULL WHERE base_name = ?"
DELETE_DRAFT = "DELETE FROM drafts WHERE id = ?"
DELETE_DRAFT_AT_REV = "DELETE FROM drafts WHERE id = ? AND rev = ?"
# Newest change first: DRAFTS, then perhaps the condition, then DRAFTS_PAGE.
DRAFTS = f"SELECT {DRAFT_HEAD} FROM drafts WHERE true"
DRAFTS_BEFORE = " AND (updated_at_ms, id) < (SELECT updated_at_ms, id FROM drafts WHERE id = ?)"
DRAFTS_PAGE = " ORDER BY updated_at_ms DESC, id DESC LIMIT ?"
# One step into the index `runs_by_draft` for each.
LAST_RUNS_OF_DRAFTS = """
SELECT d.value, r.id, r.version, r.status, r.created_at_ms, r.finished_at_ms
  FROM json_each(?) AS d
  JOIN runs AS r ON r.id = (SELECT id FROM runs INDEXED BY runs_by_draft WHERE draft_id = d.value
                             ORDER BY created_at_ms DESC, id DESC LIMIT 1)"""


async def get_draft(readers: Readers, id: str) -> DraftRow | None:
    row = await readers.one(DRAFT_BY_ID, (id,))
    return None if row is None else DraftRow(*row)


async def list_drafts(readers: Readers, before: str | None = None, limit: int = 200) -> list[DraftHead]:
    if before is None:
        rows = await readers.all(DRAFTS + DRAFTS_PAGE, (limit,))
    else:
        rows = await readers.all(DRAFTS + DRAFTS_BEFORE + DRAFTS_PAGE, (before, limit))
    return [DraftHead(*row) for row in rows]


async def last_runs(readers: Readers, drafts: Sequence[str]) -> dict[str, LastRun]:
    wanted = msgspec.json.encode(list(drafts)).decode()
    return {draft: LastRun(*run) for draft, *run in await readers.all(LAST_RUNS_OF_DRAFTS, (wanted,))}


def put_draft(
    tx: Tx, id: str, expected_rev: int, name: str, document: bytes, now_ms: int, base_version: int | None = None
) -> tuple[DraftRow | None, bool]:
    old = _draft(tx, id)
    if expected_rev != (0 if old is None else old.rev):
        return old, False
    if old is None:
        based = base_version is not None
        new = DraftRow(
            id, name, 1, name if based else None, base_version, 1 if based else None, now_ms, now_ms, document
        )
        tx.db.execute(ADD_DRAFT, msgspec.structs.astuple(new))
        return new, True
    new = msgspec.structs.replace(old, name=name, rev=expected_rev + 1, updated_at_ms=now_ms, document=document)
    tx.db.execute(REVISE_DRAFT, (name, new.rev, now_ms, document, id, expected_rev))
    return new, True


def rebase_draft(tx: Tx, id: str, rev: int, workflow: str, version: int) -> DraftRow | None:
    tx.db.execute(REBASE_DRAFT, (workflow, version, rev, id))
    return _draft(tx, id)


def unbase_drafts(tx: Tx, workflow: str) -> None:
    """Part of deleting a workflow: they are based on nothing from then on."""
    tx.db.execute(UNBASE_DRAFTS, (workflow,))


def delete_draft(tx: Tx, id: str, expected_rev: int | None = None) -> bool:
    if expected_rev is None:
        return tx.db.execute(DELETE_DRAFT, (id,)).rowcount == 1
    return tx.db.execute(DELETE_DRAFT_AT_REV, (id, expected_rev)).rowcount == 1


def _draft(tx: Tx, id: str) -> DraftRow | None:
    found = tx.db.execute(DRAFT_BY_ID, (id,)).fetchall()
    return DraftRow(*found[0]) if found else None
