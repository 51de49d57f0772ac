"""Who executes a run: leases, and when a run is due."""

# ruff: noqa: S608  (the pieces put together here are constants of this package, never values)

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from executor.store.rows import ClockRepair, RunRow, RunStatus
from executor.store.sqlite.conditions import CLAIMABLE_AT, ENDED, OPEN
from executor.store.sqlite.connection import Tx
from executor.store.sqlite.readers import Readers
from executor.store.sqlite.runs import RUN

# Found and leased in one write transaction, so no other process gets between the two.
ORPHANED = f"""parent_run_id IS NOT NULL AND EXISTS (
    WITH RECURSIVE above (id, depth) AS (
        SELECT runs.parent_run_id, 1
        UNION ALL
        SELECT r.parent_run_id, depth + 1 FROM above JOIN runs AS r ON r.id = above.id
         WHERE r.parent_run_id IS NOT NULL AND depth < 100)
    SELECT 1 FROM above JOIN runs AS r ON r.id = above.id WHERE r.cancel_n IS NOT NULL OR r.{ENDED})"""
# How many runs each of these owners holds.
COUNT_HELD = f"""
SELECT lease_owner, count(*) FROM runs
 WHERE {OPEN} AND lease_owner IN (SELECT value FROM json_each(?)) GROUP BY lease_owner"""
CLAIMABLE = f"SELECT {RUN}, lease_owner, 0, {ORPHANED} FROM runs"
FIND_CLAIMABLE = f"{CLAIMABLE} WHERE {OPEN} AND {CLAIMABLE_AT} <= ? ORDER BY {CLAIMABLE_AT}, id LIMIT ?"
FIND_CLAIMABLE_RUN = f"{CLAIMABLE} WHERE id = ? AND {OPEN} AND {CLAIMABLE_AT} <= ?"
TAKE_LEASE = """
UPDATE runs SET lease_owner = ?, lease_until_ms = ?, epoch = ?, stalls = ?, status = 'running', started_at_ms = ?
 WHERE id = ?"""
RENEW_LEASES = f"""
UPDATE runs SET lease_until_ms = :until
 WHERE id IN (SELECT value FROM json_each(:runs)) AND lease_owner = :owner AND {OPEN} RETURNING id"""
# Only with an empty inbox, so that no answer is lost while the owner goes to sleep. `running`: the process of the owner
# ends, and the run is due at once for the next one.
RELEASE_LEASE = f"""
UPDATE runs SET status = :status, lease_owner = NULL, lease_until_ms = NULL, next_run_at_ms = :next_run_at
 WHERE id = :id AND epoch = :epoch AND seq = :seq AND {OPEN}
   AND (:status = 'running' OR NOT EXISTS (SELECT 1 FROM inbox WHERE run_id = :id))"""
NEXT_CLAIMABLE_AT = f"""
SELECT {CLAIMABLE_AT} FROM runs WHERE {OPEN} AND {CLAIMABLE_AT} IS NOT NULL ORDER BY {CLAIMABLE_AT} LIMIT 1"""
# A lease or a due time that only a clock set back explains: waiting runs keep theirs, it is the workflow's.
_OF_ANOTHER_TIME = f"""
 WHERE {OPEN} AND (lease_until_ms > :latest
       OR (next_run_at_ms > :now AND (status <> 'waiting' OR EXISTS (SELECT 1 FROM inbox WHERE run_id = runs.id))))"""
FIND_OTHER_TIMES = f"""
SELECT count(*), coalesce(max(max(coalesce(lease_until_ms, 0) - :latest,
                                  iif(status <> 'waiting' OR EXISTS (SELECT 1 FROM inbox WHERE run_id = runs.id),
                                      coalesce(next_run_at_ms, 0) - :now, 0))), 0)
  FROM runs{_OF_ANOTHER_TIME}"""
REPAIR_CLOCK_SKEW = f"""
UPDATE runs SET next_run_at_ms = min(coalesce(next_run_at_ms, :now), :now),
       lease_owner = iif(lease_until_ms > :latest, NULL, lease_owner),
       lease_until_ms = iif(lease_until_ms > :latest, NULL, lease_until_ms){_OF_ANOTHER_TIME}"""


def claim(tx: Tx, owner: str, now_ms: int, lease_ms: int, limit: int = 1, run_id: str | None = None) -> list[RunRow]:
    if run_id is None:
        found = tx.db.execute(FIND_CLAIMABLE, (now_ms, limit)).fetchall()
    else:
        found = tx.db.execute(FIND_CLAIMABLE_RUN, (run_id, now_ms)).fetchall()[:limit]
    rows = [RunRow(*row) for row in found]
    gone = {row.former_owner for row in rows if row.former_owner is not None}
    held: dict[str | None, int] = {}
    if gone:
        held = dict(tx.db.execute(COUNT_HELD, (msgspec.json.encode(sorted(gone)).decode(),)).fetchall())
    return [_take_lease(tx, row, owner, now_ms, lease_ms, held.get(row.former_owner, 0) > 1) for row in rows]


def _take_lease(tx: Tx, run: RunRow, owner: str, now_ms: int, lease_ms: int, together: bool) -> RunRow:
    run = msgspec.structs.replace(
        run,
        lease_owner=owner,
        lease_until_ms=now_ms + lease_ms,
        epoch=run.epoch + 1,
        stalls=run.stalls + 1,
        status="running",
        started_at_ms=now_ms if run.started_at_ms is None else run.started_at_ms,
        lost_together=together,
        orphaned=bool(run.orphaned),
    )
    tx.db.execute(TAKE_LEASE, (run.lease_owner, run.lease_until_ms, run.epoch, run.stalls, run.started_at_ms, run.id))
    return run


def renew(tx: Tx, owner: str, run_ids: Sequence[str], now_ms: int, lease_ms: int) -> set[str]:
    wanted = msgspec.json.encode(list(run_ids)).decode()
    rows = tx.db.execute(RENEW_LEASES, {"until": now_ms + lease_ms, "runs": wanted, "owner": owner}).fetchall()
    return {run_id for (run_id,) in rows}


def release(tx: Tx, run_id: str, epoch: int, seq: int, next_run_at_ms: int | None, status: RunStatus) -> bool:
    change = {"id": run_id, "epoch": epoch, "seq": seq, "next_run_at": next_run_at_ms, "status": status}
    return tx.db.execute(RELEASE_LEASE, change).rowcount == 1


async def next_due(readers: Readers) -> int | None:
    row = await readers.one(NEXT_CLAIMABLE_AT)
    return None if row is None else int(row[0])


def repair_clock_skew(tx: Tx, now_ms: int, lease_max_ms: int) -> ClockRepair:
    times = {"now": now_ms, "latest": now_ms + lease_max_ms}
    repair = ClockRepair(*tx.db.execute(FIND_OTHER_TIMES, times).fetchone())
    if repair.runs:
        tx.db.execute(REPAIR_CLOCK_SKEW, times)
    return repair
