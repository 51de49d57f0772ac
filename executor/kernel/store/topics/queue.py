"""Finds the runs of a claim: of its pools, in turn by their `fair` key, then by priority, then the longest due.

Runs that are free and due are `ready`, and an index has them in this order. A claim steps through the keys that are
there, from the one after which it begins, and looks at the first runs of each: it costs the same however many runs one
key has. Runs of workers that are gone are not among them; they come by time, and leave half of a claim to the others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from executor.kernel.store.formats import FORMAT, needed
from executor.kernel.store.run_rows import DEFAULT_POOLS, NewRun
from executor.kernel.store.statements import HEAD_OF_ID, any_of, as_list, by_index
from executor.kernel.store.tx import Readers, Row, Tx

# The time by which leases are judged: that of the database server, where there is one, else the caller's.
LEASE_NOW = "$lease_now(:now)"
READY_MAX = 1_000  # that a claim makes of runs that have become due
OF_POOLS = f"IN {any_of(':pools')}"

# Others wait for a process that can fold them.
FOLDABLE = f"needs <= {FORMAT}"
FOUND = "h.n, h.limits, h.rates, h.cancel_n"  # of a run that is found

MAKE_READY = f"""
UPDATE heads SET ready = 1
 WHERE n IN (SELECT h.n FROM {any_of(":pools")} AS pools CROSS JOIN heads AS h
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
  FROM {any_of(":keys")} AS keys $for_each
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
ANY_LAPSED = f"SELECT 1 FROM workers WHERE until_ms <= {LEASE_NOW} LIMIT 1"
FORGET_WORKERS = f"""
DELETE FROM workers WHERE until_ms <= {LEASE_NOW} AND NOT EXISTS (SELECT 1 FROM heads WHERE heads.owner = workers.id)"""
NEXT_DUE = f"""
SELECT min(at_ms) FROM (
    SELECT (SELECT min(h.due_ms) FROM heads AS h
             WHERE h.pool = pools.value AND h.owner IS NULL AND h.ready = 0 AND h.blocked_by IS NULL) AS at_ms
      FROM {any_of(":pools")} AS pools
    UNION ALL
    SELECT (SELECT h.due_ms FROM heads AS h WHERE h.pool = pools.value AND h.ready = 1 AND h.{FOLDABLE}
             ORDER BY h.fair, h.priority DESC, h.due_ms, h.id LIMIT 1)
      FROM {any_of(":pools")} AS pools
    UNION ALL
    SELECT 0 WHERE EXISTS (SELECT 1 FROM slots {by_index("slots_freed")} WHERE freed = 1)
    UNION ALL
    SELECT CASE WHEN until_ms > due_ms THEN until_ms ELSE due_ms END
      FROM (SELECT w.until_ms,
                   (SELECT min(h.due_ms) FROM heads AS h
                     WHERE h.owner = w.id AND h.pool = pools.value AND h.{FOLDABLE}) AS due_ms
              FROM workers AS w CROSS JOIN {any_of(":pools")} AS pools) AS leased) AS times"""
# Those that could be executed now, and those that wait for a place of a limit.
COUNT_QUEUED = """
SELECT (SELECT count(*) FROM (SELECT 1 FROM heads WHERE pool = :pool AND ready = 1 LIMIT :upto) AS due)
     + (SELECT count(*) FROM (SELECT 1 FROM heads WHERE blocked_by IS NOT NULL AND pool = :pool LIMIT :upto) AS held)"""

# With each new head.
PLACED = "pool, priority, fair, ready, limits, rates, needs"
PLACE = ":pool, :priority, :fair, :ready, :limits, :rates, :needs"


def placed(run: NewRun, *, ready: bool = True) -> dict[str, Any]:
    """The values of PLACE."""
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


class Found(NamedTuple):
    """A run that may be claimed. `limits`, `rates`: as the columns."""

    n: int
    limits: str | None
    rates: str | None
    cancel_n: int | None


def find_claimable(tx: Tx, now_ms: int, limit: int, pools: Mapping[str, str]) -> list[Found]:
    """Find runs to claim. `pools` have the key after which each begins."""
    names = as_list(list(pools))
    lapsed = _lapsed(tx, LAPSED_IN_ORDER, {"now": now_ms, "pools": names, "limit": limit})
    tx.run(MAKE_READY, {"now": now_ms, "pools": names})
    room = limit - min(len(lapsed), (limit + 1) // 2)
    ready: list[Found] = []
    for left, (pool, after) in zip(range(len(pools), 0, -1), pools.items(), strict=True):
        ready += _ready(tx, now_ms, -(-(room - len(ready)) // left), pool, after)
    return [*lapsed[: limit - len(ready)], *ready]


def find_one(tx: Tx, now_ms: int, run_id: str, pools: Collection[str]) -> list[Found]:
    """If it is claimable."""
    values = {"now": now_ms, "pools": as_list(list(pools)), "id": run_id}
    return [Found(*row) for row in tx.rows(FIND_FREE, values)] or _lapsed(tx, LAPSED_OF_RUN, values)


def _lapsed(tx: Tx, which: str, values: Mapping[str, Any]) -> list[Found]:
    if not tx.rows(ANY_LAPSED, values):
        return []
    found = [Found(*row) for row in tx.rows(FIND_LAPSED + which, values)]
    if not found:
        tx.run(FORGET_WORKERS, values)
    return found


def _ready(tx: Tx, now_ms: int, limit: int, pool: str, after: str) -> list[Found]:
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
    row = await readers.one(COUNT_QUEUED, {"pool": pool, "upto": upto})
    return 0 if row is None else min(int(row[0]), upto)


async def next_due(readers: Readers, pools: Collection[str] = DEFAULT_POOLS) -> int | None:
    row = await readers.one(NEXT_DUE, {"pools": as_list(list(pools))})
    return None if row is None or row[0] is None else int(row[0])
