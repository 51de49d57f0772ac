"""Claims of runs, and the leases that they begin.

A claim has four steps: find runs that are free and due, admit those for which their limits have places, take those that
are still as they were found, and hold them by the lease of the worker.

Runs that are free and due are `ready`, and an index has them in the order in which they are found: of each pool, in
turn by their `fair` key, then by priority, then the longest due. A claim steps through the keys that are there, from
the one after which it begins, and reads the first runs of each: it costs the same however many runs one key has. Runs
of workers that are gone are not among them; they come by time, and leave half of a claim to the others.

A lease is the worker's row: one for all runs that it has, renewed by one statement. A run names its owner. It is free
when it has none, or when the lease of its owner has lapsed, by the clock that all processes on the database share
(`LEASE_NOW`). A process that creates or answers a run may execute it too: that, and the claim, are one transaction
(`begin_run`, `answer_and_continue`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from msgspec.structs import replace

from executor.kernel.store.formats import FORMAT
from executor.kernel.store.run_rows import (
    DEFAULT_POOLS,
    Append,
    Appended,
    ClockRepair,
    RunRow,
)
from executor.kernel.store.statements import ENDED, HEAD_OF_ID, LAST_SEQ, Readers, Row, Tx, as_list
from executor.kernel.store.topics.journal import append
from executor.kernel.store.topics.leases import LEASE_NOW, hold
from executor.kernel.store.topics.limits import Found, admit, free_places, let_others_in
from executor.kernel.store.topics.runs import RUN
from executor.kernel.store.topics.waits import Answered, close_by_link, post_to_open

READY_MAX = 1_000  # that a claim makes of runs that have become due
OF_POOLS = "IN $texts(:pools)"

# Others wait for a process that can fold them.
FOLDABLE = f"needs <= {FORMAT}"
FOUND = "h.n, h.limits, h.rates, h.cancel_n"  # of a run that is found

MAKE_READY = f"""
UPDATE heads SET ready = 1
 WHERE n IN (SELECT h.n FROM $texts(:pools) AS pools CROSS JOIN heads AS h
              WHERE h.pool = pools.value AND h.owner IS NULL AND h.ready = 0 AND h.blocked_by IS NULL
                AND h.due_ms <= :now
              LIMIT {READY_MAX} $skip_locked(h))"""
_NEXT_KEY = "SELECT min(h.fair) FROM heads AS h WHERE h.pool = :pool AND h.ready = 1 AND h.fair"
READY_KEYS = f"""
WITH RECURSIVE keys (fair, place) AS (
    SELECT ({_NEXT_KEY} >= :from), 1
    UNION ALL
    SELECT ({_NEXT_KEY} > keys.fair), place + 1 FROM keys WHERE keys.fair IS NOT NULL AND place < :limit)
SELECT fair FROM keys WHERE fair IS NOT NULL"""
FIRST_READY = f"""
SELECT h.fair, h.priority, h.due_ms, h.id, {FOUND}
  FROM $texts(:keys) AS keys $for_each
         FROM heads AS q
        WHERE q.pool = :pool AND q.ready = 1 AND q.fair = keys.value AND q.due_ms <= :now AND q.{FOLDABLE}
        ORDER BY q.priority DESC, q.due_ms, q.id LIMIT :each $end_each"""
FIND_FREE = f"""
SELECT {FOUND} FROM heads AS h
 WHERE {HEAD_OF_ID} AND owner IS NULL AND due_ms <= :now AND pool {OF_POOLS} AND {FOLDABLE}
 $skip_locked(h)"""
FIND_LAPSED = f"""
SELECT {FOUND} FROM workers AS w CROSS JOIN heads AS h
 WHERE h.owner = w.id AND w.until_ms <= {LEASE_NOW} AND h.due_ms <= :now AND h.pool {OF_POOLS}
   AND h.{FOLDABLE}"""
LAPSED_OF_RUN = " AND h.n = (SELECT n FROM run_details WHERE id = :id) $skip_locked(h)"
LAPSED_IN_ORDER = """
 ORDER BY CASE WHEN h.due_ms > w.until_ms THEN h.due_ms ELSE w.until_ms END, h.id LIMIT :limit $skip_locked(h)"""
FORGET_WORKERS = f"""
DELETE FROM workers WHERE until_ms <= {LEASE_NOW} AND NOT EXISTS (SELECT 1 FROM heads WHERE heads.owner = workers.id)"""
NEXT_DUE = f"""
SELECT min(at_ms) FROM (
    SELECT (SELECT min(h.due_ms) FROM heads AS h
             WHERE h.pool = pools.value AND h.owner IS NULL AND h.ready = 0 AND h.blocked_by IS NULL) AS at_ms
      FROM $texts(:pools) AS pools
    UNION ALL
    SELECT (SELECT h.due_ms FROM heads AS h WHERE h.pool = pools.value AND h.ready = 1 AND h.{FOLDABLE}
             ORDER BY h.fair, h.priority DESC, h.due_ms, h.id LIMIT 1)
      FROM $texts(:pools) AS pools
    UNION ALL
    SELECT 0 WHERE EXISTS (SELECT 1 FROM slots $index(slots_freed) WHERE freed = 1)
    UNION ALL
    SELECT CASE WHEN until_ms > due_ms THEN until_ms ELSE due_ms END
      FROM (SELECT w.until_ms,
                   (SELECT min(h.due_ms) FROM heads AS h
                     WHERE h.owner = w.id AND h.pool = pools.value AND h.{FOLDABLE}) AS due_ms
              FROM workers AS w CROSS JOIN $texts(:pools) AS pools) AS leased) AS times"""
# Runs that could be executed now, and runs that wait for a place of a limit.
COUNT_QUEUED = """
SELECT (SELECT count(*) FROM (SELECT 1 FROM heads WHERE pool = :pool AND ready = 1 LIMIT :upto) AS due)
     + (SELECT count(*) FROM (SELECT 1 FROM heads WHERE blocked_by IS NOT NULL AND pool = :pool LIMIT :upto) AS held)"""

# A run that a cleanup has made is not needed any less because the run above was cancelled: that is why it is there.
# PostgreSQL is asked this beside texts that have a meaning for `%`, and `:finally` would be a parameter.
_BELOW = "parent_run_id IS NOT NULL AND replace({run}.parent_key, ':' || 'finally', '') = {run}.parent_key"
ORPHANED = f"""{_BELOW.format(run="runs")} AND EXISTS (
    WITH RECURSIVE above (id, depth) AS (
        SELECT runs.parent_run_id, 1
        UNION ALL
        SELECT r.parent_run_id, depth + 1 FROM above JOIN run_details AS r ON r.id = above.id
         WHERE r.{_BELOW.format(run="r")} AND depth < 100)
    SELECT 1 FROM above JOIN run_details AS r ON r.id = above.id
     WHERE r.{ENDED} OR EXISTS (SELECT 1 FROM heads WHERE heads.n = r.n AND heads.cancel_n IS NOT NULL))"""
CLAIMED = f"SELECT n, {RUN}, lease_owner, 0, {ORPHANED} FROM runs WHERE n $is_any(:numbers)"
# The number of runs of each of these owners.
COUNT_HELD = "SELECT owner, count(*) FROM heads WHERE owner IN $texts(:owners) GROUP BY owner"
# Runs that are as they were when they were found: another process may have been faster.
TAKE_RUNS = f"""
UPDATE heads SET owner = :owner, ready = 0, blocked_by = NULL, epoch = epoch + 1, seq = {LAST_SEQ},
       stalls = CASE WHEN {LAST_SEQ} > seq THEN 1 ELSE stalls + 1 END,
       status = 'running', started_at_ms = coalesce(started_at_ms, :now)
 WHERE n $is_any(:numbers)
   AND (n, epoch, {LAST_SEQ}, coalesce(owner, '')) IN $rows(:found, nnnt)
   AND due_ms <= :now AND (owner IS NULL OR owner IN (SELECT id FROM workers WHERE until_ms <= {LEASE_NOW}))
RETURNING n, epoch, stalls, started_at_ms, pool, fair"""
# A run that waits as its owner left it, with nothing in its inbox.
TAKE_WAITING = f"""
UPDATE heads SET owner = :owner, epoch = :epoch, status = 'running', ready = 0, blocked_by = NULL,
       due_ms = CASE WHEN due_ms < :now THEN due_ms ELSE :now END
 WHERE {HEAD_OF_ID} AND epoch = :epoch - 1 AND {LAST_SEQ} = :after AND owner IS NULL AND status = 'waiting'
   AND limits IS NULL AND rates IS NULL AND pool {OF_POOLS} AND {FOLDABLE}
   AND NOT EXISTS (SELECT 1 FROM inbox WHERE run_id = :id)"""
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
    """Own runs that are due, or the run `run_id` if it is: status queued, running or waiting, `due_ms` <= now,
    without an owner or with one whose lease has lapsed. epoch + 1, stalls + 1, status running, started_at kept; the
    lease of `owner` ends `lease_ms` from now. Rule "fair claims" (docs/reference/store.md) decides which runs, and in
    which order; `postgres/hot/claims.py` follows it in a statement of its own."""
    if run_id is None:
        let_others_in(tx)
        found = _find_any(tx, now_ms, limit, pools)
    else:
        found = _find_one(tx, now_ms, run_id, pools)
    admitted = admit(tx, found, now_ms)
    if not admitted:
        return []
    rows = {n: RunRow(*row) for n, *row in tx.rows(CLAIMED, {"numbers": as_list(admitted)})}
    gone = sorted({row.former_owner for row in rows.values() if row.former_owner is not None})
    held: dict[str | None, int] = dict(tx.rows(COUNT_HELD, {"owners": as_list(gone)})) if gone else {}
    limited = {run.n for run in found if run.limits is not None}
    taken: dict[int, RunRow] = {}
    for n, changed in _take(tx, owner, now_ms, rows):
        row = rows[n]
        taken[n] = replace(
            row,
            **changed if run_id is None else {**changed, "pool": "", "fair": ""},
            lease_until_ms=now_ms + lease_ms,
            lost_together=held.get(row.former_owner, 0) > 1,
            orphaned=bool(row.orphaned),
            limited=n in limited,
        )
    for n in limited.intersection(admitted).difference(taken):
        free_places(tx, n)
    if taken:
        hold(tx, owner, now_ms, lease_ms)
    if gone:
        tx.do(FORGET_WORKERS, {"now": now_ms})
    return [taken[n] for n in admitted if n in taken]


def _take(tx: Tx, owner: str, now_ms: int, rows: Mapping[int, RunRow]) -> list[tuple[int, dict[str, Any]]]:
    """Make `owner` the owner of those that still are as in `rows`. Returns their numbers, and what has changed."""
    as_found = as_list([(n, row.epoch, row.seq, row.former_owner or "") for n, row in rows.items()])
    taking = {"owner": owner, "now": now_ms, "numbers": as_list(list(rows)), "found": as_found}
    of_owner = {"status": "running", "lease_owner": owner}
    names = ("epoch", "stalls", "started_at_ms", "pool", "fair")
    return [(n, {**of_owner, **dict(zip(names, row, strict=True))}) for n, *row in tx.rows(TAKE_RUNS, taking)]


def repair_clock_skew(tx: Tx, now_ms: int, lease_max_ms: int) -> ClockRepair:
    """After the wall clock was set back: free the runs of workers whose lease ends later than `lease_max_ms` from
    now, and make due what was due at a time that has not come yet, except runs that wait."""
    times = {"now": now_ms, "longest": lease_max_ms}
    if not tx.run(TAKE_OTHER_TIMES, times):
        return ClockRepair(0, 0)
    repair = ClockRepair(*tx.row(FIND_OTHER_TIMES, times))
    tx.run(REPAIR_CLOCK_SKEW, times)
    tx.run(FORGET_FUTURE_WORKERS, times)
    return repair


class Continued(Answered, frozen=True):
    """`appended`: None if the run was not taken."""

    appended: Appended | None = None


def answer_and_continue(
    tx: Tx,
    token_hash: str,
    response: bytes,
    by: str | None,
    message: bytes,
    now_ms: int,
    owner: str,
    lease_ms: int,
    pools: Mapping[str, str],
    first: Append,
) -> Continued | None:
    """As `answer_wait`. If the inbox of the run is empty, and it waits without an owner at the event and in the epoch
    before those of `first`, it has no message, but is taken as by `claim`, and `first` is appended, which makes no
    children and consumes nothing else. A run with limits is left to `claim`."""
    answered = close_by_link(tx, token_hash, response, by, now_ms)
    if answered is None or not answered.won:
        return None if answered is None else Continued(answered.won, answered.wait)
    wait = answered.wait
    if not _take_waiting(tx, owner, now_ms, first, pools):
        post_to_open(tx, wait.run_id, message, now_ms)
        return Continued(True, wait)
    if not first.finished:
        hold(tx, owner, now_ms, lease_ms)
    others = tuple(each for each in first.closed_waits if each.id != wait.id)
    return Continued(True, wait, append(tx, replace(first, closed_waits=others, consumed_inbox=())))


def _take_waiting(tx: Tx, owner: str, now_ms: int, first: Append, pools: Collection[str]) -> bool:
    run = first.run_id
    if first.root not in (None, run) and tx.row(f"SELECT {ORPHANED} FROM runs WHERE id = :id", {"id": run})[0]:
        return False
    taking = {"id": run, "owner": owner, "epoch": first.epoch, "after": first.expected_seq, "now": now_ms}
    return tx.run(TAKE_WAITING, {**taking, "pools": as_list(list(pools))}) == 1


def _find_any(tx: Tx, now_ms: int, limit: int, pools: Mapping[str, str]) -> list[Found]:
    names = as_list(list(pools))
    lapsed = _find_lapsed(tx, LAPSED_IN_ORDER, {"now": now_ms, "pools": names, "limit": limit})
    tx.run(MAKE_READY, {"now": now_ms, "pools": names})
    room = limit - min(len(lapsed), (limit + 1) // 2)
    ready: list[Found] = []
    for left, (pool, after) in zip(range(len(pools), 0, -1), pools.items(), strict=True):
        ready += _find_ready(tx, now_ms, -(-(room - len(ready)) // left), pool, after)
    return [*lapsed[: limit - len(ready)], *ready]


def _find_one(tx: Tx, now_ms: int, run_id: str, pools: Collection[str]) -> list[Found]:
    values = {"now": now_ms, "pools": as_list(list(pools)), "id": run_id}
    return tx.fetch(Found, FIND_FREE, values) or _find_lapsed(tx, LAPSED_OF_RUN, values)


def _find_lapsed(tx: Tx, which: str, values: Mapping[str, Any]) -> list[Found]:
    if not tx.rows(f"SELECT 1 FROM workers WHERE until_ms <= {LEASE_NOW} LIMIT 1", values):
        return []
    found = tx.fetch(Found, FIND_LAPSED + which, values)
    if not found:
        tx.run(FORGET_WORKERS, values)
    return found


def _find_ready(tx: Tx, now_ms: int, limit: int, pool: str, after: str) -> list[Found]:
    """The first of each key, then the second of each."""
    if limit <= 0:
        return []
    keys = _keys(tx, pool, after, limit)
    if not keys:
        return []
    values = {"pool": pool, "keys": as_list(keys), "now": now_ms, "each": -(-limit // len(keys))}
    queues: dict[str, list[Row]] = {key: [] for key in keys}
    for row in tx.rows(FIRST_READY, values):
        queues[row[0]].append(row)
    found: list[tuple[int, Found]] = []
    for queue in queues.values():
        queue.sort(key=lambda row: (-row[1], row[2], row[3]))
        found += [(place, Found(*row[4:])) for place, row in enumerate(queue)]
    found.sort(key=lambda entry: entry[0])
    return [run for _, run in found[:limit]]


def _keys(tx: Tx, pool: str, after: str, limit: int) -> list[str]:
    """Return the keys that have ready runs, beginning after `after`, and then from the first."""
    start = {"pool": pool, "from": behind(after), "limit": limit}
    keys = [key for (key,) in tx.rows(READY_KEYS, start)]
    if after and len(keys) < limit:
        again = tx.rows(READY_KEYS, {**start, "from": "", "limit": limit - len(keys)})
        keys += [key for (key,) in again if key <= after]
    return keys


def behind(key: str) -> str:
    """Return the smallest string greater than `key` ("" stays ""). No text with a lesser control character is a key."""
    return f"{key}\x01" if key else ""


async def count_queued(readers: Readers, pool: str, upto: int) -> int:
    """Count runs of the pool that wait for a worker: without an owner and due, or without a place of a limit. Not
    counted further than `upto`. One that becomes due by time may be missing until the next claim."""
    row = await readers.one(COUNT_QUEUED, {"pool": pool, "upto": upto})
    return 0 if row is None else min(int(row[0]), upto)


async def next_due(readers: Readers, pools: Collection[str] = DEFAULT_POOLS) -> int | None:
    """Return when `claim` could find something: min over open runs of these pools of max(next_run_at, end of its
    owner's lease). While there are runs that are due, any time at which one of them was."""
    return await readers.value(int, NEXT_DUE, {"pools": as_list(list(pools))})
