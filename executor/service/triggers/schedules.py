"""Schedules as people see them, and the task that starts their runs; `engine.schedules`.

The scheduler sleeps until the next fire time, in any number of processes: a fire time belongs to the one that records
it first (rule "one fire, one run" in docs/reference/store.md). The database is read every 5 seconds at least, because
other processes write schedules, too. If the engine's clock is set back, a fired time is not fired again."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import orjson
from msgspec import Struct
from msgspec.structs import replace

from compiler.diagnostics import CompileError
from compiler.plan import Settings
from executor.errors import Conflict, CronInvalid, NotFound, StoreError, WeftError, ZoneUnknown
from executor.kernel.core import facts as f
from executor.kernel.journal.codec import keep_plan
from executor.kernel.process.task import RETRY_S, BackgroundTask
from executor.kernel.read.peers import SCHEDULES
from executor.kernel.run.alerts import alerts_of_missed
from executor.kernel.run.new_run import Origin, check_input, new_run, new_run_id
from executor.kernel.store.run_rows import NewRun
from executor.kernel.store.topics.alerts import AlertRow
from executor.kernel.store.topics.contents import files_in
from executor.kernel.store.topics.hooks import HookRow
from executor.kernel.store.topics.schedules import CatchUp, Fire, Fired, FireRow, Overlap, ScheduleRow
from executor.kernel.values import cron
from executor.service.parts import Parts, Topic
from executor.service.triggers.declared import ScheduleSpec, StartOf, check_own_id, of_document, schedule_row, start_of
from executor.service.triggers.hooks import Hooks, PushView, push_view
from executor.service.triggers.polls import Polls
from executor.service.views import view_of

log = logging.getLogger("weft.triggers")

UPCOMING: Final = 5
FIRES_SHOWN: Final = 50
ERROR_CHARS_MAX: Final = 500


class ScheduleView(Struct, frozen=True):
    """Times are Unix milliseconds. `origin` is document if the block `trigger` of the workflow declares it.
    `queued_at_ms`: a scheduled time that waits for an open run to end. `error`: why no run started at the last
    scheduled time. `upcoming_ms`: the next five times, empty while disabled. `made_by`: who made or last changed it.
    `polls`: at its times it looks for events, of which each starts a run; `error` is then why it cannot. `push`:
    whether the service reports events by itself."""

    id: str
    workflow: str
    version: int | None
    trigger: str | None
    cron: str
    tz: str
    input: Any
    enabled: bool
    overlap: Overlap
    catch_up: CatchUp
    origin: str
    next_run_at_ms: int | None
    queued_at_ms: int | None
    last_run_at_ms: int | None
    last_run_id: str | None
    error: str | None
    created_at_ms: int
    updated_at_ms: int
    upcoming_ms: tuple[int, ...]
    made_by: str | None
    polls: bool
    push: PushView | None


class Schedules(Topic):
    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self.scheduler = Scheduler(parts, self)

    async def all(self, workflow: str | None = None) -> list[ScheduleView]:
        rows = await self._store.list_schedules(workflow)
        hooks = await self._store.list_hooks() if any(row.push is not None for row in rows) else []
        return [self._view(row, hooks) for row in rows]

    async def made_by(self, actor: str) -> list[str]:
        """List the ids of enabled schedules that this person or program made or last changed."""
        return [row.id for row in await self._store.list_schedules() if row.enabled and row.made_by == actor]

    async def get(self, id: str) -> ScheduleView:
        row = await self._row(id)
        return self._view(row, await self._store.list_hooks(id) if row.push is not None else [])

    async def fires(self, id: str) -> list[FireRow]:
        return await self._store.list_fires((await self._row(id)).id, FIRES_SHOWN)

    async def put(self, id: str, spec: ScheduleSpec) -> tuple[ScheduleView, bool]:
        """Make or change a schedule of the API; also returns True if it is new. Raises BadRequest, NotFound,
        CompileError, InputInvalid, and Conflict for one that a document declares."""
        check_own_id("schedule", id)
        old = await self._store.get_schedule(id)
        now_ms = self._clock.now_ms()
        row = schedule_row(id, spec, now_ms, "api")
        await self._run_of(row, await start_of(self._parts, row), now_ms, None)  # raises now if it cannot be started
        row = await self._store.put_schedule(row)
        self.scheduler.wake()
        return self._view(row), old is None

    async def delete(self, id: str) -> None:
        if (await self._row(id)).origin == "document":
            raise of_document("schedule", id)
        await self._store.delete_schedule(id)

    async def switch(self, id: str, enabled: bool) -> ScheduleView:
        """Enable or disable a schedule. Enabling an enabled one changes nothing, unless it has no next fire time
        because its time zone was not known. Raises NotFound, ZoneUnknown."""
        row = await self._row(id)
        while row.enabled != enabled or (enabled and row.next_run_at_ms is None):
            now_ms, times = self._clock.now_ms(), (row.cron, row.tz)
            next_ms = cron.parse(*times).next(now_ms) if enabled else None
            switched = await self._store.switch_schedule(id, enabled, next_ms, now_ms, times)
            if switched is None:
                raise _not_found(id)
            row = switched
            self.scheduler.wake()
            if (row.cron, row.tz) == times:
                break  # else it was changed meanwhile, and the computed time is not of its new times
        return await self.get(id)

    async def run_now(self, id: str) -> str:
        """Start a run beside the fire times of the schedule, even if it is disabled. Returns its id. One that polls
        does so now; Conflict if that starts no run. Raises NotFound, CompileError, InputInvalid, Conflict."""
        row = await self._row(id)
        if row.poll is not None:
            return await self._poll_now(row)
        now_ms = self._clock.now_ms()
        start = await start_of(self._parts, row)
        run = await self._run_of(row, start, now_ms, f"cron:{id}:now:{secrets.token_hex(8)}")
        fired = await self._fire(Fire(id, None, 0, None, now_ms, now_ms, row.overlap, run), start)
        if fired is None or fired.run is None:
            raise _not_found(id)
        return fired.run.id

    async def _poll_now(self, row: ScheduleRow) -> str:
        task = await self.scheduler.polls.begin(row, self._clock.now_ms()) if row.enabled else None
        started = [] if task is None else await asyncio.shield(task)
        if started:
            return started[0]
        error = (await self._row(row.id)).error
        message = "it is off" if not row.enabled else "a poll is under way" if task is None else error
        raise Conflict(message or "there is nothing new", code="no_events")

    def preview(self, expression: str, zone: str) -> tuple[int, ...]:
        return tuple(cron.parse(expression, zone).upcoming(self._clock.now_ms(), UPCOMING))

    async def alerts_of(self, row: ScheduleRow, due_ms: int) -> tuple[AlertRow, ...]:
        """Return the alerts about a missed fire time, for operators and for the addresses of the workflow."""
        try:
            settings = (await start_of(self._parts, row)).plan.settings
        except StoreError:
            raise
        except Exception:  # the addresses of the installation are known all the same
            settings = Settings()
        now_ms = self._clock.now_ms()
        return alerts_of_missed(row.id, row.workflow, due_ms, now_ms, settings, self._parts.services.alerts)

    async def start(self, fire: Fire, row: ScheduleRow) -> Fired | None:
        """Fire once, for the scheduler: create the run, or record why there is none. Returns None if another process
        has done so. Raises StoreError."""
        key = f"cron:{row.id}:{fire.due_ms}"
        try:
            start = await start_of(self._parts, row)
            run = await self._run_of(row, start, fire.due_ms, key)
        except StoreError:
            raise
        except Exception as error:
            is_ours = not isinstance(error, WeftError | CompileError)
            log.warning("schedule %s could not start a run: %s", row.id, error, exc_info=is_ours)
            text = "internal error; see the server log" if is_ours else str(error)[:ERROR_CHARS_MAX]
            alerts = fire.alerts or await self.alerts_of(row, fire.due_ms)
            return await self._store.fire(replace(fire, error=text, alerts=alerts))
        return await self._fire(replace(fire, run=run), start)

    async def _fire(self, fire: Fire, start: StartOf) -> Fired | None:
        fired = await self._store.fire(fire)
        if fired is not None and fired.run is not None:
            keep_plan(start.plan)
            self._parts.wake(fired.run.id)
        return fired

    async def _run_of(self, row: ScheduleRow, start: StartOf, due_ms: int, key: str | None) -> NewRun:
        """Make the run. The input is the schedule's; a `schedule` block also gets the times. Raises InputInvalid."""
        now_ms = self._clock.now_ms()
        checked = await check_input(start.plan, orjson.loads(row.input), self._parts.services.sandbox.matches)
        if start.node.type == "schedule":
            checked = {**checked, "scheduled_at": due_ms, "fired_at": now_ms}
        requested = f.StartRequested(now_ms, new_run_id(now_ms))
        # A person who may make schedules may use all files; the author of a document may not.
        files = files_in(row.input) if row.origin == "api" else []
        origin = Origin(start.workflow, start.version)
        return new_run(start.plan, requested, origin, checked, idempotency_key=key, files=files)

    def _view(self, row: ScheduleRow, hooks: Sequence[HookRow] = ()) -> ScheduleView:
        return _view(row, push_view(row, hooks, self._clock.now_ms()))

    async def _row(self, id: str) -> ScheduleRow:
        row = await self._store.get_schedule(id)
        if row is None:
            raise _not_found(id)
        return row


def _view(row: ScheduleRow, push: PushView | None) -> ScheduleView:
    upcoming: tuple[int, ...] = ()
    if row.next_run_at_ms is not None:
        upcoming = (row.next_run_at_ms,)
        with suppress(CronInvalid, ZoneUnknown):  # the machine's time zones are others than they were
            upcoming += tuple(cron.parse(row.cron, row.tz).upcoming(row.next_run_at_ms, UPCOMING - 1))
    polls = row.poll is not None
    given = {} if polls else orjson.loads(row.input)
    return view_of(ScheduleView, row, input=given, upcoming_ms=upcoming, polls=polls, push=push)


def _not_found(id: str) -> NotFound:
    return NotFound(f"there is no schedule '{id}'", code="schedule_not_found")


# --- the scheduler ---


IDLE_MAX_S: Final = 5.0
QUEUED_POLL_S: Final = 1.0  # a fire time waits for the end of a run, which may be another process's
QUEUED_PAUSE_S: Final = 0.02  # between two looks at queued fire times, however many runs end meanwhile
BATCH: Final = 100
# A fire time that is later than this was missed: no process was there.
LATE_MS: Final = 60_000
CATCH_UP_MAX: Final = 100


class Scheduler(Topic):
    def __init__(self, parts: Parts, starter: Schedules) -> None:
        super().__init__(parts)
        self._starter = starter
        self._task = BackgroundTask("scheduler", self._step, failed="schedules could not be checked", log=log)
        self._queued = True  # for all that is known
        self.polls = Polls(parts, self._task.wake.set, starter.alerts_of)
        self.hooks = Hooks(parts, self.polls, self.wake)

    def start(self) -> None:
        self._clock.on_jump(self._task.wake.set)
        self._parts.owned.on_left(self._run_left)
        self._task.start()
        self.hooks.start()

    async def stop(self) -> None:
        """Stop. Fires under way are finished or left for the next process; nothing is half done."""
        await self._task.stop()
        await self.hooks.stop()
        await self.polls.stop()

    def wake(self) -> None:
        self.changed_elsewhere()
        self._parts.peers.notify(SCHEDULES, "")

    def changed_elsewhere(self) -> None:
        self._task.wake.set()
        self.hooks.wake()

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
        if row.poll is not None:
            return await self.polls.begin(row, now_ms) is not None
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
