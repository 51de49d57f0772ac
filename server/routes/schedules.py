"""Schedules: their due times, and the outcomes."""

from __future__ import annotations

from starlette.responses import Response

from executor.service.triggers.schedules import API_ID, ScheduleSpec, ScheduleView
from executor.service.views import view_of
from server.http.body import read_as
from server.http.call import Call
from server.http.response import json_response
from server.http.table import Link, Param, RouteSpec
from server.wire.runs import RunAccepted, run_urls
from server.wire.triggers import (
    CronPreview,
    CronQuery,
    FireView,
    ScheduleDetail,
    ScheduleList,
    TriggerDeleted,
    TriggersQuery,
)


async def list_all(call: Call) -> Response:
    """All schedules, by id."""
    return json_response(ScheduleList(await call.engine.schedules.all(call.query(TriggersQuery).workflow)))


async def read(call: Call) -> Response:
    """A schedule with its last times and their outcomes."""
    return json_response(await _detail(call, await call.engine.schedules.get(call.path("id"))))


async def put(call: Call) -> Response:
    """201 for a new schedule, 200 for a change. 409: the schedule is declared by a document; change it there."""
    spec = await read_as(call.request, call.limits, ScheduleSpec)
    view, created = await call.engine.schedules.put(call.path("id"), spec)
    return json_response(await _detail(call, view), 201 if created else 200)


async def delete(call: Call) -> Response:
    """Delete a schedule. Its runs are kept. 409: it is declared by a document; remove it there."""
    await call.engine.schedules.delete(call.path("id"))
    return json_response(TriggerDeleted(call.path("id"), True))


async def enable(call: Call) -> Response:
    """The next run is at the first scheduled time from now."""
    return json_response(await _detail(call, await call.engine.schedules.switch(call.path("id"), True)))


async def disable(call: Call) -> Response:
    """No runs start, and missed times are not made up for."""
    return json_response(await _detail(call, await call.engine.schedules.switch(call.path("id"), False)))


async def run_now(call: Call) -> Response:
    """Start a run, even if the schedule is disabled or other runs are open."""
    run = await call.engine.schedules.run_now(call.path("id"))
    row = await call.engine.runs.row(run)
    accepted = RunAccepted(row.id, row.workflow, row.version, row.status, True, run_urls(row.id))
    return json_response(accepted, 202, {"Location": f"/api/runs/{run}"})


async def preview(call: Call) -> Response:
    """The next five times of an expression."""
    query = call.query(CronQuery)
    return json_response(CronPreview(query.expr, query.tz, call.engine.schedules.preview(query.expr, query.tz)))


async def _detail(call: Call, view: ScheduleView) -> ScheduleDetail:
    fires = await call.engine.schedules.fires(view.id)
    shown = [FireView(f.due_ms, f.at_ms, f.outcome, f.run_id, f.error) for f in fires]
    return view_of(ScheduleDetail, view, fires=shown)


# What is made by this API is named so; those that documents declare have a colon in them.
OWN_ID = Param("id", "A name for it.", {"type": "string", "pattern": f"^{API_ID.pattern}$"}, "path", required=True)
_ONE = "/api/schedules/{id}"
_SAME = {"id": "$response.body#/id"}

TABLE = (
    RouteSpec(
        "GET",
        "/api/schedules",
        list_all,
        "All schedules",
        "triggers",
        needs="viewer",
        answer=ScheduleList,
        query=TriggersQuery,
    ),
    RouteSpec(
        "GET",
        _ONE,
        read,
        "A schedule and its last times",
        "triggers",
        needs="viewer",
        answer=ScheduleDetail,
        statuses=(404,),
    ),
    RouteSpec(
        "PUT",
        _ONE,
        put,
        "Create or change a schedule",
        "triggers",
        needs="editor",
        body=ScheduleSpec,
        answer=ScheduleDetail,
        statuses=(201, 400, 404, 409, 422),
        params=(OWN_ID,),
        links=(
            Link("GET", _ONE, _SAME),
            Link("POST", f"{_ONE}/enable", _SAME),
            Link("POST", f"{_ONE}/disable", _SAME),
            Link("POST", f"{_ONE}/run", _SAME),
            Link("DELETE", _ONE, _SAME),
        ),
    ),
    RouteSpec(
        "DELETE",
        _ONE,
        delete,
        "Delete a schedule",
        "triggers",
        needs="editor",
        answer=TriggerDeleted,
        statuses=(404, 409),
    ),
    RouteSpec(
        "POST",
        f"{_ONE}/enable",
        enable,
        "Enable a schedule",
        "triggers",
        needs="editor",
        answer=ScheduleDetail,
        statuses=(404, 422),
    ),
    RouteSpec(
        "POST",
        f"{_ONE}/disable",
        disable,
        "Disable a schedule",
        "triggers",
        needs="editor",
        answer=ScheduleDetail,
        statuses=(404,),
    ),
    RouteSpec(
        "POST",
        f"{_ONE}/run",
        run_now,
        "Start a run of a schedule now",
        "triggers",
        needs="editor",
        answer=RunAccepted,
        status=202,
        statuses=(404, 422),
    ),
    RouteSpec(
        "GET",
        "/api/cron",
        preview,
        "The next times of a cron expression",
        "triggers",
        needs="viewer",
        answer=CronPreview,
        statuses=(400, 422),
        query=CronQuery,
    ),
)
