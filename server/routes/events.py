"""Events of a run: a live stream by default, a page of history with `Accept: application/json`."""

from __future__ import annotations

from starlette.responses import Response

from executor.errors import BadRequest, NotFound
from executor.store.rows import TERMINAL, EventFilter, RunRow
from server.http.errors import CrossSite
from server.http.params import INTEGER_MAX, integer
from server.http.response import json_response
from server.http.security import is_cross_site
from server.http.sse import EventStream
from server.http.table import Call, Param, RouteSpec
from server.wire.events import EventPage, join_events

PREVIEW_BYTES_MAX = 16 * 1024 * 1024  # as large as any output


async def events(call: Call) -> Response:
    where = _filter(call)
    row = await stored_run(call, call.path("id"))
    if call.accepts("application/json") and not call.accepts("text/event-stream"):
        return await _history(call, row.id, where)
    if "last-event-id" in call.request.headers and row.status in TERMINAL and where.after >= row.seq:
        return Response(status_code=204)  # tells an EventSource that it need not come back
    return open_stream(call, row, where.after)


def open_stream(call: Call, row: RunRow, after: int, headers: dict[str, str] | None = None) -> Response:
    """The stream of a run from a cursor. Raises TooManyStreams, CrossSite."""
    if is_cross_site(call.request.headers):
        raise CrossSite()
    return EventStream(
        call.engine,
        call.streams,
        row,
        after,
        call.settings.limits,
        headers or {},
        preview_bytes(call),
        session=call.session,
    )


def preview_bytes(call: Call) -> int | None:
    """`?preview=`: outputs over so many bytes are cut. None: they are not."""
    return integer(call, "preview", maximum=PREVIEW_BYTES_MAX)


async def stored_run(call: Call, run: str) -> RunRow:
    """The row alone, without folding the journal. Raises NotFound."""
    row = await call.engine.store.get_run(run)
    if row is None:
        raise NotFound(f"There is no run {run!r}.", code="run_not_found")
    return row


def _filter(call: Call) -> EventFilter:
    """A stream keeps to `after` alone. Raises BadRequest."""
    return EventFilter(
        after=_cursor(call),
        limit=integer(call, "limit", minimum=1, maximum=call.settings.limits.events_page_max, default=1000) or 1000,
        node=call.query("node"),
        types=tuple(name.strip() for name in (call.query("type") or "").split(",") if name.strip()),
        since_ms=integer(call, "since"),
    )


async def _history(call: Call, run: str, where: EventFilter) -> Response:
    """{events, count, next}: `count` of all that match, `next` the cursor of the next page or null at the end."""
    records, count = await call.engine.events.find(run, where)
    following = records[-1].seq if len(records) == where.limit else None
    events = join_events(run, records, preview_bytes(call))
    return json_response({"events": events, "count": count, "next": following})


def _cursor(call: Call) -> int:
    """Last-Event-ID when an EventSource comes back, else ?after=, else the beginning."""
    after = integer(call, "after", default=0) or 0
    text = call.request.headers.get("last-event-id", "").strip()
    if not text:
        return after
    if not (text.isascii() and text.isdecimal()) or len(text) > 16 or int(text) > INTEGER_MAX:
        raise BadRequest("Last-Event-ID must be the id of an event: a whole number.", code="bad_cursor")
    return int(text)


PREVIEW = Param(
    "preview",
    "Cut outputs over this many bytes: `output` is then null, `truncated` true, `size` the number of bytes, "
    "and `preview` has the beginning of the JSON. The whole is at /api/runs/{id}/nodes/{key}.",
    {"type": "integer", "minimum": 0, "maximum": PREVIEW_BYTES_MAX},
)
_PARAMS = (
    Param("Last-Event-ID", "Continue after this event. Overrides `after`.", {"type": "integer"}, "header"),
    Param("after", "Continue after this `seq`.", {"type": "integer", "minimum": 0}),
    Param("limit", "JSON: events per page.", {"type": "integer", "minimum": 1, "maximum": 10000}),
    Param("node", "JSON: only events of this node, in all its iterations and branches."),
    Param("type", "JSON: only these types, separated by commas."),
    Param("since", "JSON: only events at or after this time, Unix milliseconds.", {"type": "integer"}),
    PREVIEW,
)

TABLE = (
    RouteSpec(
        "GET",
        "/api/runs/{id}/events",
        events,
        "Events of a run: live stream, or history as JSON",
        answer=EventPage,
        statuses=(204, 400, 403, 404, 429, 503),
        params=_PARAMS,
        media=("text/event-stream", "application/json"),
    ),
)
