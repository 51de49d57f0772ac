"""The history of runs: a run after any event, one node of it in any attempt, and two runs side by side."""

from __future__ import annotations

import re
from typing import Annotated, Any

from msgspec import Meta
from starlette.responses import Response

from executor.errors import NotFound
from executor.service.views import NodeDetail
from executor.service.views.diff import RunDiff
from executor.service.views.state import RunState
from server.http.call import Call
from server.http.response import json_response, long_json_response
from server.http.table import RouteSpec
from server.wire.nodes import NodeQuery, NodeShown, node_shown
from server.wire.runs import StateQuery


async def state(call: Call) -> Response:
    """The state of the run after an event: succeeded, running, open and due nodes, and the variables. A `seq` after the
    last event means the last event. Outputs are at /api/runs/{id}/nodes/{key}?seq=."""
    return await long_json_response(
        await call.engine.history.state(call.path("id"), call.query(StateQuery).seq), "nodes"
    )


async def diff(call: Call) -> Response:
    """The first event at which the two runs differ, ignoring times and ids, and every node with a different result. The
    runs can use different versions: blocks are matched by id."""
    return json_response(await call.engine.history.diff(call.path("id"), call.path("other")))


async def node(call: Call) -> Response:
    """`key` is a percent-encoded node key such as send@review#5/fan[2], or a container, whose input is that of its
    start and whose output is that of its end. `input` has the parameters with all references resolved and secrets
    redacted; code and expressions in it are {"$code", "values"}. With `only`, the response is the JSON of the input or
    output alone, as a file."""
    query = call.query(NodeQuery)
    detail = await call.engine.runs.node(call.path("id"), call.path("key"), query.attempt, query.seq)
    return _file(detail, query.only) if query.only else json_response(node_shown(detail, query.preview))


def _file(detail: NodeDetail, what: str) -> Response:
    data = detail.input if what == "input" else detail.output
    if data is None:
        raise NotFound(f"{detail.key} has no {what}", code=f"no_{what}")
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", f"{detail.key}-{what}")
    return Response(
        data,
        headers={"Cache-Control": "no-store", "Content-Disposition": f'attachment; filename="{name}.json"'},
        media_type="application/json",
    )


TABLE = (
    RouteSpec(
        "GET",
        "/api/runs/{id}/state",
        state,
        "State of a run after an event",
        needs="viewer",
        answer=RunState,
        statuses=(400, 404),
        query=StateQuery,
    ),
    RouteSpec(
        "GET",
        "/api/runs/{id}/diff/{other}",
        diff,
        "Compare two runs",
        needs="viewer",
        answer=RunDiff,
        statuses=(404,),
    ),
    RouteSpec(
        "GET",
        "/api/runs/{id}/nodes/{key}",
        node,
        "Input and output of one node",
        needs="viewer",
        answer=(NodeShown, Annotated[Any, Meta(description="With `only`: any JSON.")]),
        statuses=(400, 404),
        query=NodeQuery,
    ),
)
