"""Schedules: their due times, and the outcomes."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from executor.kernel.store.topics.schedules import FireOutcome
from executor.kernel.values.cron import EXPRESSION_SCHEMA
from executor.service.triggers.declared import API_ID, ScheduleSpec
from executor.service.triggers.schedules import ScheduleView
from executor.service.views import view_of
from server.api.runs import RunAccepted, run_urls
from server.http.response import Json
from server.http.table import Call, Param, Routes, RouteSpec, links_to


class ScheduleList(Struct, frozen=True):
    """The schedules, by id."""

    schedules: list[ScheduleView]


class FireView(Struct, frozen=True):
    """The outcome at `at_ms` of the scheduled time `due_ms`."""

    due_ms: int
    at_ms: int
    outcome: FireOutcome
    run: str | None
    error: str | None


class ScheduleDetail(ScheduleView, frozen=True, kw_only=True):
    """`fires`: the last 50 scheduled times, newest first."""

    fires: list[FireView]


class CronPreview(Struct, frozen=True):
    """`upcoming_ms`: the next five times of the expression in that time zone."""

    expr: str
    tz: str
    upcoming_ms: tuple[int, ...]


class TriggerDeleted(Struct, frozen=True):
    id: str
    deleted: bool


class TriggersQuery(Struct, frozen=True):
    workflow: Annotated[str | None, Meta(description="Only for this workflow.")] = None


class CronQuery(Struct, frozen=True):
    expr: Annotated[
        str,
        Meta(
            description="Minute, hour, day of the month, month, day of the week.",
            extra_json_schema=EXPRESSION_SCHEMA,
            extra={"hint": "GET /api/cron?expr=0+9+*+*+MON-FRI&tz=UTC"},
        ),
    ]
    tz: Annotated[str, Meta(description="A time zone such as Europe/Berlin. Default: UTC.")] = "UTC"


# The ids that this API may create; ids of triggers that a document declares have a colon.
OWN_ID = Param("id", "A name for it.", {"type": "string", "pattern": f"^{API_ID.pattern}$"}, "path", required=True)
_ONE = "/api/schedules/{id}"

route = Routes("triggers", RouteSpec)


@route("GET", "/api/schedules", "All schedules", needs="viewer")
async def list_all(call: Call, query: TriggersQuery) -> ScheduleList:
    """All schedules, by id."""
    return ScheduleList(await call.engine.schedules.all(query.workflow))


@route("GET", _ONE, "A schedule and its last times", needs="viewer")
async def read(call: Call, id: str) -> ScheduleDetail:
    return await _detail(call, await call.engine.schedules.get(id))


@route(
    "PUT",
    _ONE,
    "Create or change a schedule",
    needs="editor",
    statuses=(201, 409),
    params=(OWN_ID,),
    links=links_to(_ONE, "GET", "POST /enable", "POST /disable", "POST /run", "DELETE"),
)
async def put(call: Call, id: str, body: ScheduleSpec) -> Json[ScheduleDetail]:
    """201 for a new schedule, 200 for a change. 409: the schedule is declared by a document; change it there."""
    view, created = await call.engine.schedules.put(id, body)
    return Json(await _detail(call, view), 201 if created else 200)


@route("DELETE", _ONE, "Delete a schedule", needs="editor", statuses=(409,))
async def delete(call: Call, id: str) -> TriggerDeleted:
    """Delete a schedule. Its runs are kept. 409: it is declared by a document; remove it there."""
    await call.engine.schedules.delete(id)
    return TriggerDeleted(id, True)


@route("POST", f"{_ONE}/enable", "Enable a schedule", needs="editor", statuses=(422,))
async def enable(call: Call, id: str) -> ScheduleDetail:
    """The next run is at the first scheduled time from now."""
    return await _detail(call, await call.engine.schedules.switch(id, True))


@route("POST", f"{_ONE}/disable", "Disable a schedule", needs="editor")
async def disable(call: Call, id: str) -> ScheduleDetail:
    """No runs start, and missed times are not made up for."""
    return await _detail(call, await call.engine.schedules.switch(id, False))


@route("POST", f"{_ONE}/run", "Start a run of a schedule now", needs="editor", status=202, statuses=(422,))
async def run_now(call: Call, id: str) -> Json[RunAccepted]:
    """Start a run, even if the schedule is disabled or other runs are open."""
    run = await call.engine.schedules.run_now(id)
    row = await call.engine.runs.row(run)
    accepted = RunAccepted(row.id, row.workflow, row.version, row.status, True, urls=run_urls(row.id))
    return Json(accepted, 202, {"Location": f"/api/runs/{run}"})


@route("GET", "/api/cron", "The next times of a cron expression", needs="viewer", statuses=(422,))
async def preview(call: Call, query: CronQuery) -> CronPreview:
    return CronPreview(query.expr, query.tz, call.engine.schedules.preview(query.expr, query.tz))


async def _detail(call: Call, view: ScheduleView) -> ScheduleDetail:
    fires = await call.engine.schedules.fires(view.id)
    return view_of(ScheduleDetail, view, fires=[view_of(FireView, fire, run=fire.run_id) for fire in fires])
