"""Deletion of runs that have ended, and of contents and versions that no run refers to; notes of upkeep."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct

from executor.kernel.store.statements import ENDED, OPEN, Readers, Row, Tx, as_list, lock_run, those_of
from executor.kernel.store.topics.usage import FOLD_USAGE


class Removable(Struct, frozen=True):
    """A run that may be deleted. `seq` is the number of its events: what deleting it costs."""

    id: str
    workflow: str
    seq: int
    finished_at_ms: int


class Orphans(Struct, frozen=True):
    plans: int = 0
    documents: int = 0
    blobs: int = 0
    versions: int = 0

    @property
    def total(self) -> int:
        return self.plans + self.documents + self.blobs + self.versions


class Retired(Struct, frozen=True):
    """The counts of what was dropped with parts of the journals, and of these parts."""

    runs: int = 0
    events: int = 0
    parts: int = 0


class KeptRun(Struct, frozen=True):
    """A run that is kept as a test."""

    run: str
    workflow: str
    at_ms: int
    note: bytes


# The note of upkeep by which a run is kept: it is deleted by no age and no number.
KEPT = "EXISTS (SELECT 1 FROM upkeep AS k WHERE k.name = 'kept:' || r.id)"
KEEP = f"""
INSERT INTO upkeep (name, updated_at_ms, data)
SELECT 'kept:' || id, :now, :note FROM run_details WHERE id = :id AND {ENDED}
ON CONFLICT (name) DO UPDATE SET data = excluded.data"""
FIND_KEPT = """
SELECT r.id, r.workflow, k.updated_at_ms, k.data FROM upkeep AS k JOIN run_details AS r ON k.name = 'kept:' || r.id
 WHERE k.name LIKE 'kept:%'"""
_MAY_GO = f"""
 r.{ENDED} AND NOT {KEPT}
   AND NOT EXISTS (SELECT 1 FROM run_details AS child WHERE child.parent_run_id = r.id AND child.{OPEN})
   AND (r.parent_run_id IS NULL OR NOT EXISTS (SELECT 1 FROM run_details AS parent WHERE parent.id = r.parent_run_id))
   AND NOT EXISTS (SELECT 1 FROM run_details AS reader WHERE reader.source_run_id = r.id AND reader.{OPEN})"""
# Older than the newest so many of its workflow. Fewer than that: the comparison is with NULL, none of them goes.
_NOT_NEWEST = f"""
   AND (r.parent_run_id IS NOT NULL OR (r.created_at_ms, r.id) < (
       SELECT k.created_at_ms, k.id FROM run_details AS k
        WHERE k.workflow = r.workflow AND k.{ENDED} AND k.parent_run_id IS NULL
        ORDER BY k.created_at_ms DESC, k.id DESC LIMIT 1 OFFSET :keep - 1))"""
# No run ends before it was created, so the index by creation time has the oldest at its beginning.
FIND_REMOVABLE = f"""
SELECT r.id, r.workflow, r.seq, r.finished_at_ms FROM run_details AS r $index(runs_by_time)
 WHERE r.created_at_ms < :before AND r.finished_at_ms < :before AND {_MAY_GO}"""
OF_WORKFLOW = " AND r.workflow = :workflow"
BUT_NOT_OF = " AND r.workflow NOT IN $texts(:but_not)"
BEHIND = " AND (r.created_at_ms, r.id) > (SELECT created_at_ms, id FROM run_details WHERE id = :after)"
IN_ORDER = " ORDER BY r.created_at_ms, r.id LIMIT :limit"
GONE = "n, id, workflow, coalesce(root_id, id)"  # of a run that was deleted
# First of all, as everything that refers to the run begins with its row (`kernel.store.topics`).
DELETE_RUN = f"DELETE FROM run_details AS r WHERE r.id = :id AND {_MAY_GO} RETURNING {GONE}"
# Everything that is a run's own, but for its journal; `of_gone` has the values. Rows that only mention a run
# (fires of a schedule, deliveries) live by other rules.
OWN = ("waits", "inbox", "signals", "notifications", "checkpoints", "blob_refs", "alerts", "alert_messages")
DELETE_OWN = (
    "DELETE FROM snapshots WHERE n $is_any(:numbers)",
    *(f"DELETE FROM {table} WHERE run_id IN $texts(:ids)" for table in OWN),
    FOLD_USAGE,
    "DELETE FROM usage WHERE run_id IN $texts(:ids)",
    "DELETE FROM cache WHERE workflow IN $texts(:workflows) AND run_id IN $texts(:ids) AND scope = 'run'",
    "DELETE FROM families WHERE root_id IN $texts(:roots) AND open = 0"
    " AND NOT EXISTS (SELECT 1 FROM run_details WHERE id = families.root_id)",
)
_ORPHAN_PLAN = """used_at_ms < :unused_since AND NOT EXISTS (SELECT 1 FROM run_details WHERE plan_hash = plans.hash)
   AND NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.plan_hash = plans.hash)"""
_ORPHAN_DOCUMENT = """used_at_ms < :unused_since
   AND NOT EXISTS (SELECT 1 FROM run_details WHERE document_hash = documents.hash)"""
_ORPHAN_BLOB = """used_at_ms < :unused_since
   AND NOT EXISTS (SELECT 1 FROM blob_refs WHERE blob_refs.hash = blobs.hash)"""
_ORPHAN_VERSION = (
    "NOT EXISTS (SELECT 1 FROM active_versions WHERE workflow = workflows.name)"
    " AND NOT EXISTS (SELECT 1 FROM run_details WHERE workflow = workflows.name)"
)
# In the order of the fields of Orphans; the column is what they are found by.
_ORPHANS = (
    ("plans", "hash", _ORPHAN_PLAN),
    ("documents", "hash", _ORPHAN_DOCUMENT),
    ("blobs", "hash", _ORPHAN_BLOB),
    ("workflows", "name", _ORPHAN_VERSION),
)
# Parts of files are large (executor.kernel.values.files), and nothing else is written while they are deleted.
BYTES_AT_ONCE: Final = 32 * 1024 * 1024
_SIZE = {"blobs": "length(bytes)"}
FIND_ORPHANS = tuple(
    f"SELECT DISTINCT {key}, {_SIZE.get(table, 0)} FROM {table} WHERE {orphan} LIMIT :limit"
    for table, key, orphan in _ORPHANS
)
DELETE_ORPHANS = tuple(
    f"DELETE FROM {table} WHERE {key} IN $texts(:keys) AND {orphan}" for table, key, orphan in _ORPHANS
)
# Versions have no time of their last use: taken first, they are looked at when nothing else can change them.
TAKE_VERSIONS = "UPDATE workflows SET hash = hash WHERE name IN $texts(:keys)"
COUNT_ORPHANS = "SELECT " + ", ".join(f"(SELECT count(*) FROM {table} WHERE {orphan})" for table, _, orphan in _ORPHANS)

NOTE = "SELECT data FROM upkeep WHERE name = :name"
PUT_NOTE = """
INSERT INTO upkeep (name, updated_at_ms, data) VALUES (:name, :now, :data)
ON CONFLICT (name) DO UPDATE SET updated_at_ms = excluded.updated_at_ms, data = excluded.data"""


async def upkeep_note(readers: Readers, name: str) -> bytes | None:
    return await readers.value(bytes, NOTE, {"name": name})


def put_upkeep_note(tx: Tx, name: str, data: bytes, now_ms: int) -> None:
    tx.run(PUT_NOTE, {"name": name, "data": data, "now": now_ms})


def keep_run(tx: Tx, run: str, note: bytes, now_ms: int) -> bool:
    """Keep a run that has ended, or change its note. Returns False if it has not ended, or is not there."""
    lock_run(tx, run)  # else a deletion under way leaves the note of a run that is gone
    return tx.run(KEEP, {"id": run, "note": note, "now": now_ms}) == 1


def drop_kept_run(tx: Tx, run: str) -> bool:
    """Returns False if the run was not kept."""
    return tx.run("DELETE FROM upkeep WHERE name = :name", {"name": f"kept:{run}"}) == 1


async def kept_runs(readers: Readers, workflow: str | None, limit: int) -> list[KeptRun]:
    """Return the kept runs of a workflow, or of all: the one that was kept last comes first."""
    of = those_of((" AND r.workflow = :workflow", workflow))
    query = f"{FIND_KEPT}{of} ORDER BY k.updated_at_ms DESC, r.id DESC LIMIT :limit"
    return await readers.fetch(KeptRun, query, {"workflow": workflow, "limit": limit})


async def find_removable(
    readers: Readers,
    ended_before_ms: int,
    keep: int = 0,
    limit: int = 100,
    after: str | None = None,
    workflow: str | None = None,
    but_not: Sequence[str] = (),
) -> list[Removable]:
    """Oldest first (created_at, id): runs that ended before this time and may be deleted. `keep`: except so
    many of each workflow, the newest that have ended; children follow their parent and are not counted. `after`: a
    run id, what was created up to it is left out. `workflow`: only its runs; `but_not`: all but those of these."""
    which = (OF_WORKFLOW if workflow is not None else "") + (BUT_NOT_OF if but_not else "")
    query = FIND_REMOVABLE + which + (_NOT_NEWEST if keep else "") + (BEHIND if after is not None else "") + IN_ORDER
    values = {"before": ended_before_ms, "keep": keep, "after": after, "limit": limit}
    values |= {"workflow": workflow, "but_not": as_list(but_not)}
    return await readers.fetch(Removable, query, values)


def delete_runs(tx: Tx, run_ids: Sequence[str]) -> list[str]:
    """Delete runs in one transaction. Returns the ids of those that could be deleted."""
    gone: list[Row] = []
    for id in run_ids:
        lock_run(tx, id)
        gone += tx.rows(DELETE_RUN, {"id": id})
    if gone:
        values = of_gone(gone)
        for statement in ("DELETE FROM batches WHERE n $is_any(:numbers)", *DELETE_OWN):
            tx.run(statement, values)
    return [id for _, id, *_ in gone]


def of_gone(rows: Sequence[Row]) -> dict[str, str]:
    """Return the values of DELETE_OWN. `rows`: of GONE."""
    names = ("numbers", "ids", "workflows", "roots")
    return {name: as_list(sorted(set(values))) for name, values in zip(names, zip(*rows, strict=True), strict=True)}


async def find_orphans(readers: Readers, unused_since_ms: int, limit: int) -> tuple[str, ...]:
    """Keys of what may go, as one JSON list for each statement of DELETE_ORPHANS."""
    found = []
    for query in FIND_ORPHANS:
        rows = await readers.all(query, {"unused_since": unused_since_ms, "limit": limit})
        upto = accumulate(size for _, size in rows)
        found.append(as_list([key for (key, size), sum in zip(rows, upto, strict=True) if sum - size < BYTES_AT_ONCE]))
    return tuple(found)


def delete_orphans(tx: Tx, found: tuple[str, ...], unused_since_ms: int) -> Orphans:
    """Delete what `find_orphans` found. Each is checked again: a run may refer to it by now, or a version be active."""
    tx.run(TAKE_VERSIONS, {"keys": found[-1]})
    counts = []
    for statement, keys in zip(DELETE_ORPHANS, found, strict=True):
        counts.append(tx.run(statement, {"keys": keys, "unused_since": unused_since_ms}))
    tx.done.clear()  # what was there for the runs before may not be for those after
    return Orphans(*counts)


async def count_orphans(readers: Readers, unused_since_ms: int) -> Orphans:
    [counts] = await readers.fetch(Orphans, COUNT_ORPHANS, {"unused_since": unused_since_ms})
    return counts
