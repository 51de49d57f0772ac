"""Runs: how they are created, found and counted."""

# ruff: noqa: S608  (the pieces put together here are constants of this package, never values)

from __future__ import annotations

from collections.abc import Sequence

from executor.errors import NotFound
from executor.store.rows import COUNT_MAX, TERMINAL, Move, NewRun, RunRow
from executor.store.rules import blobs_of, new_row
from executor.store.sqlite.batches import ADD_BATCH, Batch, batches_of
from executor.store.sqlite.connection import Tx
from executor.store.sqlite.contents import add_blob, add_blob_ref, add_document, put_plan, use_document
from executor.store.sqlite.families import add_to_family, root_of
from executor.store.sqlite.inbox import add_signals
from executor.store.sqlite.readers import Readers
from executor.store.sqlite.statements import any_of, as_list, take_run, those_of
from executor.store.sqlite.waits import add_waits

RUN = (
    "id, workflow, version, plan_hash, status, input, output, error, seq, epoch, lease_owner, lease_until_ms,"
    " next_run_at_ms, idempotency_key, request_hash, parent_run_id, parent_key, created_at_ms,"
    " started_at_ms, finished_at_ms, stalls, document_hash, draft_id, draft_rev, root_id"
)
LAST_SEQS = f"SELECT id, seq FROM runs WHERE id IN {any_of(':ids')}"
RUN_BY_ID = f"SELECT {RUN} FROM runs WHERE id = :id"
RUN_BY_IDEMPOTENCY_KEY = f"SELECT {RUN} FROM runs WHERE workflow = :workflow AND idempotency_key = :key"
# No row: there is a run with this idempotency key.
ADD_DETAILS = """
INSERT INTO run_details (id, workflow, version, plan_hash, document_hash, idempotency_key, request_hash, parent_run_id,
                         parent_key, root_id, source_run_id, draft_id, draft_rev, created_at_ms, input)
VALUES (:id, :workflow, :version, :plan_hash, :document_hash, :idempotency_key, :request_hash, :parent_run_id,
        :parent_key, :root_id, :source_run_id, :draft_id, :draft_rev, :now, :input)
ON CONFLICT (workflow, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING RETURNING n"""
ADD_HEAD = """
INSERT INTO heads (n, id, status, seq, epoch, stalls, due_ms) VALUES (:n, :id, 'queued', :seq, 0, 0, :now)"""
MOVE_RUN = "UPDATE run_details SET plan_hash = :plan, version = :version WHERE id = :id"
# A page of runs, newest first. The numbers of those that are wanted are found in the details, or by their heads, with
# any of the conditions and RUNS_PAGE; then they are read.
RUNS = "SELECT d.n FROM run_details AS d WHERE true"
RUNS_UNDER_WAY = """
SELECT d.n FROM heads AS h CROSS JOIN run_details AS d ON d.n = h.n WHERE h.status = :status"""
RUNS_OF_STATUS = " AND d.status = :status"
RUNS_OF_WORKFLOW = " AND d.workflow = :workflow"
RUNS_OF_DRAFT = " AND d.draft_id = :draft"
RUNS_OF_PARENT = " AND d.parent_run_id = :parent"
RUNS_BEFORE = " AND (d.created_at_ms, d.id) < (SELECT created_at_ms, id FROM run_details WHERE id = :before)"
RUNS_PAGE = " ORDER BY d.created_at_ms DESC, d.id DESC LIMIT :limit"
# Their inputs: INPUTS, then any of the conditions, then RUNS_PAGE.
INPUTS = "SELECT d.input FROM run_details AS d WHERE length(d.input) <= :bytes_max"
# By status, none counted further than COUNT_MAX: of each status that ended runs have COUNT_ENDED with any of the
# conditions and COUNT_TO_MAX, and COUNT_OPEN with the same. Open runs are few.
ENDS = sorted(TERMINAL)
COUNT_ENDED = "SELECT '{status}', count(*) FROM (SELECT 1 FROM run_details AS d WHERE d.status = '{status}'"
COUNT_TO_MAX = f" LIMIT {COUNT_MAX}) AS counted"
COUNT_OPEN = "SELECT h.status, count(*) FROM heads AS h"
OF_DETAILS = " CROSS JOIN run_details AS d ON d.n = h.n WHERE true"
BY_STATUS_OF_HEAD = " GROUP BY h.status"
# The runs of a draft: its index has the status of those that have ended.
COUNT_ENDED_OF_DRAFT = f"""
SELECT status, count(*)
  FROM (SELECT status FROM run_details WHERE draft_id = :draft AND status IS NOT NULL LIMIT {COUNT_MAX}) AS counted
 GROUP BY status"""
OUTPUT_BYTES = """
SELECT (SELECT coalesce(sum(length(output)), 0) FROM old_events WHERE run_id = :id)
     + (SELECT coalesce(sum(output_bytes), 0) FROM batches WHERE n = (SELECT n FROM run_details WHERE id = :id))
     + (SELECT coalesce(sum(length(bytes)), 0) FROM blob_refs JOIN blobs USING (hash) WHERE run_id = :id)"""


async def get_run(readers: Readers, run_id: str) -> RunRow | None:
    row = await readers.one(RUN_BY_ID, {"id": run_id})
    return None if row is None else RunRow(*row)


async def last_seqs(readers: Readers, run_ids: Sequence[str]) -> dict[str, int]:
    return dict(await readers.all(LAST_SEQS, {"ids": as_list(run_ids)}))


async def list_runs(
    readers: Readers,
    workflow: str | None = None,
    status: str | None = None,
    before: str | None = None,
    limit: int = 50,
    draft: str | None = None,
    *,
    parent: str | None = None,
) -> list[RunRow]:
    under_way = status is not None and status not in TERMINAL
    found = (RUNS_UNDER_WAY if under_way else RUNS) + those_of(
        (RUNS_OF_STATUS, None if under_way else status),
        (RUNS_OF_PARENT, parent),
        (RUNS_OF_WORKFLOW, workflow),
        (RUNS_OF_DRAFT, draft),
        (RUNS_BEFORE, before),
    )
    query = f"SELECT {RUN} FROM runs AS d WHERE n IN ({found}{RUNS_PAGE}) ORDER BY d.created_at_ms DESC, d.id DESC"
    values = {"status": status, "parent": parent, "workflow": workflow, "draft": draft, "before": before}
    return [RunRow(*row) for row in await readers.all(query, {**values, "limit": limit})]


async def count_runs(readers: Readers, workflow: str | None = None, draft: str | None = None) -> dict[str, int]:
    where = those_of((RUNS_OF_WORKFLOW, workflow), (RUNS_OF_DRAFT, draft))
    parts = [COUNT_OPEN + (OF_DETAILS + where if where else "") + BY_STATUS_OF_HEAD]
    if draft is not None and workflow is None:
        parts.append(COUNT_ENDED_OF_DRAFT)
    else:
        parts += [COUNT_ENDED.format(status=status) + where + COUNT_TO_MAX for status in ENDS]
    counts = await readers.all(" UNION ALL ".join(parts), {"workflow": workflow, "draft": draft})
    return {status: min(count, COUNT_MAX) for status, count in counts if count}


async def list_inputs(
    readers: Readers, workflow: str | None = None, draft: str | None = None, bytes_max: int = 65_536, limit: int = 100
) -> list[bytes]:
    query = INPUTS + those_of((RUNS_OF_WORKFLOW, workflow), (RUNS_OF_DRAFT, draft)) + RUNS_PAGE
    values = {"workflow": workflow, "draft": draft, "bytes_max": bytes_max, "limit": limit}
    return [bytes(input) for (input,) in await readers.all(query, values)]


async def output_bytes(readers: Readers, run_id: str) -> int:
    row = await readers.one(OUTPUT_BYTES, {"id": run_id})
    return 0 if row is None else int(row[0])


def create_run(tx: Tx, run: NewRun) -> tuple[RunRow, bool]:
    first = _first_run(tx, run)
    if first is not None:
        return first, False
    check_sources(tx, run.sources)
    root = None if run.parent_run_id is None else root_of(tx, run.parent_run_id)
    if not _add_run(tx, run, root):
        first = _first_run(tx, run)  # another process has made it meanwhile
        assert first is not None, "a run with this key was there just now"
        return first, False
    if root is not None:
        add_to_family(tx, root, 1)
    put_plan(tx, run.plan_hash, run.plan, run.now_ms)
    return new_row(run, root), True


def _first_run(tx: Tx, run: NewRun) -> RunRow | None:
    """With the same idempotency key."""
    if run.idempotency_key is None:
        return None
    key = {"workflow": run.workflow, "key": run.idempotency_key}
    found = tx.db.execute(RUN_BY_IDEMPOTENCY_KEY, key).fetchall()
    return RunRow(*found[0]) if found else None


def create_children(tx: Tx, parent: str, children: Sequence[NewRun]) -> None:
    """Part of an append of run `parent`. What they have in common is written once: there may be hundreds."""
    root = root_of(tx, parent)
    add_to_family(tx, root, len(children))
    for plan in {child.plan_hash: child for child in children}.values():
        put_plan(tx, plan.plan_hash, plan.plan, plan.now_ms)
    for child in children:
        assert child.parent_run_id == parent and child.idempotency_key is None and not child.sources
        _add_run(tx, child, root)


def _add_run(tx: Tx, run: NewRun, root: str | None) -> bool:
    """False, and nothing was written: its idempotency key was used before."""
    added = tx.db.execute(
        ADD_DETAILS,
        {
            "id": run.id,
            "workflow": run.workflow,
            "version": run.version,
            "plan_hash": run.plan_hash,
            "input": run.input,
            "now": run.now_ms,
            "idempotency_key": run.idempotency_key,
            "request_hash": run.request_hash,
            "parent_run_id": run.parent_run_id,
            "parent_key": run.parent_key,
            "document_hash": run.document_hash,
            "draft_id": run.draft_id,
            "draft_rev": run.draft_rev,
            "root_id": root,
            "source_run_id": run.source_run_id,
        },
    ).fetchall()
    if not added:
        return False
    number = added[0][0]
    tx.db.execute(ADD_HEAD, {"n": number, "id": run.id, "seq": len(run.records), "now": run.now_ms})
    if run.document is not None:
        assert run.document_hash is not None
        add_document(tx, run.document_hash, run.document, run.now_ms)
    elif run.document_hash is not None:
        use_document(tx, run.document_hash, run.now_ms)
    add_batches(tx, run.id, number, batches_of(run.id, 0, run.records))
    add_waits(tx, run.waits)
    add_signals(tx, run.signals)
    for blob in run.blobs:
        add_blob(tx, *blob, run.now_ms)
    for hash in sorted(blobs_of(run.records)):  # its first records may be copies of another run's
        add_blob_ref(tx, run.id, hash)
    return True


def add_batches(tx: Tx, run: str, number: int | None, batches: Sequence[Batch]) -> None:
    """Part of creating a run, and of an append, behind its fence."""
    for batch in batches:
        tx.db.execute(ADD_BATCH, (*batch, number))
    tx.note(run, batches)


def check_sources(tx: Tx, runs: tuple[str, ...]) -> None:
    """Part of creating a run, before anything is written. Raises NotFound."""
    for run in sorted(runs):
        if not take_run(tx, run):
            raise NotFound(f"run '{run}' no longer exists", code="run_not_found")


def move_run(tx: Tx, run: str, move: Move | None, now_ms: int) -> None:
    """Part of an append."""
    if move is not None:
        put_plan(tx, move.plan_hash, move.plan, now_ms)
        tx.db.execute(MOVE_RUN, {"id": run, "plan": move.plan_hash, "version": move.version})
