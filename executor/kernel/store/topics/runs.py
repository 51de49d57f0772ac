"""Runs: how they are created, found and counted."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from executor.errors import NotFound
from executor.kernel.store.batches import batches_of
from executor.kernel.store.formats import needed
from executor.kernel.store.run_rows import Move, NewRun, RunRow, blobs_of, new_row
from executor.kernel.store.statements import (
    Batch,
    Readers,
    RunStatus,
    Tx,
    as_list,
    columns,
    lock_run,
)
from executor.kernel.store.topics.contents import (
    HELD_BY_RUN,
    IS_OF_A_FILE,
    add_blob,
    add_blob_ref,
    add_document,
    files_in,
    hold_from_the_start,
    put_plan,
    use_document,
)
from executor.kernel.store.topics.families import add_to_family, reopen_family, root_of
from executor.kernel.store.topics.inbox import SIGNALS_UNCONSUMED, SignalRow, add_signals
from executor.kernel.store.topics.waits import add_waits

RUN = columns(RunRow).partition(", former_owner")[0]  # what follows is set by a claim
LAST_SEQS = "SELECT id, seq FROM runs WHERE id IN $texts(:ids)"
RUN_BY_IDEMPOTENCY_KEY = f"SELECT {RUN} FROM runs WHERE workflow = :workflow AND idempotency_key = :key"
RUNS_BY_KEY = f"""
SELECT {RUN} FROM runs WHERE workflow = :workflow AND idempotency_key >= :first AND idempotency_key <= :last
 ORDER BY idempotency_key DESC LIMIT :limit"""
# `kept_workflow`: its active version stays until this is committed, so that a deletion of the workflow, which counts
# its open runs, counts this one.
# No row: there is a run with this idempotency key. `status` and what follows: of a run that ends as it begins.
ADD_DETAILS = """
INSERT INTO run_details (id, workflow, version, plan_hash, document_hash, idempotency_key, request_hash, parent_run_id,
                         parent_key, root_id, source_run_id, draft_id, draft_rev, started_by, created_at_ms, input,
                         status, seq, epoch, started_at_ms, finished_at_ms, output, error)
VALUES (:id, $kept_workflow(:workflow), :version, :plan_hash, :document_hash, :idempotency_key, :request_hash,
        :parent_run_id, :parent_key, :root_id, :source_run_id, :draft_id, :draft_rev, :started_by, :now, :input,
        :status, :seq, :epoch, :started_at, :finished_at, :output, :error)
ON CONFLICT (workflow, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING RETURNING n"""
ADD_HEAD = """
INSERT INTO heads (n, id, status, seq, epoch, stalls, due_ms, owner, started_at_ms,
                   pool, priority, fair, ready, limits, rates, needs)
VALUES (:n, :id, :status, :seq, :epoch, 0, :due, :owner, :started_at,
        :pool, :priority, :fair, :ready, :limits, :rates, :needs)"""
# Children have no idempotency key and no owner, and there are many.
ADD_DETAILS_OF_CHILD = """
INSERT INTO run_details (id, workflow, version, plan_hash, document_hash, idempotency_key, request_hash, parent_run_id,
                         parent_key, root_id, source_run_id, draft_id, draft_rev, created_at_ms, input)
VALUES (:id, $kept_workflow(:workflow), :version, :plan_hash, :document_hash, :idempotency_key, :request_hash,
        :parent_run_id, :parent_key, :root_id, :source_run_id, :draft_id, :draft_rev, :now, :input)"""
ADD_HEAD_OF_CHILD = """
INSERT INTO heads (n, id, status, seq, epoch, stalls, due_ms, pool, priority, fair, ready, limits, rates, needs)
VALUES ((SELECT n FROM run_details WHERE id = :id), :id, 'queued', 1, 0, 0, :due,
        :pool, :priority, :fair, :ready, :limits, :rates, :needs)"""
MOVE_RUN = "UPDATE run_details SET plan_hash = :plan, version = :version WHERE id = :id"
OUTPUT_BYTES = f"""
SELECT (SELECT coalesce(sum(output_bytes), 0) FROM batches WHERE n = $number_of(:id))
     + (SELECT coalesce(sum(length(bytes)), 0) FROM blob_refs JOIN blobs USING (hash)
         WHERE run_id = :id AND NOT {IS_OF_A_FILE})"""
DETAILS = (
    *("id", "workflow", "version", "plan_hash", "input", "idempotency_key", "request_hash", "parent_run_id"),
    *("parent_key", "document_hash", "draft_id", "draft_rev", "source_run_id", "started_by"),
)


_details_of = attrgetter(*DETAILS)


class End(NamedTuple):
    """The columns of `run_details` that a run has from its end on."""

    status: RunStatus
    seq: int
    epoch: int
    started_at: int
    finished_at: int
    output: bytes | None
    error: bytes | None


_OPEN = dict.fromkeys(End._fields)


async def get_run(readers: Readers, run_id: str) -> RunRow | None:
    return await readers.fetch_one(RunRow, f"SELECT {RUN} FROM runs WHERE id = :id", {"id": run_id})


async def runs_by_key(readers: Readers, workflow: str, first: str, last: str, limit: int) -> list[RunRow]:
    """Return the last runs whose idempotency key is from `first` to `last`, by that key backwards."""
    values = {"workflow": workflow, "first": first, "last": last, "limit": limit}
    return await readers.fetch(RunRow, RUNS_BY_KEY, values)


async def last_seqs(readers: Readers, run_ids: Sequence[str]) -> dict[str, int]:
    """Return the last seq of each; runs that do not exist are left out."""
    return dict(await readers.all(LAST_SEQS, {"ids": as_list(run_ids)}))


async def output_bytes(readers: Readers, run_id: str) -> int:
    return await readers.value(int, OUTPUT_BYTES, {"id": run_id}) or 0


def create_run(tx: Tx, run: NewRun) -> tuple[RunRow, bool]:
    """Store plan, document, run (status queued, next_run_at = now) and records in one transaction. With an
    idempotency key already used for this workflow the stored run is returned and the second value is False."""
    return make_run(tx, run)


def make_run(tx: Tx, run: NewRun, owner: str | None = None, end: End | None = None) -> tuple[RunRow, bool]:
    """Create a run: with an `owner`, whose lease the caller holds, or with its `end`, for which it needs no owner."""
    first = _first_run(tx, run)
    if first is not None:
        return first, False
    check_sources(tx, run.sources)
    root = None if run.parent_run_id is None else root_of(tx, run.parent_run_id)
    if not _add_run(tx, run, root, owner, end):
        first = _first_run(tx, run)  # another process has made it meanwhile
        assert first is not None, "a run with this key was there just now"
        return first, False
    if root is not None:
        add_to_family(tx, root, 1)
    put_plan(tx, run.plan_hash, run.plan, run.now_ms)
    return new_row(run, root), True


def create_next(tx: Tx, run: NewRun, before: str, priority: int) -> None:
    """Part of the append that ends the run before. Signals that it has not received, and their files, go on."""
    assert run.idempotency_key is None and run.parent_run_id is None and not run.sources
    left = tx.fetch(SignalRow, SIGNALS_UNCONSUMED, {"run": before})
    if left:
        signals = tuple(replace(signal, run_id=run.id, seq=n) for n, signal in enumerate(left, 1))
        named = as_list(files_in(b"\n".join(signal.payload for signal in left)))
        held = [hash for (hash,) in tx.rows(HELD_BY_RUN, {"run": before, "ids": named})]
        run = replace(run, signals=signals, files=(*run.files, *held))
    make_run(tx, replace(run, placement=replace(run.placement, priority=priority)))


def _first_run(tx: Tx, run: NewRun) -> RunRow | None:
    if run.idempotency_key is None:
        return None
    key = {"workflow": run.workflow, "key": run.idempotency_key}
    return tx.fetch_one(RunRow, RUN_BY_IDEMPOTENCY_KEY, key)


def create_children(tx: Tx, parent: str, children: Sequence[NewRun], reopens_family: bool) -> None:
    """Part of an append of run `parent`. What they have in common is written once: there may be hundreds."""
    root = root_of(tx, parent)
    add_to_family(tx, root, len(children))
    if reopens_family:
        reopen_family(tx, root)
    for plan in {child.plan_hash: child for child in children}.values():
        put_plan(tx, plan.plan_hash, plan.plan, plan.now_ms)
    for document in {child.document_hash: child for child in children if child.document_hash is not None}.values():
        _keep_document(tx, document)
    batches: list[tuple[str, Batch]] = []
    for child in children:
        assert child.parent_run_id == parent and child.idempotency_key is None
        assert not (child.sources or child.waits or child.signals or child.blobs)
        (batch,) = batches_of(child.id, 0, child.records)
        assert batch.seq == 1, "a child begins with its beginning"
        batches.append((child.id, batch))
    tx.add_rows(ADD_DETAILS_OF_CHILD, [details(child, root) for child in children])
    tx.add_rows(ADD_HEAD_OF_CHILD, [{"id": child.id, "due": child.now_ms, **placed(child)} for child in children])
    tx.begin_journals(batches)
    for child in children:
        if child.files:
            hold_from_the_start(tx, child.id, child.files, (), child.now_ms)


def _add_run(tx: Tx, run: NewRun, root: str | None, owner: str | None, end: End | None) -> bool:
    """Add a run. Returns False, with nothing written, if its idempotency key was used before."""
    added = tx.rows(ADD_DETAILS, {**details(run, root), **(_OPEN if end is None else end._asdict())})
    if not added:
        return False
    number = added[0][0]
    if end is None:
        _add_head(tx, number, run, owner)
    _keep_document(tx, run)
    tx.add_batches(run.id, number, batches_of(run.id, 0, run.records))
    if run.waits:
        add_waits(tx, run.waits)
    if run.signals:
        add_signals(tx, run.signals)
    for blob in run.blobs:
        add_blob(tx, *blob, run.now_ms)
    for hash in sorted(blobs_of(run.records)):  # its first records may be copies of another run's
        add_blob_ref(tx, run.id, hash)
    if run.sources or run.files:
        hold_from_the_start(tx, run.id, run.files, run.sources, run.now_ms)
    return True


def _add_head(tx: Tx, number: int, run: NewRun, owner: str | None) -> None:
    due_ms = run.now_ms if run.due_ms is None else run.due_ms
    head = {
        "n": number,
        "id": run.id,
        "status": "queued" if owner is None else "running",
        "seq": len(run.records),
        "epoch": int(owner is not None),
        "due": due_ms,
        "owner": owner,
        "started_at": None if owner is None else run.now_ms,
    }
    tx.do(ADD_HEAD, {**head, **placed(run, ready=owner is None and due_ms <= run.now_ms)})


def details(run: NewRun, root: str | None) -> dict[str, Any]:
    return {**dict(zip(DETAILS, _details_of(run), strict=True)), "root_id": root, "now": run.now_ms}


def placed(run: NewRun, *, ready: bool = True) -> dict[str, Any]:
    """The values of a row of `heads` that decide when a claim finds it."""
    placement = run.placement
    return {
        "pool": placement.pool,
        "priority": placement.priority,
        "fair": placement.fair or run.workflow,
        "ready": int(ready),
        "limits": _json(placement.limits),
        "rates": _json(placement.rates),
        "needs": needed(run.records),
    }


def _json(pairs: Sequence[tuple[str, float]]) -> str | None:
    return msgspec.json.encode(pairs).decode() if pairs else None


def _keep_document(tx: Tx, run: NewRun) -> None:
    if run.document is not None:
        assert run.document_hash is not None
        add_document(tx, run.document_hash, run.document, run.now_ms)
    elif run.document_hash is not None:
        use_document(tx, run.document_hash, run.now_ms)


def check_sources(tx: Tx, runs: tuple[str, ...]) -> None:
    """Part of creating a run, before anything is written. Raises NotFound."""
    for run in sorted(runs):
        if not lock_run(tx, run):
            raise NotFound(f"run '{run}' no longer exists", code="run_not_found")


def move_run(tx: Tx, run: str, move: Move | None, now_ms: int) -> None:
    if move is not None:
        put_plan(tx, move.plan_hash, move.plan, now_ms)
        tx.do(MOVE_RUN, {"id": run, "plan": move.plan_hash, "version": move.version})
