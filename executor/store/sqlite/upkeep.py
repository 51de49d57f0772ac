"""Deletion of runs that have ended, and of contents and versions that no run refers to."""

# ruff: noqa: S608  (the pieces put together here are constants of this package, never values)

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import orjson

from executor.store.rows import Orphans, Removable
from executor.store.sqlite.conditions import ENDED, OPEN
from executor.store.sqlite.connection import Tx
from executor.store.sqlite.readers import Readers

# A run that was started from a block of another one reads that one's outputs when it recovers. Which one, stands in its
# first event.
SOURCES = f"""
SELECT json_extract(CAST(e.data AS TEXT), '$.source_run')
  FROM runs AS o INDEXED BY runs_claimable JOIN events AS e ON e.run_id = o.id AND e.seq = 1
 WHERE o.{OPEN} AND instr(e.data, '"source_run"') AND json_extract(CAST(e.data AS TEXT), '$.source_run') IS NOT NULL"""
_MAY_GO = f"""
 r.{ENDED} AND NOT EXISTS (SELECT 1 FROM runs AS child WHERE child.parent_run_id = r.id AND child.{OPEN})
   AND (r.parent_run_id IS NULL OR NOT EXISTS (SELECT 1 FROM runs AS parent WHERE parent.id = r.parent_run_id))"""
# Older than the newest so many of its workflow. Fewer than that: the comparison is with NULL, none of them goes.
_NOT_NEWEST = f"""
   AND (r.parent_run_id IS NOT NULL OR (r.created_at_ms, r.id) < (
       SELECT k.created_at_ms, k.id FROM runs AS k
        WHERE k.workflow = r.workflow AND k.{ENDED} AND k.parent_run_id IS NULL
        ORDER BY k.created_at_ms DESC, k.id DESC LIMIT 1 OFFSET ?))"""
# No run ends before it was created, so the index by creation time has the oldest at its beginning.
FIND_REMOVABLE = f"""
SELECT r.id, r.workflow, r.seq, r.finished_at_ms FROM runs AS r INDEXED BY runs_by_time
 WHERE r.created_at_ms < ? AND r.finished_at_ms < ? AND {_MAY_GO} AND r.id NOT IN ({SOURCES})"""
BEHIND = " AND (r.created_at_ms, r.id) > (SELECT created_at_ms, id FROM runs WHERE id = ?)"
IN_ORDER = " ORDER BY r.created_at_ms, r.id LIMIT ?"
MAY_GO = f"SELECT r.workflow, coalesce(r.root_id, r.id) FROM runs AS r WHERE r.id = ? AND {_MAY_GO}"
# Everything that is a run's own. Rows that only mention a run (fires of a schedule, deliveries) live by other rules.
DELETE_OWN = tuple(
    f"DELETE FROM {table} WHERE run_id = ?"
    for table in ("events", "waits", "inbox", "signals", "notifications", "checkpoints", "blob_refs")
)
DELETE_OWN_CACHE = "DELETE FROM cache WHERE workflow = ? AND run_id = ? AND scope = 'run'"
DELETE_RUN = "DELETE FROM runs WHERE id = ?"
DELETE_FAMILY = """
DELETE FROM families WHERE root_id = ?1 AND open = 0 AND NOT EXISTS (SELECT 1 FROM runs WHERE id = ?1)"""
# What a run is still to be moved to stands in its inbox.
_MOVES = """
SELECT json_extract(CAST(fact AS TEXT), '$.plan') FROM inbox
 WHERE instr(fact, '"migrate"') AND json_extract(CAST(fact AS TEXT), '$.plan') IS NOT NULL"""
_ORPHAN_PLAN = f"NOT EXISTS (SELECT 1 FROM runs WHERE plan_hash = plans.hash) AND hash NOT IN ({_MOVES})"
_ORPHAN_DOCUMENT = "NOT EXISTS (SELECT 1 FROM runs WHERE document_hash = documents.hash)"
_ORPHAN_BLOB = "NOT EXISTS (SELECT 1 FROM blob_refs WHERE blob_refs.hash = blobs.hash)"
_ORPHAN_VERSION = (
    "NOT EXISTS (SELECT 1 FROM active_versions WHERE workflow = workflows.name)"
    " AND NOT EXISTS (SELECT 1 FROM runs WHERE workflow = workflows.name)"
)
# In the order of the fields of Orphans; the column is what they are found by.
_ORPHANS = (
    ("plans", "hash", _ORPHAN_PLAN),
    ("documents", "hash", _ORPHAN_DOCUMENT),
    ("blobs", "hash", _ORPHAN_BLOB),
    ("workflows", "name", _ORPHAN_VERSION),
)
FIND_ORPHANS = tuple(f"SELECT DISTINCT {key} FROM {table} WHERE {orphan} LIMIT ?" for table, key, orphan in _ORPHANS)
DELETE_ORPHANS = tuple(
    f"DELETE FROM {table} WHERE {key} IN (SELECT value FROM json_each(?)) AND {orphan}"
    for table, key, orphan in _ORPHANS
)
COUNT_ORPHANS = "SELECT " + ", ".join(f"(SELECT count(*) FROM {table} WHERE {orphan})" for table, _, orphan in _ORPHANS)


async def find_removable(
    readers: Readers, ended_before_ms: int, keep: int = 0, limit: int = 100, after: str | None = None
) -> list[Removable]:
    query = FIND_REMOVABLE
    values: list[int | str] = [ended_before_ms, ended_before_ms]
    if keep:
        query += _NOT_NEWEST
        values.append(keep - 1)
    if after is not None:
        query += BEHIND
        values.append(after)
    rows = await readers.all(query + IN_ORDER, (*values, limit))
    return [Removable(*row) for row in rows]


def delete_runs(tx: Tx, run_ids: Sequence[str]) -> list[str]:
    gone = []
    sources = {source for (source,) in tx.db.execute(SOURCES)} | _sources_of_this_group(tx)
    for run in run_ids:
        found = tx.db.execute(MAY_GO, (run,)).fetchall()
        if not found or run in sources:
            continue
        for statement in DELETE_OWN:
            tx.db.execute(statement, (run,))
        ((workflow, root),) = found
        tx.db.execute(DELETE_OWN_CACHE, (workflow, run))
        tx.db.execute(DELETE_RUN, (run,))
        tx.db.execute(DELETE_FAMILY, (root,))
        gone.append(run)
    return gone


def _sources_of_this_group(tx: Tx) -> set[str]:
    """As SOURCES, of the runs created just now: their first events are in the table only when the group ends."""
    first = (data for _, seq, *_, data, _, _ in tx.events if seq == 1 and data is not None and b'"source_run"' in data)
    return {source for data in first if (source := orjson.loads(data).get("source_run")) is not None}


async def find_orphans(readers: Readers, limit: int) -> tuple[str, ...]:
    """Keys of what may go, as one JSON list for each statement of DELETE_ORPHANS."""
    found = []
    for query in FIND_ORPHANS:
        keys = [key for (key,) in await readers.all(query, (limit,))]
        found.append(msgspec.json.encode(keys).decode())
    return tuple(found)


def delete_orphans(tx: Tx, found: tuple[str, ...]) -> Orphans:
    """`found` by `find_orphans`. Each is looked at again: a run may refer to it by now."""
    pairs = zip(DELETE_ORPHANS, found, strict=True)
    return Orphans(*(tx.db.execute(statement, (keys,)).rowcount for statement, keys in pairs))


async def count_orphans(readers: Readers) -> Orphans:
    row = await readers.one(COUNT_ORPHANS)
    return Orphans() if row is None else Orphans(*row)
