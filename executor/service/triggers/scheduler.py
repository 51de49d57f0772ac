"""The scheduler: one task of the engine that sleeps until the next fire time and fires what is due.

Any number of processes may do so on one database: a fire time belongs to the process that records it first (rule "one
fire, one run" in docs/reference/store.md). The database is read every 5 seconds at least, because other processes write
schedules, too. Times come from the engine's clock. If that is set back, a fired time is not fired again: the next fire
time stays where it is.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, Protocol

from msgspec.structs import replace

from executor.errors import CronInvalid, StoreError, ZoneUnknown
from executor.kernel.process.task import RETRY_S, BackgroundTask
from executor.kernel.read.elsewhere import SCHEDULES
from executor.kernel.store.topics.alerts import AlertRow
from executor.kernel.store.topics.schedules import Fire, Fired, ScheduleRow
from executor.kernel.values import cron
from executor.service.parts import Parts

log = logging.getLogger("weft.triggers")

IDLE_MAX_S: Final = 5.0
QUEUED_POLL_S: Final = 1.0  # a fire time waits for the end of a run, which may be another process's
QUEUED_PAUSE_S: Final = 0.02  # between two looks at queued fire times, however many runs end meanwhile
BATCH: Final = 100
# A fire time that is later than this was missed: no process was there.
LATE_MS: Final = 60_000
CATCH_UP_MAX: Final = 100


class Starter(Protocol):
    """The part of `Schedules` that the scheduler needs."""

    async def start(self, fire: Fire, row: ScheduleRow) -> Fired | None:
        """Create the run of a fire time and record the fire. Returns None if another process has done so. Raises
        StoreError."""

    async def alerts_of(self, row: ScheduleRow, due_ms: int) -> tuple[AlertRow, ...]:
        """Return the alerts about a fire time that was missed. Raises StoreError."""


class Scheduler:
    """Starts the runs of schedules whose time has come, one task in each process."""

    def __init__(self, parts: Parts, starter: Starter) -> None:
        self._store = parts.store
        self._clock = parts.clock
        self._owned = parts.owned
        self._elsewhere = parts.elsewhere
        self._starter = starter
        self._task = BackgroundTask("scheduler", self._step, failed="schedules could not be checked", log=log)
        self._queued = True  # for all that is known

    def start(self) -> None:
        self._clock.on_jump(self._task.wake.set)
        self._owned.on_left(self._run_left)
        self._task.start()

    async def stop(self) -> None:
        """Stop. Fires under way are finished or left for the next process; nothing is half done."""
        await self._task.stop()

    def wake(self) -> None:
        """Called when schedules have changed."""
        self.changed_elsewhere()
        self._elsewhere.tell(SCHEDULES, "")

    def changed_elsewhere(self) -> None:
        """Called when another process has changed schedules."""
        self._task.wake.set()

    def _run_left(self) -> None:
        """Called when a run of this process ends or waits: a queued fire time may wait for it."""
        if self._queued:
            self._task.wake.set()

    async def _step(self) -> float:
        if self._queued:
            await asyncio.sleep(QUEUED_PAUSE_S)
        due, done = await self.deal_with_due()
        if done:
            return 0
        return RETRY_S if due else await self._idle_s()

    async def deal_with_due(self) -> tuple[int, int]:
        """Do one round over the schedules that are due now. Returns their number, and the number of those for which
        something was done. Raises StoreError."""
        now_ms = self._clock.now_ms()
        rows = await self._store.due_schedules(now_ms, BATCH)
        # All at once: schedules that are due at the full hour share a few commits.
        results = await asyncio.gather(*(self._deal_with(row, now_ms) for row in rows), return_exceptions=True)
        done = 0
        for row, result in zip(rows, results, strict=True):
            if isinstance(result, StoreError):
                raise result
            if isinstance(result, BaseException):
                log.error("schedule %s was skipped", row.id, exc_info=result)  # the others continue
            else:
                done += result
        return len(rows), done

    async def _deal_with(self, row: ScheduleRow, now_ms: int) -> bool:
        done = False
        if row.queued_at_ms is not None:
            queued = Fire(row.id, "queued", row.queued_at_ms, None, row.queued_at_ms, now_ms, row.overlap)
            done = await self._starter.start(queued, row) is not None
        expected_ms = row.next_run_at_ms
        if expected_ms is None or expected_ms > now_ms:
            return done
        try:
            times = cron.parse(row.cron, row.tz)
        except (CronInvalid, ZoneUnknown) as error:  # the machine's time zones are others than they were
            lost = Fire(row.id, "due", expected_ms, None, expected_ms, now_ms, row.overlap, error=error.message)
            lost = replace(lost, alerts=await self._starter.alerts_of(row, expected_ms))
            return await self._store.fire(lost) is not None or done
        last_ms = max(expected_ms, times.previous(now_ms) or 0)
        times_due = _before(times, last_ms, expected_ms) if row.catch_up == "all" else [last_ms]
        after = [*times_due[1:], times.next(now_ms)]
        for due_ms, next_ms in zip(times_due, after, strict=True):
            fire = Fire(row.id, "due", expected_ms, next_ms, due_ms, now_ms, row.overlap)
            if now_ms - expected_ms > LATE_MS:
                fire = replace(fire, alerts=await self._starter.alerts_of(row, due_ms))
            if row.catch_up == "none" and now_ms - due_ms > LATE_MS:
                fired = await self._store.fire(fire)
            else:
                fired = await self._starter.start(fire, row)
            if fired is None:
                return done  # another process is at it
            self._queued = self._queued or fired.outcome == "queued"
            done = True
            if next_ms is not None:
                expected_ms = next_ms
        return done

    async def _idle_s(self) -> float:
        next_ms, self._queued = await self._store.next_schedule_ms()
        idle_s = QUEUED_POLL_S if self._queued else IDLE_MAX_S
        if next_ms is not None:
            idle_s = min(idle_s, max(0.0, (next_ms - self._clock.now_ms()) / 1000) + 0.001)
        return idle_s


def _before(times: cron.Cron, last_ms: int, first_ms: int) -> list[int]:
    """Return the fire times from `first_ms` to `last_ms`, oldest first; of more than 100 the last 100."""
    found = [last_ms]
    while len(found) < CATCH_UP_MAX:
        earlier = times.previous(found[-1] - 1)
        if earlier is None or earlier < first_ms:
            break
        found.append(earlier)
    return found[::-1]
