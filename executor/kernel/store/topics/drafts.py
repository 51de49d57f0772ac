"""Drafts: documents that are being edited."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from executor.kernel.store.statements import Readers, RunStatus, Tx, as_list, columns, those_of


class LastRun(Struct, frozen=True):
    """The run of a workflow that was created last."""

    id: str
    version: int | None
    status: RunStatus
    created_at_ms: int
    finished_at_ms: int | None


class DraftHead(Struct, frozen=True):
    """A document being edited. `rev` counts its revisions from 1; revision `base_rev` is version `base_version` of the
    workflow `base_name`, all None until it was one."""

    id: str
    name: str
    rev: int
    base_name: str | None
    base_version: int | None
    base_rev: int | None
    created_at_ms: int
    updated_at_ms: int
    folder: str


class DraftRow(DraftHead, frozen=True):
    document: bytes


DRAFT = columns(DraftRow)
DRAFT_BY_ID = f"SELECT {DRAFT} FROM drafts WHERE id = :id"
# Each gives the row that it wrote: without one, the draft is not as it was expected.
ADD_DRAFT = f"""
INSERT INTO drafts ({DRAFT}) VALUES (:id, :name, 1, :base_name, :base_version, :base_rev, :now, :now, '', :document)
ON CONFLICT (id) DO NOTHING RETURNING {DRAFT}"""
REVISE_DRAFT = f"""
UPDATE drafts SET name = :name, rev = rev + 1, updated_at_ms = :now, document = :document
 WHERE id = :id AND rev = :expected RETURNING {DRAFT}"""
REBASE_DRAFT = f"""
UPDATE drafts SET base_name = :name, base_version = :version, base_rev = :rev WHERE id = :id RETURNING {DRAFT}"""
# A new workflow is in the folder of its draft.
SHARE_FOLDER = """
UPDATE active_versions SET folder = d.folder FROM drafts AS d
 WHERE d.id = :id AND active_versions.workflow = :name AND active_versions.folder = '' AND d.folder <> ''"""
UNBASE_DRAFTS = "UPDATE drafts SET base_name = NULL, base_version = NULL, base_rev = NULL WHERE base_name = :name"
# Newest change first: DRAFTS, then perhaps the condition, then DRAFTS_PAGE.
DRAFTS = f"SELECT {columns(DraftHead)} FROM drafts WHERE true"
DRAFTS_BEFORE = " AND (updated_at_ms, id) < (SELECT updated_at_ms, id FROM drafts WHERE id = :before)"
DRAFTS_PAGE = " ORDER BY updated_at_ms DESC, id DESC LIMIT :limit"
# One step into the index `runs_by_draft` for each.
LAST_RUNS_OF_DRAFTS = """
SELECT d.value, r.id, r.version, r.status, r.created_at_ms, r.finished_at_ms
  FROM $texts(:drafts) AS d
  JOIN runs AS r ON r.id = (SELECT id FROM run_details $index(runs_by_draft) WHERE draft_id = d.value
                             ORDER BY created_at_ms DESC, id DESC LIMIT 1)"""


async def get_draft(readers: Readers, id: str) -> DraftRow | None:
    return await readers.fetch_one(DraftRow, DRAFT_BY_ID, {"id": id})


async def list_drafts(readers: Readers, before: str | None = None, limit: int = 200) -> list[DraftHead]:
    """Newest change first (updated_at, id). `before`: the draft id that ended the previous page."""
    query = DRAFTS + those_of((DRAFTS_BEFORE, before)) + DRAFTS_PAGE
    return await readers.fetch(DraftHead, query, {"before": before, "limit": limit})


async def last_runs(readers: Readers, drafts: Sequence[str]) -> dict[str, LastRun]:
    """Return the last run of each draft that has one, at the cost of a look into an index for each."""
    rows = await readers.all(LAST_RUNS_OF_DRAFTS, {"drafts": as_list(drafts)})
    return {draft: LastRun(*run) for draft, *run in rows}


def put_draft(
    tx: Tx, id: str, expected_rev: int, name: str, document: bytes, now_ms: int, base_version: int | None = None
) -> tuple[DraftRow | None, bool]:
    """Store revision expected_rev + 1 of a draft; 0 makes a new one, and only then `base_version` counts (of
    `name`, as base_rev 1). If the second value is False nothing was written, and the first is the draft as it is,
    or None if there is none."""
    values = {"id": id, "name": name, "document": document, "now": now_ms}
    if expected_rev == 0:
        based = base_version is not None
        base = {"base_name": name if based else None, "base_version": base_version, "base_rev": 1 if based else None}
        stored = tx.fetch_one(DraftRow, ADD_DRAFT, values | base)
    else:
        stored = tx.fetch_one(DraftRow, REVISE_DRAFT, values | {"expected": expected_rev})
    return (tx.fetch_one(DraftRow, DRAFT_BY_ID, {"id": id}), False) if stored is None else (stored, True)


def rebase_draft(tx: Tx, id: str, rev: int, workflow: str, version: int) -> DraftRow | None:
    """Note that revision `rev` was stored as `version` of `workflow`, which is then in the folder of the draft if it is
    in none. Returns the draft, or None if there is none."""
    values = {"id": id, "name": workflow, "version": version, "rev": rev}
    rebased = tx.fetch_one(DraftRow, REBASE_DRAFT, values)  # it locks the draft, so the folder stays what it is
    tx.run(SHARE_FOLDER, {"id": id, "name": workflow})
    return rebased


def unbase_drafts(tx: Tx, workflow: str) -> None:
    tx.run(UNBASE_DRAFTS, {"name": workflow})


def put_draft_in_folder(tx: Tx, id: str, folder: str) -> bool:
    """Show the draft in a folder, '' for none. Returns False if there is no such draft."""
    return tx.run("UPDATE drafts SET folder = :folder WHERE id = :id", {"id": id, "folder": folder}) == 1


def delete_draft(tx: Tx, id: str, expected_rev: int | None = None) -> bool:
    """Delete a draft; its runs stay. Returns False if there is no such draft, or its rev moved."""
    if expected_rev is None:
        return tx.run("DELETE FROM drafts WHERE id = :id", {"id": id}) == 1
    return tx.run("DELETE FROM drafts WHERE id = :id AND rev = :rev", {"id": id, "rev": expected_rev}) == 1
