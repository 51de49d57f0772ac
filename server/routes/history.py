"""Looking back: a run as it stood at any event, and two runs side by side."""

from __future__ import annotations

from starlette.responses import Response

from executor.views.diff import RunDiff
from executor.views.state import RunState
from server.http.call import Call
from server.http.response import json_response
from server.http.table import RouteSpec
from server.wire.runs import StateQuery


async def state(call: Call) -> Response:
    """The state of the run after an event: succeeded, running, open and due nodes, and the variables. A `seq` after the
    last event means the last event. Outputs are at /api/runs/{id}/nodes/{key}?seq=."""
    return json_response(await call.engine.history.state(call.path("id"), call.query(StateQuery).seq))


async def diff(call: Call) -> Response:
    """The first event at which the two runs differ, ignoring times and ids, and every node with a different result. The
    runs can use different versions: blocks are matched by id."""
    return json_response(await call.engine.history.diff(call.path("id"), call.path("other")))


TABLE = (
    RouteSpec(
        "GET",
        "/api/runs/{id}/state",
        state,
        "State of a run after an event",
        answer=RunState,
        statuses=(400, 404),
        query=StateQuery,
    ),
    RouteSpec(
        "GET",
        "/api/runs/{id}/diff/{other}",
        diff,
        "Compare two runs",
        answer=RunDiff,
        statuses=(404,),
    ),
)
