"""Schedules as people see them, and how one of their fire times becomes a run; `engine.schedules`. When they are due is
the business of `scheduler.py`."""

from __future__ import annotations

import logging
import re
import secrets
from contextlib import suppress
from typing import Annotated, Any, Final

import orjson
from msgspec import Meta, Struct
from msgspec.structs import replace

from compiler.diagnostics import CompileError
from compiler.plan import Settings
from executor.errors import BadRequest, Conflict, CronInvalid, NotFound, StoreError, WeftError, ZoneUnknown
from executor.kernel.core import facts as f
from executor.kernel.journal.reader import keep_plan
from executor.kernel.run.alerts import alerts_of_missed
from executor.kernel.run.answers import check_input
from executor.kernel.run.new_run import Origin, new_run, new_run_id
from executor.kernel.store.run_rows import NewRun
from executor.kernel.store.topics.alerts import AlertRow
from executor.kernel.store.topics.audit import present_actor
from executor.kernel.store.topics.contents import files_in
from executor.kernel.store.topics.schedules import CatchUp, Fire, Fired, FireRow, Overlap, ScheduleRow
from executor.kernel.values import cron
from executor.service.parts import Parts
from executor.service.triggers.declared import StartOf, Version, start_of
from executor.service.triggers.scheduler import Scheduler
from executor.service.views import view_of

log = logging.getLogger("weft.triggers")

UPCOMING: Final = 5
FIRES_SHOWN: Final = 50
ERROR_CHARS_MAX: Final = 500
# Ids that people choose through the API. Those of documents have a colon in them.
API_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")


class ScheduleSpec(Struct, forbid_unknown_fields=True):
    """The settings of a schedule. `version` defaults to the active one, `trigger` to the trigger of the workflow."""

    workflow: str
    cron: Annotated[str, Meta(extra_json_schema=cron.EXPRESSION_SCHEMA)]
    tz: str = "UTC"
    version: Version | None = None
    trigger: str | None = None
    input: dict[str, Any] = {}
    enabled: bool = True
    overlap: Overlap = "skip"
    catch_up: CatchUp = "one"


class ScheduleView(Struct, frozen=True):
    """Times are Unix milliseconds. `origin` is document if the block `trigger` of the workflow declares it.
    `queued_at_ms`: a scheduled time that waits for an open run to end. `error`: why no run started at the last
    scheduled time. `upcoming_ms`: the next five times, empty while disabled. `made_by`: who made or last changed it."""

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


class Schedules:
    """See the module text. Every method that changes something returns after the change is on disk."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._store = parts.store
        self.scheduler = Scheduler(parts, self)

    async def all(self, workflow: str | None = None) -> list[ScheduleView]:
        """List schedules by id, of one workflow or of all."""
        return [_view(row) for row in await self._store.list_schedules(workflow)]

    async def made_by(self, actor: str) -> list[str]:
        """List the ids of enabled schedules that this person or program made or last changed."""
        return [row.id for row in await self._store.list_schedules() if row.enabled and row.made_by == actor]

    async def get(self, id: str) -> ScheduleView:
        """Raises NotFound."""
        return _view(await self._row(id))

    async def fires(self, id: str) -> list[FireRow]:
        """List the last fire times and their results, newest first."""
        return await self._store.list_fires((await self._row(id)).id, FIRES_SHOWN)

    async def put(self, id: str, spec: ScheduleSpec) -> tuple[ScheduleView, bool]:
        """Make or change a schedule of the API; also returns True if it is new. Raises BadRequest, NotFound,
        CompileError, InputInvalid, and Conflict for one that a document declares."""
        if not API_ID.fullmatch(id) and ":" not in id:
            raise BadRequest(
                f"{id[:80]!r} is not a valid schedule id", code="id_invalid", hint="use only letters, digits, _ . and -"
            )
        old = await self._store.get_schedule(id)
        if ":" in id or (old is not None and old.origin == "document"):
            raise _of_document(id)
        now_ms = self._parts.clock.now_ms()
        row = ScheduleRow(
            id=id,
            workflow=spec.workflow,
            version=spec.version,
            trigger=spec.trigger,
            cron=spec.cron,
            tz=spec.tz,
            input=orjson.dumps(spec.input),
            enabled=spec.enabled,
            declared=None,
            overlap=spec.overlap,
            catch_up=spec.catch_up,
            origin="api",
            next_run_at_ms=cron.parse(spec.cron, spec.tz).next(now_ms),
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
            made_by=present_actor(),
        )
        await self._run_of(row, await start_of(self._parts, row), now_ms, None)  # raises now if it cannot be started
        row = await self._store.put_schedule(row)
        self.scheduler.wake()
        return _view(row), old is None

    async def delete(self, id: str) -> None:
        """Delete a schedule; its runs stay. Raises NotFound, and Conflict for one that a document declares."""
        if (await self._row(id)).origin == "document":
            raise _of_document(id)
        await self._store.delete_schedule(id)

    async def switch(self, id: str, enabled: bool) -> ScheduleView:
        """Enable or disable a schedule. When enabled, the next fire time is the first from now. Enabling an enabled one
        changes nothing, unless it has no next fire time because its time zone was not known. Raises NotFound,
        ZoneUnknown."""
        row = await self._row(id)
        while row.enabled != enabled or (enabled and row.next_run_at_ms is None):
            now_ms, times = self._parts.clock.now_ms(), (row.cron, row.tz)
            next_ms = cron.parse(*times).next(now_ms) if enabled else None
            switched = await self._store.switch_schedule(id, enabled, next_ms, now_ms, times)
            if switched is None:
                raise _not_found(id)
            row = switched
            self.scheduler.wake()
            if (row.cron, row.tz) == times:
                break  # else it was changed meanwhile, and the computed time is not of its new times
        return _view(row)

    async def run_now(self, id: str) -> str:
        """Start a run beside the fire times of the schedule, even if it is disabled or other runs are open. Returns the
        run's id. Raises NotFound, CompileError, InputInvalid."""
        row = await self._row(id)
        now_ms = self._parts.clock.now_ms()
        start = await start_of(self._parts, row)
        run = await self._run_of(row, start, now_ms, f"cron:{id}:now:{secrets.token_hex(8)}")
        fired = await self._fire(Fire(id, None, 0, None, now_ms, now_ms, row.overlap, run), start)
        if fired is None or fired.run is None:
            raise _not_found(id)
        return fired.run.id

    def preview(self, expression: str, zone: str) -> tuple[int, ...]:
        """Return the next five fire times. Raises CronInvalid, ZoneUnknown."""
        return tuple(cron.parse(expression, zone).upcoming(self._parts.clock.now_ms(), UPCOMING))

    async def alerts_of(self, row: ScheduleRow, due_ms: int) -> tuple[AlertRow, ...]:
        """Return the alerts about a fire time that was missed, for operators and for the present addresses of the
        workflow."""
        try:
            settings = (await start_of(self._parts, row)).plan.settings
        except StoreError:
            raise
        except Exception:  # the addresses of the installation are known all the same
            settings = Settings()
        now_ms = self._parts.clock.now_ms()
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
        except (WeftError, CompileError) as error:
            log.warning("schedule %s could not start a run: %s", row.id, error)
            alerts = fire.alerts or await self.alerts_of(row, fire.due_ms)
            return await self._store.fire(replace(fire, error=str(error)[:ERROR_CHARS_MAX], alerts=alerts))
        except Exception:
            log.exception("schedule %s could not start a run", row.id)
            error_text = "internal error; see the server log"
            alerts = fire.alerts or await self.alerts_of(row, fire.due_ms)
            return await self._store.fire(replace(fire, error=error_text, alerts=alerts))
        return await self._fire(replace(fire, run=run), start)

    async def _fire(self, fire: Fire, start: StartOf) -> Fired | None:
        fired = await self._store.fire(fire)
        if fired is not None and fired.run is not None:
            keep_plan(start.plan)
            self._parts.wake(fired.run.id)
        return fired

    async def _run_of(self, row: ScheduleRow, start: StartOf, due_ms: int, key: str | None) -> NewRun:
        """Make the run. The input is the schedule's; a `schedule` block also gets the times. Raises InputInvalid."""
        now_ms = self._parts.clock.now_ms()
        checked = await check_input(start.plan, orjson.loads(row.input), self._parts.services.sandbox.matches)
        if start.node.type == "schedule":
            checked = {**checked, "scheduled_at": due_ms, "fired_at": now_ms}
        requested = f.StartRequested(now_ms, new_run_id(now_ms))
        # A person who may make schedules may use all files; the author of a document may not.
        files = files_in(row.input) if row.origin == "api" else []
        origin = Origin(start.workflow, start.version)
        return new_run(start.plan, requested, origin, checked, idempotency_key=key, files=files)

    async def _row(self, id: str) -> ScheduleRow:
        row = await self._store.get_schedule(id)
        if row is None:
            raise _not_found(id)
        return row


def _view(row: ScheduleRow) -> ScheduleView:
    upcoming: tuple[int, ...] = ()
    if row.next_run_at_ms is not None:
        upcoming = (row.next_run_at_ms,)
        with suppress(CronInvalid, ZoneUnknown):  # the machine's time zones are others than they were
            upcoming += tuple(cron.parse(row.cron, row.tz).upcoming(row.next_run_at_ms, UPCOMING - 1))
    return view_of(ScheduleView, row, input=orjson.loads(row.input), upcoming_ms=upcoming)


def _not_found(id: str) -> NotFound:
    return NotFound(f"there is no schedule '{id}'", code="schedule_not_found")


def _of_document(id: str) -> Conflict:
    return Conflict(
        f"schedule '{id}' belongs to a block of its workflow",
        code="declared_by_document",
        hint="change the block and publish a new version; here you can only enable or disable it",
    )
