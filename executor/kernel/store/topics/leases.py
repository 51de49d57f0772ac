"""Leases, and when a run is due.

A lease is the worker's row: one for all runs that it has, renewed by one statement. A run names its owner. It is free
when it has none, or when the lease of its owner has lapsed, by the clock that all processes on the database share
(`LEASE_NOW`). A process that creates or answers a run may execute it too: that, and the claim, are one transaction
(`begin_run`, `answer_and_claim`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

from executor.errors import CorruptJournal
from executor.kernel.store.batches import JOURNAL, records_of
from executor.kernel.store.run_rows import (
    DEFAULT_POOLS,
    RESUMED_EVENTS_MAX,
    RESUMED_OUTPUT_BYTES_MAX,
    Append,
    ClockRepair,
    NewRun,
    Record,
    Resumed,
    RunRow,
    blobs_of,
)
from executor.kernel.store.statements import (
    ENDED,
    HEAD_OF_ID,
    LAST_SEQ,
    TERMINAL,
    RunStatus,
    any_of,
    any_row_of,
    as_list,
    is_any_number_of,
)
from executor.kernel.store.topics.inbox import INBOX, InboxRow
from executor.kernel.store.topics.journal import append, has_only_events, writes_only_itself
from executor.kernel.store.topics.limits import admit, free_places, let_others_in
from executor.kernel.store.topics.queue import FORGET_WORKERS, LEASE_NOW, find_claimable, find_one
from executor.kernel.store.topics.runs import OUTPUT_BYTES, RUN, begin_plain_run, create_ended_run, make_run
from executor.kernel.store.topics.snapshots import SnapshotRow, put_snapshot
from executor.kernel.store.topics.waits import Answered, answer_wait
from executor.kernel.store.tx import Tx

ORPHANED = f"""parent_run_id IS NOT NULL AND EXISTS (
    WITH RECURSIVE above (id, depth) AS (
        SELECT runs.parent_run_id, 1
        UNION ALL
        SELECT r.parent_run_id, depth + 1 FROM above JOIN run_details AS r ON r.id = above.id
         WHERE r.parent_run_id IS NOT NULL AND depth < 100)
    SELECT 1 FROM above JOIN run_details AS r ON r.id = above.id
     WHERE r.{ENDED} OR EXISTS (SELECT 1 FROM heads WHERE heads.n = r.n AND heads.cancel_n IS NOT NULL))"""
CLAIMED = f"SELECT n, {RUN}, lease_owner, 0, {ORPHANED} FROM runs WHERE n {is_any_number_of(':numbers')}"
# How many runs each of these owners has.
COUNT_HELD = f"SELECT owner, count(*) FROM heads WHERE owner IN {any_of(':owners')} GROUP BY owner"
# Those that are as they were when they were found: another process may have been faster.
TAKE_RUNS = f"""
UPDATE heads SET owner = :owner, ready = 0, blocked_by = NULL, epoch = epoch + 1, seq = {LAST_SEQ},
       stalls = CASE WHEN {LAST_SEQ} > seq THEN 1 ELSE stalls + 1 END,
       status = 'running', started_at_ms = coalesce(started_at_ms, :now)
 WHERE n {is_any_number_of(":numbers")}
   AND (n, epoch, {LAST_SEQ}, coalesce(owner, '')) IN {any_row_of(":found", "nnnt")}
   AND due_ms <= :now AND (owner IS NULL OR owner IN (SELECT id FROM workers WHERE until_ms <= {LEASE_NOW}))
RETURNING n, epoch, stalls, started_at_ms, pool, fair"""
TAKE_NEW = f"""
UPDATE heads SET owner = :owner, epoch = 1, stalls = 1, status = 'running', started_at_ms = :now
 WHERE {HEAD_OF_ID}"""
HOLD = f"""
INSERT INTO workers (id, until_ms) VALUES (:owner, {LEASE_NOW} + :lease)
ON CONFLICT (id) DO UPDATE SET until_ms = excluded.until_ms"""
RENEW = f"UPDATE workers SET until_ms = {LEASE_NOW} + :lease WHERE id = :owner"
HELD = "SELECT id FROM heads WHERE owner = :owner"
GIVE_UP = f"UPDATE heads SET owner = NULL WHERE id IN {any_of(':runs')} AND owner = :owner"
FORGET_WORKER = "DELETE FROM workers WHERE id = :owner"
# Only with an empty inbox, so that no answer is lost while the owner goes to sleep. `running`: the process of the owner
# ends, and the run is due at once for the next one.
RELEASE_LEASE = f"""
UPDATE heads SET status = :status, owner = NULL, due_ms = :next_run_at, stalls = 0,
       ready = CASE WHEN :status = 'running' THEN 1 ELSE 0 END
 WHERE {HEAD_OF_ID} AND epoch = :epoch AND {LAST_SEQ} = :seq
   AND (:status = 'running' OR NOT EXISTS (SELECT 1 FROM inbox WHERE run_id = :id))
RETURNING n, limits"""
# A lease or a due time that only a clock set back explains: waiting runs keep theirs, it is the workflow's.
_TOO_LATE = "due_ms > :now AND (status <> 'waiting' OR EXISTS (SELECT 1 FROM inbox WHERE run_id = heads.id))"
_LATEST = f"({LEASE_NOW} + :longest)"
_HELD_TOO_LONG = f"owner IN (SELECT id FROM workers WHERE until_ms > {_LATEST})"
TAKE_OTHER_TIMES = f"UPDATE heads SET seq = seq WHERE {_HELD_TOO_LONG} OR ({_TOO_LATE})"
FIND_OTHER_TIMES = f"""
SELECT count(*), coalesce(max(CASE WHEN held > late THEN held ELSE late END), 0)
  FROM (SELECT coalesce((SELECT until_ms FROM workers WHERE id = owner), 0) - {_LATEST} AS held,
               CASE WHEN {_TOO_LATE} THEN due_ms - :now ELSE 0 END AS late
          FROM heads WHERE {_HELD_TOO_LONG} OR ({_TOO_LATE})) AS wrong"""
REPAIR_CLOCK_SKEW = f"""
UPDATE heads SET due_ms = CASE WHEN due_ms < :now THEN due_ms ELSE :now END,
       owner = CASE WHEN {_HELD_TOO_LONG} THEN NULL ELSE owner END
 WHERE {_HELD_TOO_LONG} OR ({_TOO_LATE})"""
# None that has just claimed a run: without the row of its owner a run would never be free.
FORGET_FUTURE_WORKERS = f"""
DELETE FROM workers WHERE until_ms > {_LATEST} AND NOT EXISTS (SELECT 1 FROM heads WHERE heads.owner = workers.id)"""


def claim(
    tx: Tx,
    owner: str,
    now_ms: int,
    lease_ms: int,
    limit: int = 1,
    run_id: str | None = None,
    pools: Mapping[str, str] = DEFAULT_POOLS,
) -> list[RunRow]:
    if run_id is None:
        let_others_in(tx)
        queued = find_claimable(tx, now_ms, limit, pools)
    else:
        queued = find_one(tx, now_ms, run_id, pools)
    found = admit(tx, queued, now_ms)
    if not found:
        return []
    limited = {run.n for run in queued if run.limits is not None}
    numbers = as_list(found)
    rows = {n: RunRow(*row) for n, *row in tx.rows(CLAIMED, {"numbers": numbers})}
    gone = {row.former_owner for row in rows.values() if row.former_owner is not None}
    held: dict[str | None, int] = {}
    if gone:
        held = dict(tx.rows(COUNT_HELD, {"owners": as_list(sorted(gone))}))
    as_found = as_list([(n, row.epoch, row.seq, row.former_owner or "") for n, row in rows.items()])
    taking = {"owner": owner, "now": now_ms, "numbers": numbers, "found": as_found}
    taken: dict[int, RunRow] = {}
    for n, epoch, stalls, started_at_ms, pool, fair in tx.rows(TAKE_RUNS, taking):
        taken[n] = msgspec.structs.replace(
            rows[n],
            status="running",
            epoch=epoch,
            stalls=stalls,
            started_at_ms=started_at_ms,
            lease_owner=owner,
            lease_until_ms=now_ms + lease_ms,
            lost_together=held.get(rows[n].former_owner, 0) > 1,
            orphaned=bool(rows[n].orphaned),
            pool=pool if run_id is None else "",
            fair=fair if run_id is None else "",
            limited=n in limited,
        )
    for n in limited.intersection(found).difference(taken):
        free_places(tx, n)
    if taken:
        hold(tx, owner, now_ms, lease_ms)
    if gone:
        tx.do(FORGET_WORKERS, {"now": now_ms})
    return [taken[n] for n in found if n in taken]


def claim_new(tx: Tx, owner: str, now_ms: int, lease_ms: int, run_id: str) -> None:
    """`claim` of a run that this transaction has created."""
    tx.do(TAKE_NEW, {"owner": owner, "now": now_ms, "id": run_id})
    hold(tx, owner, now_ms, lease_ms)


def hold(tx: Tx, owner: str, now_ms: int, lease_ms: int) -> None:
    """The lease of a worker, on all runs that it has and that this transaction hands it."""
    tx.do(HOLD, {"owner": owner, "now": now_ms, "lease": lease_ms})


def renew(tx: Tx, owner: str, run_ids: Sequence[str], now_ms: int, lease_ms: int) -> set[str]:
    renewed = tx.run(RENEW, {"owner": owner, "now": now_ms, "lease": lease_ms})
    held = {run_id for (run_id,) in tx.rows(HELD, {"owner": owner})}
    dropped = held.difference(run_ids)
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


def repair_clock_skew(tx: Tx, now_ms: int, lease_max_ms: int) -> ClockRepair:
    times = {"now": now_ms, "longest": lease_max_ms}
    if not tx.run(TAKE_OTHER_TIMES, times):
        return ClockRepair(0, 0)
    repair = ClockRepair(*tx.row(FIND_OTHER_TIMES, times))
    tx.run(REPAIR_CLOCK_SKEW, times)
    tx.run(FORGET_FUTURE_WORKERS, times)
    return repair


def begin_run(tx: Tx, run: NewRun, owner: str, lease_ms: int, first: Append) -> tuple[RunRow, bool]:
    if ends_at_once(run, first):
        return create_ended_run(tx, run, first)
    if _is_plain(run) and _follows(run, first) and has_only_events(first):
        row, created = begin_plain_run(tx, run, owner, first)
        if created:
            hold(tx, owner, run.now_ms, lease_ms)
        return row, created
    row, created = make_run(tx, run, ready=False)
    if created:
        claim_new(tx, owner, run.now_ms, lease_ms, run.id)
        append(tx, first)
    return row, created


def ends_at_once(run: NewRun, first: Append) -> bool:
    """It is there, and over, in one commit: neither a head nor a lease is needed."""
    return _is_plain(run) and _follows(run, first) and first.status in TERMINAL and writes_only_itself(first)


def _is_plain(run: NewRun) -> bool:
    """There are only its details, its head and its journal to write."""
    more = run.parent_run_id or run.sources or run.waits or run.signals or run.blobs or run.files
    return not (more or blobs_of(run.records))


def _follows(run: NewRun, first: Append) -> bool:
    return (first.run_id, first.epoch, first.expected_seq) == (run.id, 1, len(run.records))


def answer_and_claim(
    tx: Tx,
    token_hash: str,
    response: bytes,
    by: str | None,
    message: bytes,
    now_ms: int,
    owner: str,
    lease_ms: int,
    pools: Mapping[str, str] = DEFAULT_POOLS,
) -> tuple[Answered | None, Resumed | None]:
    answered = answer_wait(tx, token_hash, response, by, message, now_ms)
    if answered is None or not answered.won:
        return answered, None
    run = answered.wait.run_id
    # Once more: a run that another process has just changed is passed over.
    claimed = claim(tx, owner, now_ms, lease_ms, 1, run, pools) or claim(tx, owner, now_ms, lease_ms, 1, run, pools)
    return answered, _resumed(tx, claimed[0]) if claimed else None


def _resumed(tx: Tx, row: RunRow) -> Resumed:
    """Three looks here instead of three ways to a reader, one after the other, before the run continues."""
    messages = tuple(InboxRow(*found) for found in tx.rows(INBOX, {"run": row.id}))
    if row.seq > RESUMED_EVENTS_MAX:  # other commits do not wait until a long journal is added up
        return Resumed(row, None, messages, None)
    size = int(tx.row(OUTPUT_BYTES, {"id": row.id})[0])
    records: tuple[Record, ...] | None = None
    if size <= RESUMED_OUTPUT_BYTES_MAX:
        with suppress(CorruptJournal):  # the answer is on disk all the same; a fold of the journal finds it
            rows = tx.rows(JOURNAL, {"run": row.id, "after": 0, "upto": row.seq})
            records = tuple(records_of(row.id, rows))
    return Resumed(row, size, messages, records)
