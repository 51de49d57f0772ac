"""Who executes a run: leases, and when a run is due.

A lease is the worker's row: one for all runs that it has, renewed by one statement. A run names its owner. It is free
when it has none, or when the lease of its owner has lapsed. A process that creates or answers a run may execute it too:
that, and the claim, are one transaction (`begin_run`, `answer_and_claim`).
"""

# ruff: noqa: S608  (the pieces put together here are constants of this package, never values)

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from executor.store.rows import Answered, Append, ClockRepair, NewRun, RunRow, RunStatus
from executor.store.sqlite.batches import LAST_SEQ
from executor.store.sqlite.connection import Tx
from executor.store.sqlite.journal import append
from executor.store.sqlite.readers import Readers
from executor.store.sqlite.runs import RUN, create_run
from executor.store.sqlite.statements import ENDED, HEAD_OF_ID, any_of, any_row_of, as_list
from executor.store.sqlite.waits import answer_wait

FIND_FREE = "SELECT due_ms, id, n FROM heads WHERE owner IS NULL AND due_ms <= :now"
FREE_IN_ORDER = " ORDER BY due_ms, id LIMIT :limit"
FIND_LAPSED = """
SELECT max(h.due_ms, w.until_ms), h.id, h.n FROM workers AS w CROSS JOIN heads AS h ON h.owner = w.id
 WHERE w.until_ms <= :now AND h.due_ms <= :now"""
LAPSED_IN_ORDER = " ORDER BY max(h.due_ms, w.until_ms), h.id LIMIT :limit"
OF_RUN = f" AND {HEAD_OF_ID}"
ANY_LAPSED = "SELECT 1 FROM workers WHERE until_ms <= :now LIMIT 1"
ORPHANED = f"""parent_run_id IS NOT NULL AND EXISTS (
    WITH RECURSIVE above (id, depth) AS (
        SELECT runs.parent_run_id, 1
        UNION ALL
        SELECT r.parent_run_id, depth + 1 FROM above JOIN run_details AS r ON r.id = above.id
         WHERE r.parent_run_id IS NOT NULL AND depth < 100)
    SELECT 1 FROM above JOIN run_details AS r ON r.id = above.id
     WHERE r.{ENDED} OR EXISTS (SELECT 1 FROM heads WHERE heads.n = r.n AND heads.cancel_n IS NOT NULL))"""
CLAIMED = f"SELECT n, {RUN}, lease_owner, 0, {ORPHANED} FROM runs WHERE n IN {any_of(':numbers')}"
# How many runs each of these owners has.
COUNT_HELD = f"SELECT owner, count(*) FROM heads WHERE owner IN {any_of(':owners')} GROUP BY owner"
# Those that are as they were when they were found: another process may have been faster.
TAKE_RUNS = f"""
UPDATE heads SET owner = :owner, epoch = epoch + 1, seq = {LAST_SEQ},
       stalls = CASE WHEN {LAST_SEQ} > seq THEN 1 ELSE stalls + 1 END,
       status = 'running', started_at_ms = coalesce(started_at_ms, :now)
 WHERE n IN {any_of(":numbers")} AND (n, epoch, {LAST_SEQ}, coalesce(owner, '')) IN {any_row_of(":found", 4)}
   AND due_ms <= :now AND (owner IS NULL OR owner IN (SELECT id FROM workers WHERE until_ms <= :now))
RETURNING n, epoch, stalls, started_at_ms"""
TAKE_NEW = f"""
UPDATE heads SET owner = :owner, epoch = 1, stalls = 1, status = 'running', started_at_ms = :now
 WHERE {HEAD_OF_ID}"""
HOLD = """
INSERT INTO workers (id, until_ms) VALUES (:owner, :until)
ON CONFLICT (id) DO UPDATE SET until_ms = excluded.until_ms"""
RENEW = "UPDATE workers SET until_ms = :until WHERE id = :owner"
HELD = "SELECT id FROM heads WHERE owner = :owner"
GIVE_UP = f"UPDATE heads SET owner = NULL WHERE id IN {any_of(':runs')} AND owner = :owner"
FORGET_WORKERS = """
DELETE FROM workers WHERE until_ms <= :now AND NOT EXISTS (SELECT 1 FROM heads WHERE heads.owner = workers.id)"""
# Only with an empty inbox, so that no answer is lost while the owner goes to sleep. `running`: the process of the owner
# ends, and the run is due at once for the next one.
RELEASE_LEASE = f"""
UPDATE heads SET status = :status, owner = NULL, due_ms = :next_run_at
 WHERE {HEAD_OF_ID} AND epoch = :epoch AND {LAST_SEQ} = :seq
   AND (:status = 'running' OR NOT EXISTS (SELECT 1 FROM inbox WHERE run_id = :id))"""
NEXT_CLAIMABLE_AT = """
SELECT min(at_ms) FROM (
    SELECT min(due_ms) AS at_ms FROM heads WHERE owner IS NULL
    UNION ALL
    SELECT max(w.until_ms, (SELECT min(due_ms) FROM heads WHERE owner = w.id)) FROM workers AS w)"""
# A lease or a due time that only a clock set back explains: waiting runs keep theirs, it is the workflow's.
_TOO_LATE = "due_ms > :now AND (status <> 'waiting' OR EXISTS (SELECT 1 FROM inbox WHERE run_id = heads.id))"
_HELD_TOO_LONG = "owner IN (SELECT id FROM workers WHERE until_ms > :latest)"
TAKE_OTHER_TIMES = f"UPDATE heads SET seq = seq WHERE {_HELD_TOO_LONG} OR ({_TOO_LATE})"
FIND_OTHER_TIMES = f"""
SELECT count(*), coalesce(max(max(coalesce((SELECT until_ms FROM workers WHERE id = owner), 0) - :latest,
                                  iif({_TOO_LATE}, due_ms - :now, 0))), 0)
  FROM heads WHERE {_HELD_TOO_LONG} OR ({_TOO_LATE})"""
REPAIR_CLOCK_SKEW = f"""
UPDATE heads SET due_ms = min(coalesce(due_ms, :now), :now), owner = iif({_HELD_TOO_LONG}, NULL, owner)
 WHERE {_HELD_TOO_LONG} OR ({_TOO_LATE})"""
FORGET_FUTURE_WORKERS = "DELETE FROM workers WHERE until_ms > :latest"


def claim(tx: Tx, owner: str, now_ms: int, lease_ms: int, limit: int = 1, run_id: str | None = None) -> list[RunRow]:
    found = _claimable(tx, now_ms, limit, run_id)
    if not found:
        return []
    numbers = as_list(found)
    rows = {n: RunRow(*row) for n, *row in tx.db.execute(CLAIMED, {"numbers": numbers}).fetchall()}
    gone = {row.former_owner for row in rows.values() if row.former_owner is not None}
    held: dict[str | None, int] = {}
    if gone:
        held = dict(tx.db.execute(COUNT_HELD, {"owners": as_list(sorted(gone))}).fetchall())
    as_found = as_list([(n, row.epoch, row.seq, row.former_owner or "") for n, row in rows.items()])
    taking = {"owner": owner, "now": now_ms, "numbers": numbers, "found": as_found}
    taken: dict[int, RunRow] = {}
    for n, epoch, stalls, started_at_ms in tx.db.execute(TAKE_RUNS, taking).fetchall():
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
        )
    if taken:
        hold(tx, owner, now_ms + lease_ms)
    if gone:
        tx.db.execute(FORGET_WORKERS, {"now": now_ms})
    return [taken[n] for n in found if n in taken]


def claim_new(tx: Tx, owner: str, now_ms: int, lease_ms: int, run_id: str) -> None:
    """`claim` of a run that this transaction has created."""
    tx.db.execute(TAKE_NEW, {"owner": owner, "now": now_ms, "id": run_id})
    hold(tx, owner, now_ms + lease_ms)


def hold(tx: Tx, owner: str, until_ms: int) -> None:
    """The lease of a worker, on all runs that it has and that this transaction hands it."""
    tx.db.execute(HOLD, {"owner": owner, "until": until_ms})


def _claimable(tx: Tx, now_ms: int, limit: int, run_id: str | None) -> list[int]:
    """Numbers of runs, the one that is due longest first."""
    values = {"now": now_ms, "limit": limit, "id": run_id}
    of_run = "" if run_id is None else OF_RUN
    found = tx.db.execute(FIND_FREE + of_run + FREE_IN_ORDER, values).fetchall()
    if tx.db.execute(ANY_LAPSED, values).fetchall():
        found += tx.db.execute(FIND_LAPSED + of_run + LAPSED_IN_ORDER, values).fetchall()
        if not found:
            tx.db.execute(FORGET_WORKERS, values)
        found.sort()
    return [n for _, _, n in found[:limit]]


def renew(tx: Tx, owner: str, run_ids: Sequence[str], now_ms: int, lease_ms: int) -> set[str]:
    tx.db.execute(RENEW, {"owner": owner, "until": now_ms + lease_ms})
    held = {run_id for (run_id,) in tx.db.execute(HELD, {"owner": owner}).fetchall()}
    dropped = held.difference(run_ids)
    if dropped:
        tx.db.execute(GIVE_UP, {"owner": owner, "runs": as_list(sorted(dropped))})
    return held - dropped


def release(tx: Tx, run_id: str, epoch: int, seq: int, next_run_at_ms: int | None, status: RunStatus) -> bool:
    change = {"id": run_id, "epoch": epoch, "seq": seq, "next_run_at": next_run_at_ms, "status": status}
    return tx.db.execute(RELEASE_LEASE, change).rowcount == 1


async def next_due(readers: Readers) -> int | None:
    row = await readers.one(NEXT_CLAIMABLE_AT)
    return None if row is None or row[0] is None else int(row[0])


def repair_clock_skew(tx: Tx, now_ms: int, lease_max_ms: int) -> ClockRepair:
    times = {"now": now_ms, "latest": now_ms + lease_max_ms}
    if not tx.db.execute(TAKE_OTHER_TIMES, times).rowcount:
        return ClockRepair(0, 0)
    repair = ClockRepair(*tx.db.execute(FIND_OTHER_TIMES, times).fetchone())
    tx.db.execute(REPAIR_CLOCK_SKEW, times)
    tx.db.execute(FORGET_FUTURE_WORKERS, times)
    return repair


def begin_run(tx: Tx, run: NewRun, owner: str, lease_ms: int, first: Append) -> tuple[RunRow, bool]:
    row, created = create_run(tx, run)
    if created:
        claim_new(tx, owner, run.now_ms, lease_ms, run.id)
        append(tx, first)
    return row, created


def answer_and_claim(
    tx: Tx, token_hash: str, response: bytes, by: str | None, message: bytes, now_ms: int, owner: str, lease_ms: int
) -> tuple[Answered | None, RunRow | None]:
    answered = answer_wait(tx, token_hash, response, by, message, now_ms)
    if answered is None or not answered.won:
        return answered, None
    run = answered.wait.run_id
    # Once more: a run that another process has just changed is passed over.
    claimed = claim(tx, owner, now_ms, lease_ms, 1, run) or claim(tx, owner, now_ms, lease_ms, 1, run)
    return answered, claimed[0] if claimed else None
