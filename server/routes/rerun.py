"""Run again from a block: first what that would do, then doing it."""

from __future__ import annotations

from starlette.responses import Response

from server.http.body import read_as
from server.http.call import Call
from server.http.response import json_response
from server.http.table import RouteSpec
from server.routes.runs import KEY, LINKS, MEDIA, REFUSALS, STARTED, idempotency_key, started
from server.wire.runs import RerunPreview, RerunQuery, RerunRequest, StartQuery


async def preview(call: Call) -> Response:
    """Changes nothing. 409: the run has not ended, or the block is inside a container (`container` is the outermost
    one)."""
    found = await call.engine.lifecycle.preview_run_from(call.path("id"), call.query(RerunQuery).start)
    return json_response(RerunPreview(found.run, found.block, found.reused, found.again, found.skipped))


async def rerun(call: Call) -> Response:
    """Create a run of the same document that reuses the results before the block and runs the block and everything
    after it again. Without a block, everything runs again."""
    start = call.query(StartQuery)
    body = await read_as(call.request, call.limits, RerunRequest)
    submitted = await call.engine.lifecycle.run_from(
        call.path("id"), body.start, input=body.input, idempotency_key=idempotency_key(call)
    )
    return await started(call, submitted, start)


TABLE = (
    RouteSpec(
        "GET",
        "/api/runs/{id}/rerun",
        preview,
        "Preview a run from a block",
        answer=RerunPreview,
        statuses=(404, 409),
        query=RerunQuery,
    ),
    RouteSpec(
        "POST",
        "/api/runs/{id}/rerun",
        rerun,
        "Run from a block",
        body=RerunRequest,
        answer=STARTED,
        status=202,
        statuses=(200, 404, *REFUSALS),
        query=StartQuery,
        params=(KEY,),
        media=MEDIA,
        links=LINKS,
    ),
)
