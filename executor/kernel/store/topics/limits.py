"""Limits and rates of runs: how many with a key may be executed at once, and how many may start in a second.

A place of a limit is a row of `slots`. A run gets its places in the claim, keeps them while it has an owner, and leaves
them in the append that ends it or in its release. A run of a worker that is gone keeps them until it is claimed again:
its handlers may still be at work until then. A run that finds no place is blocked: it is not in the queue until a place
is free, so that a claim costs the same however many wait for one.

A claim that changes the places of a key has locked the key, and tries that without a wait: runs whose key another claim
has are left for the next claim. A run that leaves a place locks nothing: it marks the row, and the next claim gives the
place to a run that is blocked.

A rate is kept by times: a run that may not start yet is due at the time that is reserved for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from executor.kernel.store.statements import HEAD_OF_ID, Readers, Tx, as_list


class Full(Struct, frozen=True):
    key: str
    held: int
    at_most: int


FREED_MAX: Final = 64  # keys that a claim looks at
LOCK_KEYS = "SELECT keys.value FROM $texts(:keys) AS keys WHERE $try_lock(keys.value)"
FREED_KEYS = f"SELECT DISTINCT key FROM slots $index(slots_freed) WHERE freed = 1 LIMIT {FREED_MAX}"
DELETE_FREED = "DELETE FROM slots WHERE freed = 1 AND key IN $texts(:keys) RETURNING key"
HELD_OF_KEYS = """
SELECT key, count(*) FROM slots WHERE key IN $texts(:keys) AND freed = 0 AND node = '' GROUP BY key"""
HELD_BY_RUNS = "SELECT key, n FROM slots WHERE n $is_any(:numbers) AND freed = 0 AND node = ''"
TAKE_SLOT = """
INSERT INTO slots (key, n) VALUES (:key, :n) ON CONFLICT (key, n, node) DO UPDATE SET freed = 0"""
FREE_SLOTS = "UPDATE slots SET freed = 1 WHERE n = :n AND freed = 0"
UNBLOCK = """
UPDATE heads SET ready = 1, blocked_by = NULL
 WHERE blocked_by = :key
   AND n IN (SELECT h.n FROM heads AS h WHERE h.blocked_by = :key
              ORDER BY h.priority DESC, h.due_ms, h.id LIMIT :places)"""
# The time of this start, in microseconds; the next one comes after it.
RESERVE = """
INSERT INTO rates (key, next_us) VALUES (:key, :now_us + :step_us)
ON CONFLICT (key) DO UPDATE
   SET next_us = CASE WHEN rates.next_us < :now_us THEN :now_us ELSE rates.next_us END + :step_us
RETURNING next_us - :step_us"""
# Times that are over have no effect.
FORGET_RATES = f"""
DELETE FROM rates
 WHERE key IN (SELECT key FROM rates WHERE next_us < :now_us ORDER BY next_us LIMIT {FREED_MAX} $skip_locked(rates))"""
START = "UPDATE heads SET rates = NULL WHERE n = :n"
BLOCKED = f"""
SELECT h.blocked_by, h.limits,
       (SELECT count(*) FROM slots AS s WHERE s.key = h.blocked_by AND s.freed = 0 AND s.node = '')
  FROM heads AS h WHERE {HEAD_OF_ID} AND h.blocked_by IS NOT NULL"""

_decode = msgspec.json.Decoder(list[tuple[str, float]]).decode


class Found(NamedTuple):
    """A run that may be claimed. `limits`, `rates`: as the columns."""

    n: int
    limits: str | None
    rates: str | None
    cancel_n: int | None


def let_others_in(tx: Tx) -> None:
    """Before runs are found: those that are blocked by a limit with a free place are in the queue again."""
    keys = [key for (key,) in tx.rows(FREED_KEYS)]
    if keys and (locked := _locked(tx, keys)):
        freed = Counter(key for (key,) in tx.rows(DELETE_FREED, {"keys": as_list(locked)}))
        for key, places in sorted(freed.items()):
            tx.run(UNBLOCK, {"key": key, "places": places})


def admit(tx: Tx, found: Sequence[Found], now_ms: int) -> list[int]:
    """Numbers of those that may be executed now; they have their places. A run that is to be cancelled needs none."""
    limits = {run.n: dict(_decode(run.limits)) for run in found if run.limits is not None}
    if not limits and all(run.rates is None for run in found):
        return [run.n for run in found]
    places = _Places(tx, limits)
    admitted = []
    for run in found:
        wanted = limits.get(run.n, {})
        if run.cancel_n is not None:
            places.leave(run.n, wanted)
        elif not places.locked >= wanted.keys():
            continue
        elif (full := places.full(run.n, wanted)) is not None:
            tx.run("UPDATE heads SET ready = 0, blocked_by = :key WHERE n = :n", {"n": run.n, "key": full})
            places.leave(run.n, wanted)
            continue
        elif run.rates is not None and not _starts(tx, run.n, run.rates, now_ms):
            places.leave(run.n, wanted)
            continue
        else:
            places.claim(run.n, wanted)
        admitted.append(run.n)
    places.offer()
    return admitted


class _Places:
    def __init__(self, tx: Tx, limits: dict[int, dict[str, float]]) -> None:
        self._tx = tx
        keys = sorted({key for wanted in limits.values() for key in wanted})
        self.locked = set(_locked(tx, keys)) if keys else set()
        self._held: dict[str, int] = {}
        self._has: set[tuple[str, int]] = set()
        self._left: dict[str, float] = {}
        if self.locked:
            self._held = dict(tx.rows(HELD_OF_KEYS, {"keys": as_list(sorted(self.locked))}))
            self._has = {(key, n) for key, n in tx.rows(HELD_BY_RUNS, {"numbers": as_list(list(limits))})}

    def full(self, n: int, wanted: dict[str, float]) -> str | None:
        for key, at_most in wanted.items():
            if (key, n) not in self._has and self._held.get(key, 0) >= at_most:
                return key
        return None

    def claim(self, n: int, wanted: Iterable[str]) -> None:
        for key in wanted:
            if (key, n) not in self._has:
                self._tx.run(TAKE_SLOT, {"key": key, "n": n})
                self._held[key] = self._held.get(key, 0) + 1

    def leave(self, n: int, wanted: dict[str, float]) -> None:
        """It was let in for a place that it does not use."""
        if any((key, n) in self._has for key in wanted):
            free_places(self._tx, n)
        self._left.update(wanted)

    def offer(self) -> None:
        for key, at_most in self._left.items():
            room = int(at_most) - self._held.get(key, 0)
            if key in self.locked and room > 0:
                self._tx.run(UNBLOCK, {"key": key, "places": room})


def _starts(tx: Tx, n: int, rates: str, now_ms: int) -> bool:
    """Returns True if its time is now; else makes it due at its time."""
    now_us = due_us = now_ms * 1000
    for key, per_s in sorted(_decode(rates)):
        step_us = max(1, round(1_000_000 / per_s))
        due_us = max(due_us, tx.row(RESERVE, {"key": key, "now_us": now_us, "step_us": step_us})[0])
    tx.run(FORGET_RATES, {"now_us": now_us - 1_000_000})
    if due_us < now_us + 1000:
        tx.run(START, {"n": n})
        return True
    tx.run("UPDATE heads SET rates = NULL, ready = 0, due_ms = :due WHERE n = :n", {"n": n, "due": -(-due_us // 1000)})
    return False


def free_places(tx: Tx, n: int) -> None:
    tx.run(FREE_SLOTS, {"n": n})


def _locked(tx: Tx, keys: Collection[str]) -> list[str]:
    return [key for (key,) in tx.rows(LOCK_KEYS, {"keys": as_list(list(keys))})]


async def waits_for(readers: Readers, run_id: str) -> Full | None:
    """Return the limit that keeps an open run from being claimed."""
    row: Any = await readers.one(BLOCKED, {"id": run_id})
    if row is None:
        return None
    key, limits, held = row
    return Full(key, int(held), int(dict(_decode(limits)).get(key, 0)))
