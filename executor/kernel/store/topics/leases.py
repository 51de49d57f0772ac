"""Leases of runs: taken when a run is created and begun in one commit, renewed, and released."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from executor.kernel.store.batches import has_only_events, writes_only_itself
from executor.kernel.store.run_rows import (
    Append,
    NewRun,
    RunRow,
)
from executor.kernel.store.statements import HEAD_OF_ID, LAST_SEQ, TERMINAL, RunStatus, Tx, as_list
from executor.kernel.store.topics.journal import append
from executor.kernel.store.topics.limits import free_places
from executor.kernel.store.topics.runs import End, make_run
from executor.kernel.store.topics.snapshots import SnapshotRow, put_snapshot

# The time by which leases are judged: that of the database server, where there is one, else the caller's.
LEASE_NOW = "$lease_now(:now)"
HOLD = f"""
INSERT INTO workers (id, until_ms) VALUES (:owner, {LEASE_NOW} + :lease)
ON CONFLICT (id) DO UPDATE SET until_ms = excluded.until_ms"""
RENEW = f"UPDATE workers SET until_ms = {LEASE_NOW} + :lease WHERE id = :owner"
HELD = "SELECT id FROM heads WHERE owner = :owner"
GIVE_UP = "UPDATE heads SET owner = NULL WHERE id IN $texts(:runs) AND owner = :owner"
FORGET_WORKER = "DELETE FROM workers WHERE id = :owner"
# Only with an empty inbox, so that no answer is lost while the owner goes to sleep. `running`: the process of the owner
# ends, and the run is due at once for the next one.
RELEASE_LEASE = f"""
UPDATE heads SET status = :status, owner = NULL, due_ms = :next_run_at, stalls = 0,
       ready = CASE WHEN :status = 'running' THEN 1 ELSE 0 END
 WHERE {HEAD_OF_ID} AND epoch = :epoch AND {LAST_SEQ} = :seq
   AND (:status = 'running' OR NOT EXISTS (SELECT 1 FROM inbox WHERE run_id = :id))
RETURNING n, limits"""


def hold(tx: Tx, owner: str, now_ms: int, lease_ms: int) -> None:
    """Renew the lease of a worker, on all runs that it has and that this transaction gives it."""
    tx.do(HOLD, {"owner": owner, "now": now_ms, "lease": lease_ms})


def renew(tx: Tx, owner: str, run_ids: Collection[str], now_ms: int, lease_ms: int) -> set[str]:
    """Let the lease of `owner` end `lease_ms` from now. Returns those of `run_ids`, which is read in the transaction,
    that it still owns: the others were claimed by another worker, or have ended. What it owns beside them has no owner
    from now on: it has dropped that, or the answer to its claim was lost. A worker that owns nothing then has no
    lease."""
    renewed = tx.run(RENEW, {"owner": owner, "now": now_ms, "lease": lease_ms})
    held = {run_id for (run_id,) in tx.rows(HELD, {"owner": owner})}
    dropped = {run_id for run_id in held if run_id not in run_ids}
    if dropped:
        tx.run(GIVE_UP, {"owner": owner, "runs": as_list(sorted(dropped))})
    if not held - dropped:
        tx.run(FORGET_WORKER, {"owner": owner})
    elif not renewed:
        hold(tx, owner, now_ms, lease_ms)  # its row was forgotten by a process whose clock is slow
    return held - dropped


def release(
    tx: Tx,
    run_id: str,
    epoch: int,
    seq: int,
    next_run_at_ms: int | None,
    status: RunStatus,
    snapshot: SnapshotRow | None = None,
) -> bool:
    """Release the run. Returns False, with nothing changed, if the epoch or seq moved, or if the run would wait and
    its inbox is not empty. If `next_run_at_ms` is None only a message wakes it. With `running` it continues as soon
    as it is claimed. Sets stalls to 0: the run did not crash the worker that releases it."""
    tx.lock(run_id)  # a message that came meanwhile is seen by what looks for one
    change = {"id": run_id, "epoch": epoch, "seq": seq, "next_run_at": next_run_at_ms, "status": status}
    released = tx.rows(RELEASE_LEASE, change)
    if not released:
        return False
    n, limits = released[0]
    if limits is not None:
        free_places(tx, n)
    if snapshot is not None:
        put_snapshot(tx, run_id, snapshot)
    return True


def begin_run(tx: Tx, run: NewRun, owner: str, lease_ms: int, first: Append) -> tuple[RunRow, bool]:
    """As `create_run`; if the run is new also as `claim` of it by `owner` and `append` of `first`, in the same
    transaction. `first` is of epoch 1, follows the records of `run`, and makes no children. A run that ends in `first`
    needs no lease: that of `owner` may stay as it is. The events of `first` are written with those of `run`."""
    assert (first.run_id, first.epoch, first.expected_seq) == (run.id, 1, len(run.records))
    events = () if first.blobs else first.records
    begun = replace(run, records=(*run.records, *events))
    if ends_at_once(run, first):
        assert first.status is not None
        ended = (first.status, len(begun.records), 1, run.now_ms, first.now_ms, first.output, first.error)
        row, created = make_run(tx, begun, None, End(*ended))
    else:
        row, created = make_run(tx, begun, owner)
        if created:
            hold(tx, owner, run.now_ms, lease_ms)
            if first.blobs or not has_only_events(first):
                append(tx, replace(first, expected_seq=len(begun.records), records=first.records[len(events) :]))
    return (replace(row, seq=len(run.records)) if created else row), created


def ends_at_once(run: NewRun, first: Append) -> bool:
    """Returns True if the run is there, and over, in one commit: it needs neither a head nor a lease."""
    return (
        first.status in TERMINAL and writes_only_itself(first) and not (run.parent_run_id or run.waits or run.signals)
    )
