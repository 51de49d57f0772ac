"""Parts of the journals: runs that were begun between two cuts have theirs in one table, which is dropped when they are
over (docs/decisions/0026-parts-of-journals.md).

The number of its run decides which part a journal is in. Numbers are those of a sequence, and a cut lets it go on at a
multiple of WIDTH that stands for the day. So no clock decides where a row goes: numbers only grow, each is in the part
that was there before the sequence got to it, and no row is ever written to a part that was dropped.

Retiring a part, each step a transaction after which the process may be killed:

 1. Its comment says RETIRING: from now on it may have journals without a run.
 2. Runs that outlive it (open, ended too lately, read or begun by one that stays) get their number with a minus, and
    their rows move to the part `batches_moved`. If these are many, the part is left as it is.
 3. The other runs are deleted, but for their journals.
 4. When no run has a number of the part, it is detached, which lets all others read and write, and dropped.

The caller has the lock of `PostgresStore.deleting`: one process does this at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, cast

import psycopg

from executor.kernel.store.postgres.dialect import TEXTS
from executor.kernel.store.postgres.errors import message_of
from executor.kernel.store.postgres.parts import (
    LOOSE,
    PARTS,
    RETIRING,
    SEQUENCE,
    WIDTH,
    Part,
    begin,
    name_of_day,
    part_of,
)
from executor.kernel.store.statements import Row, Values
from executor.kernel.store.topics.upkeep import DELETE_OWN, GONE, KEPT, Retired, of_gone

log = logging.getLogger("weft.store")

Db = psycopg.AsyncConnection[Row]

# Tables that have numbers of runs, and what has the journals as the last of them.
NUMBERED: Final = ("run_details", "heads", "snapshots", "slots", "places", "batches")
RUNS_PER_TRANSACTION: Final = 500
# A part with more runs than these that outlive it is left as it is; its other runs are deleted one by one.
MOVED_RUNS_MIN: Final = 100
MOVED_SHARE_MAX: Final = 0.1
MOVED_EVENTS_MAX: Final = 100_000
ROUNDS: Final = 3  # runs that got a reader meanwhile are moved in the next one
WRITERS_END_S: Final = 40.0  # no transaction of a writer lasts longer (SETTINGS)
LOOK_EVERY_S: Final = 0.05
IN_THE_WAY: Final = (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled, psycopg.errors.DeadlockDetected)

_NOW = f"SELECT last_value, is_called, floor(extract(epoch FROM clock_timestamp()) / 86400)::bigint FROM {SEQUENCE}"
_WRITERS = """
SELECT virtualtransaction FROM pg_locks
 WHERE locktype = 'relation' AND relation = 'batches'::regclass AND mode = 'RowExclusiveLock'
   AND pid <> pg_backend_pid()   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
_NEWEST = "SELECT created_at_ms FROM run_details WHERE n >= %(lo)s AND n < %(hi)s ORDER BY n DESC LIMIT 1"
_ANY = "SELECT EXISTS (SELECT 1 FROM run_details WHERE n >= %(lo)s AND n < %(hi)s)"
# Runs that stay by themselves, and the runs that they began.
_STAYING = f"""
WITH RECURSIVE staying (id, n) AS (
    SELECT r.id, r.n FROM run_details AS r
     WHERE r.n >= %(lo)s AND r.n < %(hi)s
       AND (r.status IS NULL OR r.finished_at_ms >= %(before)s OR {KEPT}
            OR EXISTS (SELECT 1 FROM run_details AS p
                        WHERE p.id = r.parent_run_id AND NOT (p.n >= %(lo)s AND p.n < %(hi)s))
            OR EXISTS (SELECT 1 FROM run_details AS c WHERE c.parent_run_id = r.id AND c.status IS NULL)
            OR EXISTS (SELECT 1 FROM run_details AS s WHERE s.source_run_id = r.id AND s.status IS NULL))
    UNION
    SELECT c.id, c.n FROM staying AS s JOIN run_details AS c ON c.parent_run_id = s.id
     WHERE c.n >= %(lo)s AND c.n < %(hi)s)
SELECT s.id, s.n, coalesce(d.seq, h.seq, 0)
  FROM staying AS s JOIN run_details AS d ON d.n = s.n LEFT JOIN heads AS h ON h.n = s.n ORDER BY s.id"""
# Attempts at work have places of limits, which others look at by the number of the run without its lock.
_AT_WORK = "SELECT EXISTS (SELECT 1 FROM places WHERE n >= %(lo)s AND n < %(hi)s)"
# Head before details, as the append that ends a run has it.
_TAKE_HEAD = "SELECT 1 FROM heads WHERE id = %(id)s FOR UPDATE"
_TAKE_DETAILS = "SELECT n FROM run_details WHERE id = %(id)s FOR UPDATE"
_PAGE = """
SELECT n FROM run_details WHERE n > %(after)s AND n < %(hi)s AND status IS NOT NULL ORDER BY n LIMIT %(limit)s"""
_TAKE_PAGE = "SELECT 1 FROM run_details WHERE n = ANY(%(ns)s) ORDER BY id FOR UPDATE"
# Behind the locks. A parent that is there has a lower number, and is on this page or stays.
_GOING = f"""
SELECT r.n, p.n FROM run_details AS r LEFT JOIN run_details AS p ON p.id = r.parent_run_id
 WHERE r.n = ANY(%(ns)s) AND r.status IS NOT NULL AND r.finished_at_ms < %(before)s AND NOT {KEPT}
   AND NOT EXISTS (SELECT 1 FROM run_details AS c WHERE c.parent_run_id = r.id AND c.status IS NULL)
   AND NOT EXISTS (SELECT 1 FROM run_details AS s WHERE s.source_run_id = r.id AND s.status IS NULL)
 ORDER BY r.n"""
_DELETE = f"DELETE FROM run_details WHERE n = ANY(%(ns)s) RETURNING {GONE}, coalesce(seq, 0)"


class Days:
    """The parts of one database, by a session without a transaction. `fault` is called between the steps, for tests."""

    def __init__(self, db: Db, fault: Callable[[str], None]) -> None:
        self._db = db
        self._fault = fault

    async def cut(self, every_days: int) -> bool:
        """Let runs from now on be of a new part, if the present one is so many days old and has any."""
        last, is_called, today = (await self._rows(_NOW))[0]
        return is_called and today >= last // WIDTH + every_days and await self.begin(today)

    async def begin(self, day: int) -> bool:
        """Begin a part. Returns False if a transaction of a writer lasts for long; the next call completes it."""
        name, lo = name_of_day(day), day * WIDTH
        if name not in {part.name for part in await self.parts()}:  # else a process was killed after this
            async with self._db.transaction():
                for statement in begin(name, lo, lo + WIDTH):
                    await self._run(statement)
        self._fault("days.attached")
        if not await self._writers_have_ended():
            return False
        await self._run(f"SELECT setval('{SEQUENCE}', {lo}, false)")
        return True

    async def _writers_have_ended(self) -> bool:
        """Wait until transactions have ended that may not see the new part: attaching waits for none of them."""
        before = {id for (id,) in await self._rows(_WRITERS)}
        for _ in range(int(WRITERS_END_S / LOOK_EVERY_S)):
            if not before:
                return True
            await asyncio.sleep(LOOK_EVERY_S)
            before &= {id for (id,) in await self._rows(_WRITERS)}
        return False

    async def retire(self, ended_before_ms: int) -> Retired:
        """Drop each part whose runs ended before this time. What another session is in the way of is left."""
        total = Retired()
        if not await self.clear():
            return total
        for part in await self.parts():
            if await self._is_over(part, ended_before_ms):
                try:
                    done = await self._retire(part, ended_before_ms)
                except IN_THE_WAY as error:
                    log.warning("%s is dropped later: %s", part.name, message_of(error))
                    break
                total = Retired(total.runs + done.runs, total.events + done.events, total.parts + done.parts)
        return total

    async def parts(self) -> list[Part]:
        return [part_of(row) for row in await self._rows(PARTS)]

    async def clear(self) -> bool:
        try:
            for part in await self.parts():
                if part.pending:
                    await self._run(f"ALTER TABLE batches DETACH PARTITION {part.name} FINALIZE")
            for (name,) in await self._rows(LOOSE):
                await self._run(f"DROP TABLE {name}")
        except IN_THE_WAY as error:
            log.warning("parts of journals are dropped later: %s", message_of(error))
            return False
        return True

    async def _is_over(self, part: Part, before: int) -> bool:
        last, is_called, _ = (await self._rows(_NOW))[0]
        next_number = last + 1 if is_called else last
        if part.lo is None or part.hi > next_number:
            return False
        newest = await self._rows(_NEWEST, {"lo": part.lo, "hi": part.hi})
        return not newest or newest[0][0] < before

    async def _retire(self, part: Part, before: int) -> Retired:
        bounds = {"lo": part.lo, "hi": part.hi, "before": before}
        runs = events = 0
        for _ in range(ROUNDS):
            staying = await self._rows(_STAYING, bounds)
            ((count,),) = await self._rows("SELECT count(*) FROM run_details WHERE n >= %(lo)s AND n < %(hi)s", bounds)
            if await self._rows(_AT_WORK, bounds) == [(True,)]:
                break
            many = len(staying) > max(MOVED_RUNS_MIN, count * MOVED_SHARE_MAX)
            if many or sum(seq for _, _, seq in staying) > MOVED_EVENTS_MAX:
                break
            await self._run(f"COMMENT ON TABLE {part.name} IS '{RETIRING}'")
            self._fault("days.marked")
            for id, _, _ in staying:
                await self._move(id)
                self._fault("days.moved")
            deleted = await self._delete(bounds)
            runs, events = runs + deleted.runs, events + deleted.events
            if await self._rows(_ANY, bounds) == [(False,)]:
                self._fault("days.deleted")
                await self._drop(part)
                return Retired(runs, events, 1)
        return Retired(runs, events)

    async def _move(self, id: str) -> None:
        async with self._db.transaction():
            await self._rows(_TAKE_HEAD, {"id": id})
            found = await self._rows(_TAKE_DETAILS, {"id": id})
            if found and found[0][0] > 0:
                for table in NUMBERED:
                    await self._run(f"UPDATE {table} SET n = -n WHERE n = %(n)s", {"n": found[0][0]})

    async def _delete(self, bounds: dict[str, Any]) -> Retired:
        """The runs of a part that may go, and what is theirs, without their journals."""
        after = bounds["lo"] - 1
        runs = events = 0
        while page := await self._rows(_PAGE, {**bounds, "after": after, "limit": RUNS_PER_TRANSACTION}):
            ns = [n for (n,) in page]
            after = ns[-1]
            async with self._db.transaction():
                await self._run(_TAKE_PAGE, {"ns": ns})
                going: set[int] = set()
                for n, parent in await self._rows(_GOING, {**bounds, "ns": ns}):
                    if parent is None or parent in going:
                        going.add(n)
                rows = await self._rows(_DELETE, {"ns": list(going)})
                if rows:
                    values = of_gone([row[:-1] for row in rows])
                    for statement in DELETE_OWN:
                        await self._run(TEXTS[statement], values)
            self._fault("days.page")
            runs += len(rows)
            events += sum(row[-1] for row in rows)
        return Retired(runs, events)

    async def _drop(self, part: Part) -> None:
        await self._run(f"ALTER TABLE batches DETACH PARTITION {part.name} CONCURRENTLY")
        self._fault("days.detached")
        await self._run(f"DROP TABLE {part.name}")

    async def _rows(self, sql: str, values: Values = ()) -> list[Row]:
        return await (await self._db.execute(cast(Any, sql), values or None)).fetchall()

    async def _run(self, sql: str, values: Values = ()) -> None:
        await self._db.execute(cast(Any, sql), values or None)
