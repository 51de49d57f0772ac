"""Runs: start, show, list, cancel, delete. A 2xx on a write means it is on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, Literal

import orjson
from msgspec import Meta, Struct
from msgspec.structs import asdict, replace
from starlette.responses import Response

from compiler.document import Priority
from compiler.render import Format
from executor.errors import BadRequest, Conflict
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.statements import TERMINAL, RunStatus
from executor.service.views import (
    ErrorJson,
    NodeView,
    RunDocument,
    RunView,
    Submitted,
    WaitView,
    view_of,
)
from server.api.events import open_stream
from server.http.errors import TooManyStreams
from server.http.principal import without_links
from server.http.response import (
    PAGE_MAX,
    WAIT_S_MAX,
    Json,
    Preview,
    Version,
    beginning,
    block_response,
    capped,
    fragment,
    long_json,
)
from server.http.table import Call, H, Link, Param, Routes, RouteSpec

SUMMARY_CHARS = 160
NO_ONE = (None, False)  # started a run that was deleted meanwhile


class RunRequest(Struct, forbid_unknown_fields=True):
    """POST /api/workflows/{name}/runs. `priority`: in place of that of the workflow."""

    input: Any = None
    trigger: str | None = None
    version: Version | None = None
    stop_after: str | None = None
    priority: Priority | None = None


class RunDocumentRequest(Struct, forbid_unknown_fields=True):
    """POST /api/runs: run a document without storing it. `priority`: in place of that of the workflow."""

    document: dict[str, Any]
    input: Any = None
    trigger: str | None = None
    stop_after: str | None = None
    priority: Priority | None = None


class CancelRequest(Struct, forbid_unknown_fields=True):
    """POST /api/runs/{id}/cancel. `reason` is recorded in the journal. `now`: the run does not wait for its cleanups; a
    second request means the same."""

    reason: Annotated[str, Meta(max_length=2000)] = ""
    now: bool = False


class RunUrls(Struct, frozen=True):
    """Paths on this server, beginning with a slash."""

    self: str
    events: str
    graph: str
    why: str
    plan: str
    cancel: str
    page: str
    document: str
    nodes: str
    rerun: str


class RunAccepted(Submitted, frozen=True, kw_only=True):
    """`created` is false if the idempotency key was used before; the run is then the one created with it."""

    urls: RunUrls


class RunResult(Struct, frozen=True):
    """Response to `?wait=`: the run has ended, or is open (status code 202). `waits`: the open waits of the run and of
    runs below it, each with the `link` that answers it."""

    run: str
    workflow: str
    status: RunStatus
    output: Any
    error: ErrorJson | None
    urls: RunUrls
    waits: tuple[WaitView, ...] = ()


class RunDeleted(Struct, frozen=True):
    """`runs`: the number of deleted runs, including those that the run started."""

    run: str
    runs: int


class Cancelled(Struct, frozen=True):
    """`status` is `cancelled` when the run has ended, otherwise `cancelling`: the request is stored and the run will
    process it before it ends."""

    run: str
    cancelled: bool
    status: Literal["cancelled", "cancelling"]


class RunDetail(RunView, frozen=True, kw_only=True, omit_defaults=False):
    __doc__ = RunView.__doc__

    nodes: tuple[NodeView, ...] = ()
    failed_nodes: tuple[str, ...] = ()
    urls: RunUrls


class RunSummary(Struct, frozen=True):
    """A run in a list, without its nodes and variables. `input_summary`: the beginning of the input as JSON text;
    `duration_ms`: from its first start to its end, null before that. `key`: its idempotency key. `step`: the block
    of a draft that ran alone. `by`, `stale`, `stale_since_ms`, `lacks`: as in RunDetail."""

    id: str
    workflow: str
    version: int | None
    status: RunStatus
    error: ErrorJson | None
    seq: int
    created_at_ms: int
    started_at_ms: int | None
    finished_at_ms: int | None
    parent_run_id: str | None
    input_summary: str
    duration_ms: int | None
    draft_id: str | None
    draft_rev: int | None
    key: str | None
    by: str | None
    step: str | None
    stale: bool
    stale_since_ms: int | None
    lacks: str | None


class RunCounts(Struct, frozen=True):
    """The number of runs by status."""

    queued: int
    running: int
    waiting: int
    succeeded: int
    failed: int
    cancelled: int


class RunPage(Struct, frozen=True):
    """`next`: pass it as `before` for the following page; null at the end. `counts`: null with `counts=0`. `capped`:
    statuses of which there are at least 100,000 runs; they are not counted further."""

    runs: list[RunSummary]
    next: str | None
    counts: RunCounts | None
    capped: list[RunStatus]


class InputList(Struct, frozen=True):
    """Inputs of runs, newest first."""

    inputs: Annotated[list[Any], Meta(max_length=10)]


_STANDING = "Seconds to wait, at most 60, until the run has ended or only an answer or a signal can move it."
Seconds = Annotated[float, Meta(ge=0, extra={"cut_at": WAIT_S_MAX})]
Since = Annotated[int, Meta(ge=0, description="Only runs that were created at this time or later.")]
Until = Annotated[int, Meta(ge=0, description="Only runs that were created before this time.")]


class RunsQuery(Struct, frozen=True):
    workflow: Annotated[str | None, Meta(description="Only runs of this workflow.")] = None
    draft: Annotated[str | None, Meta(description="Only runs of this draft.")] = None
    parent: Annotated[str | None, Meta(description="Only runs started by this run.")] = None
    status: Annotated[RunStatus | None, Meta(description="Only runs with this status.")] = None
    since: Since | None = None
    until: Until | None = None
    text: Annotated[
        str | None,
        Meta(description="Only runs that have this text in their id, idempotency key or error, whatever its case."),
    ] = None
    by: Annotated[str | None, Meta(description="Only runs that this person or token started: `user:ada`.")] = None
    key: Annotated[str | None, Meta(description="Only runs with this idempotency key.")] = None
    not_status: Annotated[RunStatus | None, Meta(description="No runs with this status.")] = None
    not_workflow: Annotated[str | None, Meta(description="No runs of this workflow.")] = None
    not_by: Annotated[str | None, Meta(description="No runs that this person or token started.")] = None
    not_text: Annotated[str | None, Meta(description="No runs with this text where `text` is looked for.")] = None
    before: Annotated[str | None, Meta(description="The `next` of the previous page.")] = None
    limit: Annotated[int, Meta(ge=1, le=PAGE_MAX, description="Runs per page.")] = 50
    counts: Annotated[bool, Meta(description="0: do not count runs; the answer comes sooner.")] = True


class StartQuery(Struct, frozen=True):
    """The query of requests that start a run. `preview` applies to a stream of its events."""

    wait: Annotated[Seconds, Meta(description="Seconds to wait for the result, at most 60.")] | None = None
    preview: Preview | None = None


class RunQuery(Struct, frozen=True):
    wait: Annotated[Seconds, Meta(description=_STANDING)] | None = None


class PlanQuery(Struct, frozen=True):
    format: Annotated[Format, Meta(description="json, text, dot or mermaid.")] = "json"
    expanded: Annotated[bool, Meta(description="1: show branches and iterations as separate nodes.")] = False


_PATHS = tuple(
    {"self": "/api/runs/%s", "page": "/runs/%s"}.get(name, f"/api/runs/%s/{name}") for name in RunUrls.__struct_fields__
)


def run_urls(run: str) -> RunUrls:
    return RunUrls(*[path % run for path in _PATHS])


def accepted(submitted: Submitted) -> RunAccepted:
    return view_of(RunAccepted, submitted, urls=run_urls(submitted.run))


def _without_traceback(error: bytes | None) -> Any:
    """A list has no room for it."""
    if error is None or b'"traceback"' not in error:
        return fragment(error)
    return {name: value for name, value in orjson.loads(error).items() if name != "traceback"}


def run_summary(row: RunRow, now_ms: int, lacks: str | None, starter: tuple[str | None, bool]) -> RunSummary:
    since_ms = row.stale_since_ms(now_ms)
    began_ms = row.started_at_ms or row.created_at_ms
    return view_of(
        RunSummary,
        row,
        error=_without_traceback(row.error),
        key=row.idempotency_key,
        by=starter[0],
        step=row.workflow.rpartition("/")[2] if starter[1] else None,
        input_summary=beginning(row.input, SUMMARY_CHARS),
        duration_ms=None if row.finished_at_ms is None else max(0, row.finished_at_ms - began_ms),
        stale=since_ms is not None,
        stale_since_ms=since_ms,
        lacks=lacks,
    )


class DraftRunAccepted(RunAccepted, frozen=True, kw_only=True):
    """`rev`: the revision of the draft that runs."""

    draft: str
    rev: int


IDEMPOTENCY_KEY_MAX = 255

KEY = Param(
    "Idempotency-Key",
    "The same key with the same body returns the same run; with another body, 409.",
    {"type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_MAX},
)

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

route = Routes("runs", RouteSpec)


def starts(
    route: Routes[...],
    path: str,
    summary: str,
    *,
    answer: Any = STARTED,
    params: tuple[Param, ...] = (),
    audit: bool | None = None,
) -> Callable[[H], H]:
    return route(
        "POST",
        path,
        summary,
        needs="editor",
        audit=audit,
        answer=answer,
        status=202,
        statuses=(200, 404, 409),
        params=(*params, KEY),
        media=MEDIA,
        links=LINKS,
    )


@starts(route, "/api/workflows/{name}/runs", "Start a run of a stored workflow", audit=False)
async def start_stored(call: Call, name: str, query: StartQuery, body: RunRequest) -> Response:
    submitted = await call.engine.submit(name, **asdict(body), idempotency_key=idempotency_key(call))
    return await started(call, submitted, query)


@starts(route, "/api/runs", "Start a run of a document", audit=False)
async def start_document(call: Call, query: StartQuery, body: RunDocumentRequest) -> Response:
    asked = asdict(body)
    submitted = await call.engine.submit(asked.pop("document"), **asked, idempotency_key=idempotency_key(call))
    return await started(call, submitted, query)


@route("GET", "/api/runs", "Runs, newest first", needs="viewer")
async def list_runs(call: Call, query: RunsQuery) -> RunPage:
    """`counts`: runs by status, up to 100,000, for the same workflow and draft, whatever else is asked for. `text`,
    `key` and what begins with `not_` are looked at in the first 10,000 of the runs that the rest leaves."""
    asked = {name: value for name, value in asdict(query).items() if name != "counts" and value is not None}
    without: Any = {name.removeprefix("not_"): asked.pop(name) for name in list(asked) if name.startswith("not_")}
    rows = await call.engine.runs.list(**asked, without=without)
    starters = await call.engine.store.starters([row.id for row in rows])
    following = rows[-1].id if len(rows) == query.limit else None
    counts = await call.engine.runs.count(query.workflow, query.draft) if query.counts else None
    parts = call.engine.parts
    now_ms = parts.clock.now_ms()
    return RunPage(
        [run_summary(row, now_ms, parts.owned.lacks(row), starters.get(row.id, NO_ONE)) for row in rows],
        following,
        None if counts is None else RunCounts(**counts),
        capped(counts or {}),
    )


@route("GET", "/api/runs/{id}", "A run with its nodes, waits and variables", needs="viewer")
async def read(call: Call, id: str, query: RunQuery) -> Json[RunDetail]:
    """The run with its nodes, waits and children. Outputs that are large are left out; see `output_truncated`."""
    if query.wait:
        await call.engine.runs.row(id)  # refuse what does not exist before a place among the streams is used
        run = await wait_for(call, id, query.wait)
    else:
        run = await call.engine.runs.view(id)
    waits, below = (without_links(call.who, each) for each in (run.waits, run.child_waits))
    run = replace(run, waits=waits, child_waits=below)
    return await long_json(
        view_of(RunDetail, run, nodes=run.nodes, failed_nodes=run.failed_nodes, urls=run_urls(run.id)), "nodes"
    )


@route("DELETE", "/api/runs/{id}", "Delete a run that has ended", needs="editor", statuses=(409,))
async def delete(call: Call, id: str) -> RunDeleted:
    """Delete the run with its events, waits and outputs, and the runs that it started. 409: one of those runs is open,
    or the run was started by another run; delete that one instead."""
    return RunDeleted(id, await call.engine.upkeep.delete_run(id))


@route("GET", "/api/runs/{id}/document", "The document of a run", needs="viewer")
async def document(call: Call, id: str) -> Json[RunDocument]:
    """The document is fixed when the run starts; later versions and changes of a draft do not affect it."""
    found = await call.engine.runs.document(id)
    return Json(found, headers={"ETag": f'"{found.hash}"'})


@route("POST", "/api/runs/{id}/cancel", "Cancel a run", needs="editor", status=202, statuses=(409,))
async def cancel(call: Call, id: str, body: CancelRequest) -> Cancelled:
    """202: the run is `cancelled`, or `cancelling` until its worker has processed the request. 409: the run has ended,
    and not by a cancel: a repeated request is answered like the first."""
    posted = await call.engine.cancel(id, body.reason, body.now)
    status = (await call.engine.runs.row(id)).status
    ended = status == "cancelled"
    if not (posted or ended) or status in ("succeeded", "failed"):  # it was failing already
        raise Conflict(f"The run has already ended: {status}.", code="run_ended", run=id, run_status=status)
    return Cancelled(id, ended, "cancelled" if ended else "cancelling")


def idempotency_key(call: Call) -> str | None:
    """The header Idempotency-Key; None without it. Raises BadRequest when it is empty or too long."""
    key = call.header(b"idempotency-key")
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
    return Json(body, 202 if submitted.created else 200, headers)


async def _result(call: Call, submitted: Submitted, wait_s: float, headers: dict[str, str]) -> Response:
    """200 and the result, the answer of a response block as the workflow wrote it, or 202 and the open waits."""
    run = await wait_for(call, submitted.run, wait_s)
    if run.status in TERMINAL and run.response is not None:
        ours = {name: value for name, value in headers.items() if name == "Idempotency-Replayed"}
        return block_response(run.response, {"Weft-Run": run.id, **ours})
    waits = (*run.waits, *run.child_waits)
    result = view_of(RunResult, run, run=run.id, urls=run_urls(run.id), waits=waits)
    return Json(result, 200 if run.status in TERMINAL else 202, headers)


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
