"""Workflows: versions of documents, and which of them is active."""

# ruff: noqa: S608  (the pieces put together here are constants of this package, never values)

from __future__ import annotations

from typing import Any

import msgspec

from executor.store.rows import Declared, DeletedWorkflow, LastRun, Stored, VersionRow, WorkflowHead, WorkflowRow
from executor.store.sqlite.conditions import OPEN
from executor.store.sqlite.connection import Tx
from executor.store.sqlite.drafts import unbase_drafts
from executor.store.sqlite.readers import Readers
from executor.store.sqlite.schedules import delete_schedules_of, put_declared_schedules
from executor.store.sqlite.webhooks import delete_webhooks_of, put_declared_webhooks

WORKFLOW = "name, version, hash, document, created_at_ms"
BY_HASH = f"SELECT {WORKFLOW} FROM workflows WHERE name = ? AND hash = ?"
BY_VERSION = f"SELECT {WORKFLOW} FROM workflows WHERE name = ? AND version = ?"
LAST_VERSION = "SELECT coalesce(max(version), 0) FROM workflows WHERE name = ?"
ADD = f"INSERT INTO workflows ({WORKFLOW}) VALUES (?, ?, ?, ?, ?)"
ACTIVE = f"""
SELECT {WORKFLOW} FROM workflows
 WHERE name = ?1 AND version = (SELECT version FROM active_versions WHERE workflow = ?1)"""
ALL_ACTIVE = f"""
SELECT {WORKFLOW} FROM active_versions AS a JOIN workflows AS w USING (version) WHERE w.name = a.workflow
 ORDER BY a.workflow"""
ACTIVE_VERSION = "SELECT version FROM active_versions WHERE workflow = ?"
ACTIVATE = """
INSERT INTO active_versions (workflow, version, since_ms) VALUES (?, ?, ?)
ON CONFLICT (workflow) DO UPDATE SET version = excluded.version, since_ms = excluded.since_ms"""
DEACTIVATE = "DELETE FROM active_versions WHERE workflow = ?"
# The last run of a workflow is one step into the index `runs_by_workflow`, whatever number of runs there is.
HEADS = """
SELECT a.workflow, a.version, w.hash, w.created_at_ms, a.since_ms,
       (SELECT max(version) FROM workflows WHERE name = a.workflow),
       (SELECT count(*) FROM workflows WHERE name = a.workflow),
       r.id, r.version, r.status, r.created_at_ms, r.finished_at_ms
  FROM active_versions AS a
  JOIN workflows AS w ON w.name = a.workflow AND w.version = a.version
  LEFT JOIN runs AS r ON r.id = (SELECT id FROM runs INDEXED BY runs_by_workflow WHERE workflow = a.workflow
                                  ORDER BY created_at_ms DESC, id DESC LIMIT 1)"""
HEAD = f"{HEADS} WHERE a.workflow = ?"
ALL_HEADS = f"{HEADS} ORDER BY a.workflow"
VERSIONS = """
SELECT version, hash, created_at_ms FROM workflows
 WHERE name = ?1 AND version < ?2 AND EXISTS (SELECT 1 FROM active_versions WHERE workflow = ?1)
 ORDER BY version DESC LIMIT ?3"""
COUNT_OPEN = f"SELECT count(*) FROM runs INDEXED BY runs_claimable WHERE {OPEN} AND workflow = ?"


async def get_workflow(readers: Readers, name: str, version: int | None = None) -> WorkflowRow | None:
    if version is None:
        row = await readers.one(ACTIVE, (name,))
    else:
        row = await readers.one(BY_VERSION, (name, version))
    return None if row is None else WorkflowRow(*row)


async def list_workflows(readers: Readers) -> list[WorkflowRow]:
    return [WorkflowRow(*row) for row in await readers.all(ALL_ACTIVE)]


async def get_head(readers: Readers, name: str) -> WorkflowHead | None:
    row = await readers.one(HEAD, (name,))
    return None if row is None else _head(row)


async def list_heads(readers: Readers) -> list[WorkflowHead]:
    return [_head(row) for row in await readers.all(ALL_HEADS)]


async def list_versions(readers: Readers, name: str, before: int | None = None, limit: int = 200) -> list[VersionRow]:
    below = 2**62 if before is None else before
    return [VersionRow(*row) for row in await readers.all(VERSIONS, (name, below, limit))]


def put_workflow(
    tx: Tx, name: str, document: bytes, hash: str, now_ms: int, declared: Declared | None = None
) -> Stored:
    found = tx.db.execute(BY_HASH, (name, hash)).fetchall()
    if found:
        return _make_active(tx, WorkflowRow(*found[0]), False, now_ms, declared)
    (last,) = tx.db.execute(LAST_VERSION, (name,)).fetchone()
    row = WorkflowRow(name, last + 1, hash, document, now_ms)
    tx.db.execute(ADD, msgspec.structs.astuple(row))
    return _make_active(tx, row, True, now_ms, declared)


def activate_workflow(tx: Tx, name: str, version: int, now_ms: int, declared: Declared | None = None) -> Stored | None:
    found = tx.db.execute(BY_VERSION, (name, version)).fetchall()
    if not found or _active_version(tx, name) is None:
        return None
    return _make_active(tx, WorkflowRow(*found[0]), False, now_ms, declared)


def delete_workflow(tx: Tx, name: str) -> DeletedWorkflow | None:
    if _active_version(tx, name) is None:
        return None
    (open_runs,) = tx.db.execute(COUNT_OPEN, (name,)).fetchone()
    if open_runs:
        return DeletedWorkflow(open_runs)
    schedules = delete_schedules_of(tx, name)
    webhooks = delete_webhooks_of(tx, name)
    unbase_drafts(tx, name)
    tx.db.execute(DEACTIVATE, (name,))
    return DeletedWorkflow(0, schedules, webhooks)


def _make_active(tx: Tx, row: WorkflowRow, created: bool, now_ms: int, declared: Declared | None) -> Stored:
    before = _active_version(tx, row.name)
    if before != row.version:
        tx.db.execute(ACTIVATE, (row.name, row.version, now_ms))
    if declared is not None:
        declared = declared.of_version(row.version)
        put_declared_schedules(tx, row.name, declared.schedules)
        put_declared_webhooks(tx, row.name, declared.webhooks)
    return Stored(row, created, before != row.version, before if before != row.version else None)


def _active_version(tx: Tx, name: str) -> int | None:
    found = tx.db.execute(ACTIVE_VERSION, (name,)).fetchall()
    return int(found[0][0]) if found else None


def _head(row: tuple[Any, ...]) -> WorkflowHead:
    last = None if row[7] is None else LastRun(*row[7:])
    return WorkflowHead(*(*row[:7], last))
