"""Runs: start, look, cancel, signal. A 2xx on a write means it is on disk."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace
from starlette.responses import Response

from executor.errors import BadRequest, Conflict
from executor.kernel.store.statements import TERMINAL
from executor.service.views import RunDocument, RunGraph, RunView, Submitted, view_of
from server.http.body import read_as
from server.http.call import Call
from server.http.errors import TooManyStreams
from server.http.principals import without_links
from server.http.response import block_response, json_response, long_json_response
from server.http.table import Link, Param, RouteSpec
from server.routes.events import open_stream
from server.wire import capped
from server.wire.drafts import DraftRunAccepted
from server.wire.runs import (
    Cancelled,
    CancelRequest,
    RunAccepted,
    RunCounts,
    RunDeleted,
    RunDetail,
    RunDocumentRequest,
    RunPage,
    RunQuery,
    RunRequest,
    RunResult,
    RunsQuery,
    RunWhy,
    StartQuery,
    WhyQuery,
    accepted,
    run_summary,
    run_urls,
)
from server.wire.waits import SignalAccepted, SignalRequest

IDEMPOTENCY_KEY_MAX = 255


async def start_stored(call: Call) -> Response:
    """Run a stored workflow."""
    start = call.query(StartQuery)
    body = await read_as(call.request, call.limits, RunRequest)
    submitted = await call.engine.submit(
        call.path("name"),
        input=body.input,
        trigger=body.trigger,
        version=body.version,
        idempotency_key=idempotency_key(call),
        stop_after=body.stop_after,
        priority=body.priority,
    )
    return await started(call, submitted, start)


async def start_document(call: Call) -> Response:
    """Run a document as it is."""
    start = call.query(StartQuery)
    body = await read_as(call.request, call.limits, RunDocumentRequest)
    submitted = await call.engine.submit(
        body.document,
        input=body.input,
        trigger=body.trigger,
        idempotency_key=idempotency_key(call),
        stop_after=body.stop_after,
        priority=body.priority,
    )
    return await started(call, submitted, start)


async def list_runs(call: Call) -> Response:
    """`counts`: runs by status, up to 100,000, for the same workflow and draft, with any status and parent."""
    query = call.query(RunsQuery)
    rows = await call.engine.runs.list(
        query.workflow, query.status, query.before, query.limit, query.draft, parent=query.parent
    )
    counts = await call.engine.runs.count(query.workflow, query.draft) if query.counts else None
    following = rows[-1].id if len(rows) == query.limit else None
    parts = call.engine.parts
    now_ms = parts.clock.now_ms()
    return json_response(
        RunPage(
            [run_summary(row, now_ms, parts.owned.lacks(row)) for row in rows],
            following,
            None if counts is None else RunCounts(**counts),
            capped(counts or {}),
        )
    )


async def read(call: Call) -> Response:
    """The run with its nodes, waits and children. Outputs that are large are left out; see `output_truncated`."""
    wait_s, id = call.query(RunQuery).wait, call.path("id")
    if wait_s:
        await call.engine.runs.row(id)  # refuse what does not exist before a place among the streams is used
        run = await wait_for(call, id, wait_s)
    else:
        run = await call.engine.runs.view(id)
    waits, below = (without_links(call.who, each) for each in (run.waits, run.child_waits))
    run = replace(run, waits=waits, child_waits=below)
    return await long_json_response(view_of(RunDetail, run, urls=run_urls(run.id)), "nodes")


async def delete(call: Call) -> Response:
    """Delete the run with its events, waits and outputs, and the runs that it started. 409: one of those runs is open,
    or the run was started by another run; delete that one instead."""
    run = call.path("id")
    return json_response(RunDeleted(run, await call.engine.upkeep.delete_run(run)))


async def document(call: Call) -> Response:
    """The document is fixed when the run starts; later versions and changes of a draft do not affect it."""
    found = await call.engine.runs.document(call.path("id"))
    return json_response(found, headers={"ETag": f'"{found.hash}"'})


async def graph(call: Call) -> Response:
    """The plan of the run with the state of its nodes and edges."""
    return json_response(await call.engine.runs.graph(call.path("id")))


async def why(call: Call) -> Response:
    """With `seq`: the state after that event."""
    run, query = call.path("id"), call.query(WhyQuery)
    return await long_json_response(RunWhy(run, await call.engine.history.why(run, query.node, query.seq)), "why")


async def cancel(call: Call) -> Response:
    """202: the run is `cancelled`, or `cancelling` until its worker has processed the request. 409: the run has ended,
    and not by a cancel: a repeated request is answered like the first."""
    body = await read_as(call.request, call.limits, CancelRequest)
    run = call.path("id")
    posted = await call.engine.cancel(run, body.reason, body.now)
    status = (await call.engine.runs.row(run)).status
    ended = status == "cancelled"
    if not (posted or ended) or status in ("succeeded", "failed"):  # it was failing already
        raise Conflict(f"The run has already ended: {status}.", code="run_ended", run=run, run_status=status)
    return json_response(Cancelled(run, ended, "cancelled" if ended else "cancelling"), 202)


async def signal(call: Call) -> Response:
    """202 for a new signal, 200 when its dedupe key was used before."""
    body = await read_as(call.request, call.limits, SignalRequest)
    run, name, key = call.path("id"), call.path("name"), idempotency_key(call)
    if not name:
        raise BadRequest("A signal requires a name.", code="signal_name_missing")
    seq, new = await call.engine.signal(
        run,
        name,
        body.payload,
        correlation=body.correlation,
        dedupe_key=body.dedupe_key or key,
        by=body.by,
    )
    return json_response(SignalAccepted(run, name, seq, new), 202 if new else 200)


def idempotency_key(call: Call) -> str | None:
    """The header Idempotency-Key; None without it. Raises BadRequest when it is empty or too long."""
    key = call.request.headers.get("idempotency-key")
    if key is None:
        return None
    if not 0 < len(key) <= IDEMPOTENCY_KEY_MAX:
        raise BadRequest(
            f"Idempotency-Key must have 1 to {IDEMPOTENCY_KEY_MAX} characters.", code="idempotency_key_invalid"
        )
    return key


async def started(
    call: Call, submitted: Submitted, query: StartQuery, draft: tuple[str, int] | None = None
) -> Response:
    """Return the new run as the caller asked for it: a stream of its events, its result, or its address. `draft`: the
    id and revision of the draft that it runs."""
    headers = {"Location": f"/api/runs/{submitted.run}"}
    if not submitted.created:
        headers["Idempotency-Replayed"] = "true"
    if draft is not None:
        headers["Weft-Draft-Rev"] = str(draft[1])
    if call.accepts("text/event-stream"):
        row = await call.engine.runs.row(submitted.run)
        try:
            return open_stream(call, row, 0, query.preview, headers)
        except TooManyStreams:
            pass  # the run is stored: better to name it than to answer with an error
    elif query.wait is not None:
        return await _result(call, submitted, query.wait, headers)
    body = accepted(submitted)
    if draft is not None:
        body = view_of(DraftRunAccepted, body, draft=draft[0], rev=draft[1])
    return json_response(body, 202 if submitted.created else 200, headers)


async def _result(call: Call, submitted: Submitted, wait_s: float, headers: dict[str, str]) -> Response:
    """200 and the result, the answer of a response block as the workflow wrote it, or 202 and the open waits."""
    run = await wait_for(call, submitted.run, wait_s)
    if run.status in TERMINAL and run.response is not None:
        ours = {name: value for name, value in headers.items() if name == "Idempotency-Replayed"}
        return block_response(run.response, {"Weft-Run": run.id, **ours})
    waits = (*run.waits, *run.child_waits)
    result = RunResult(run.id, run.workflow, run.status, run.output, run.error, run_urls(run.id), waits)
    return json_response(result, 200 if run.status in TERMINAL else 202, headers)


async def wait_for(call: Call, run: str, wait_s: float) -> RunView:
    """Like engine.wait_finished, but ends at once when the server stops. A waiting caller counts as an open stream."""
    try:
        place = call.streams.enter(run)
    except TooManyStreams:
        return await call.engine.runs.view(run)
    waiter = asyncio.create_task(call.engine.wait_finished(run, wait_s), name=f"wait {run}")
    ends: list[asyncio.Future[Any]] = [waiter, place.closed]
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        return waiter.result() if waiter.done() else await call.engine.runs.view(run)
    finally:
        call.streams.leave(place)
        waiter.cancel()
        await asyncio.wait([waiter])


KEY = Param(
    "Idempotency-Key",
    "The same key with the same body returns the same run; with another body, 409.",
    {"type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_MAX},
)
REFUSALS = (409, 413, 415, 422)
STARTED = (RunAccepted, RunResult)  # the second with ?wait=
_RUN = {"id": "$response.body#/run"}
LINKS = (
    Link("GET", "/api/runs/{id}", _RUN),
    Link("GET", "/api/runs/{id}/events", _RUN),
    Link("GET", "/api/waits", {"run": "$response.body#/run"}),
    Link("POST", "/api/runs/{id}/signals/{name}", _RUN),
    Link("POST", "/api/runs/{id}/cancel", _RUN),
    Link("POST", "/api/runs/{id}/rerun", _RUN),
)
MEDIA = ("application/json", "text/event-stream")

TABLE = (
    RouteSpec(
        "POST",
        "/api/workflows/{name}/runs",
        start_stored,
        "Start a run of a stored workflow",
        needs="editor",
        audit=False,
        body=RunRequest,
        answer=STARTED,
        status=202,
        statuses=(200, 404, *REFUSALS),
        query=StartQuery,
        params=(KEY,),
        media=MEDIA,
        links=LINKS,
    ),
    RouteSpec(
        "POST",
        "/api/runs",
        start_document,
        "Start a run of a document",
        needs="editor",
        audit=False,
        body=RunDocumentRequest,
        answer=STARTED,
        status=202,
        statuses=(200, 404, *REFUSALS),
        query=StartQuery,
        params=(KEY,),
        media=MEDIA,
        links=LINKS,
    ),
    RouteSpec("GET", "/api/runs", list_runs, "Runs, newest first", needs="viewer", answer=RunPage, query=RunsQuery),
    RouteSpec(
        "GET",
        "/api/runs/{id}",
        read,
        "A run with its nodes, waits and variables",
        needs="viewer",
        answer=RunDetail,
        statuses=(404,),
        query=RunQuery,
    ),
    RouteSpec(
        "DELETE",
        "/api/runs/{id}",
        delete,
        "Delete a run that has ended",
        needs="editor",
        answer=RunDeleted,
        statuses=(404, 409),
    ),
    RouteSpec(
        "GET",
        "/api/runs/{id}/document",
        document,
        "The document of a run",
        needs="viewer",
        answer=RunDocument,
        statuses=(404,),
    ),
    RouteSpec(
        "GET",
        "/api/runs/{id}/graph",
        graph,
        "The plan of a run with the state of its nodes and edges",
        needs="viewer",
        answer=RunGraph,
        statuses=(404,),
    ),
    RouteSpec(
        "GET",
        "/api/runs/{id}/why",
        why,
        "Why nodes have their state",
        needs="viewer",
        statuses=(404,),
        answer=RunWhy,
        query=WhyQuery,
    ),
    RouteSpec(
        "POST",
        "/api/runs/{id}/cancel",
        cancel,
        "Cancel a run",
        needs="editor",
        body=CancelRequest,
        answer=Cancelled,
        status=202,
        statuses=(404, 409),
    ),
    RouteSpec(
        "POST",
        "/api/runs/{id}/signals/{name}",
        signal,
        "Send a signal to a run",
        needs="editor",
        body=SignalRequest,
        answer=SignalAccepted,
        status=202,
        statuses=(200, 404, 409),
        params=(KEY,),
    ),
)
