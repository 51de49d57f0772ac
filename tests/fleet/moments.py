"""Schedules of the fleet, and the moments at which each must start one run.

A cron expression has minutes, and a test has seconds: so the expression is of once a year, and another hand sets the
next time. It does so some seconds ahead: then all processes know of the moment, and all come when it is there.
"""

from __future__ import annotations

import asyncio
import random
import time

import psycopg

SCHEDULES = 20
AT_ONCE = 4  # due at the same millisecond
EVERY_S = 2.0
# Processes look for changes every five seconds: of some moments they hear before, of others behind.
AHEAD_S = (1.0, 8.0)
YEARLY = "0 0 1 1 *"
FAR = 8 * 3_600_000  # what is later is the expression's own time

SET = """
UPDATE schedules SET next_run_at_ms = %(at)s WHERE id = ANY(%(ids)s) AND next_run_at_ms > %(now)s + %(far)s
RETURNING id"""
PENDING = "SELECT id FROM schedules WHERE next_run_at_ms < %(now)s + %(far)s"

Moment = tuple[str, int]  # schedule, due time in milliseconds


class Moments:
    """`are_set`: each must have one run. `may_be_set`: the answer of the database was lost."""

    def __init__(self, address: str, choose: random.Random) -> None:
        self._address = address
        self._choose = choose
        self.ids = [f"timed-{n}" for n in range(SCHEDULES)]
        self.are_set: set[Moment] = set()
        self.may_be_set: set[Moment] = set()

    async def set_for_ever(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S * self._choose.uniform(0.5, 1.5))
            await self._set(self._choose.sample(self.ids, AT_ONCE))

    async def pending(self) -> list[str]:
        """Schedules of which a moment is still to be taken."""
        async with await psycopg.AsyncConnection.connect(self._address, autocommit=True) as session:
            rows = await (await session.execute(PENDING, {"now": _now_ms(), "far": FAR})).fetchall()
        return [id for (id,) in rows]

    async def _set(self, ids: list[str]) -> None:
        now_ms = _now_ms()
        at_ms = now_ms + round(self._choose.uniform(*AHEAD_S) * 1000)
        moments = {(id, at_ms) for id in ids}
        try:
            async with await psycopg.AsyncConnection.connect(self._address, autocommit=True) as session:
                await session.execute("SET synchronous_commit = on")  # a crash must not take back what was set
                self.may_be_set |= moments
                change = {"at": at_ms, "ids": ids, "now": now_ms, "far": FAR}
                rows = await (await session.execute(SET, change)).fetchall()
                self.may_be_set -= moments
                self.are_set |= {(id, at_ms) for (id,) in rows}
        except psycopg.OperationalError:
            pass  # as others, it meets a database that is down


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
