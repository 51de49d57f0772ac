"""Places of limits of blocks: how many attempts with a key may be at work at once.

A place is a row of `places`, first of an attempt that waits. A process that assigns the places of a key has locked the
key, and tries that without a wait: else it returns the key as one to look at again. The append that ends an attempt
deletes its row and locks nothing; its process then looks whether others wait, and notifies the other processes.

A row counts while its run has the epoch that it was asked for under. So a claim after a crash frees the places of the
run without writing any, and before that claim the handlers that may still be at work keep them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from executor.kernel.store.statements import HEAD_OF_ID, Readers, Tx, as_list

PlaceState = Literal[0, 1, 2]
WAITS: PlaceState = 0
RESERVED: PlaceState = 1  # its process has yet to be notified
USED: PlaceState = 2


class Ask(Struct, frozen=True):
    """An attempt that wants a place. `epoch`: of the lease that it runs under."""

    run_id: str
    epoch: int
    node: str
    attempt: int
    key: str
    at_most: int


class Assigned(Struct, frozen=True):
    """The result of a look at places.

    asked    the number of the place of each ask, in their order, None if the run has another epoch by now
    begin    numbers of places of the asker's attempts, which may begin now
    others   places were reserved for other processes
    again    keys to look at again soon: another process was looking at them, or there is more to assign
    """

    asked: tuple[int | None, ...] = ()
    begin: tuple[int, ...] = ()
    others: bool = False
    again: tuple[str, ...] = ()


class PlaceRow(Struct, frozen=True):
    """`held`: places with this key that are reserved or used; `at_most` of them may be."""

    number: int
    node: str
    attempt: int
    epoch: int
    state: PlaceState
    key: str
    at_most: int
    held: int


ASSIGNED_MAX: Final = 256  # of one key in one look
_CURRENT = "EXISTS (SELECT 1 FROM heads AS h WHERE h.n = p.n AND h.epoch = p.epoch)"
# An ask whose answer was lost comes again. One of an older epoch was of a start that is not in the journal.
ASK = f"""
INSERT INTO places (key, n, epoch, node, attempt, asker, at_most)
SELECT :key, n, epoch, :node, :attempt, :asker, :at_most FROM heads WHERE {HEAD_OF_ID} AND epoch = :epoch
ON CONFLICT (n, node, attempt) DO UPDATE
   SET asker = excluded.asker, epoch = excluded.epoch,
       state = CASE WHEN places.epoch = excluded.epoch THEN places.state ELSE 0 END
RETURNING id, state"""
CLAIM_RESERVED = f"""
UPDATE places SET state = {USED}
 WHERE id IN (SELECT p.id FROM places AS p WHERE p.asker = :asker AND p.state = 1 AND {_CURRENT} $skip_locked(p))
RETURNING id"""
LOCK_KEYS = "SELECT keys.value FROM $texts(:keys) AS keys WHERE $try_lock(keys.value)"
_HELD = f"(SELECT count(*) FROM places AS p WHERE p.key = {{key}} AND p.state > 0 AND {_CURRENT})"
_FIRST_AT_MOST = f"""(SELECT p.at_most FROM places AS p WHERE p.key = keys.value AND p.state = 0 AND {_CURRENT}
                       ORDER BY p.id LIMIT 1)"""
# `at_most` is NULL if none waits.
ROOM = f"SELECT keys.value, {_HELD.format(key='keys.value')}, {_FIRST_AT_MOST} FROM $texts(:keys) AS keys"
FIRST_WAITING = f"""
SELECT p.id, p.asker, p.at_most FROM places AS p
 WHERE p.key = :key AND p.state = 0 AND {_CURRENT} ORDER BY p.id LIMIT :room $skip_locked(p)"""
ASSIGN = "UPDATE places SET state = :state WHERE id $is_any(:numbers) AND state = 0 RETURNING id"
LEAVE = """
DELETE FROM places WHERE n = :n AND (epoch < :epoch OR (node, attempt) IN $rows(:left, tn))"""
TO_ASSIGN = f"""
SELECT keys.value FROM $texts(:keys) AS keys WHERE {_HELD.format(key="keys.value")} < {_FIRST_AT_MOST}
UNION
SELECT p.key FROM places AS p WHERE p.asker = :asker AND p.state = 1 AND {_CURRENT}"""
OF_RUN = f"""
SELECT o.id, o.node, o.attempt, o.epoch, o.state, o.key, o.at_most, {_HELD.format(key="o.key")}
  FROM places AS o WHERE o.n = (SELECT n FROM run_details WHERE id = :id) ORDER BY o.id"""

# Locks of keys are of texts: those of limits of runs are others.
_LOCKED_AS: Final = "block "


def ask_places(tx: Tx, asker: str, asks: Sequence[Ask]) -> Assigned:
    """Add the asks after those that wait already; then as `assign_places` with their keys."""
    for run in sorted({ask.run_id for ask in asks}):
        tx.lock(run)  # a claim that comes meanwhile would not see the row, nor the row its epoch
    asked: list[int | None] = []
    repeated: list[int] = []
    for ask in asks:
        values = {
            "id": ask.run_id,
            "epoch": ask.epoch,
            "node": ask.node,
            "attempt": ask.attempt,
            "key": ask.key,
            "at_most": ask.at_most,
            "asker": asker,
        }
        rows = tx.rows(ASK, values)
        asked.append(rows[0][0] if rows else None)
        repeated += [number for number, state in rows if state == USED]
    begin, others, again = _assign(tx, asker, sorted({ask.key for ask in asks}))
    return Assigned(tuple(asked), tuple(sorted([*begin, *repeated])), others, tuple(again))


def assign_places(tx: Tx, asker: str, keys: Sequence[str]) -> Assigned:
    """Reserve free places for those that wait, in order. Those of the asker, reserved ones too, are used at once."""
    begin, others, again = _assign(tx, asker, keys)
    reserved = [number for (number,) in tx.rows(CLAIM_RESERVED, {"asker": asker})]
    return Assigned((), tuple(sorted([*begin, *reserved])), others, tuple(again))


def _assign(tx: Tx, asker: str, keys: Sequence[str]) -> tuple[list[int], bool, list[str]]:
    wanted = [f"{_LOCKED_AS}{key}" for key in keys]
    locked = {key.removeprefix(_LOCKED_AS) for (key,) in tx.rows(LOCK_KEYS, {"keys": as_list(wanted)})}
    again = [key for key in keys if key not in locked]
    own: list[int] = []
    foreign: list[int] = []
    # By a statement after the locks: it sees what earlier holders of them have committed.
    for key, held, at_most in tx.rows(ROOM, {"keys": as_list(sorted(locked))}) if locked else ():
        if at_most is None or held >= at_most:
            continue
        room = min(at_most - held, ASSIGNED_MAX) + 1  # the last one may be of a document that allows more
        waiting = tx.rows(FIRST_WAITING, {"key": key, "room": room})
        for number, of, most in waiting:
            if held >= most:  # another document allows less: those after it wait too, or it never has its turn
                break
            held += 1
            (own if of == asker else foreign).append(number)
        else:
            if len(waiting) == room:
                again.append(key)
    begin = [number for (number,) in tx.rows(ASSIGN, {"state": USED, "numbers": as_list(own)})] if own else []
    reserved = tx.rows(ASSIGN, {"state": RESERVED, "numbers": as_list(foreign)}) if foreign else []
    return sorted(begin), bool(reserved), again


def leave_places(tx: Tx, n: int, epoch: int, left: Sequence[tuple[str, int]]) -> None:
    """With the end of these attempts (node key, number), and all of older epochs. `n`: of the run."""
    tx.do(LEAVE, {"n": n, "epoch": epoch, "left": as_list(left)})


async def places_to_assign(readers: Readers, asker: str, keys: Sequence[str]) -> list[str]:
    """Return the keys with a free place for an attempt that waits, or a place that is reserved for the asker."""
    return [key for (key,) in await readers.all(TO_ASSIGN, {"asker": asker, "keys": as_list(keys)})]


async def places_of(readers: Readers, run_id: str) -> list[PlaceRow]:
    """Return all places of an open run, also of older epochs, by number."""
    return await readers.fetch(PlaceRow, OF_RUN, {"id": run_id})
