"""Events of a run: a live stream by default, a page of history with `Accept: application/json`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct
from starlette.responses import Response

from executor.errors import BadRequest
from executor.kernel.store.run_rows import EventFilter, Record, RunRow
from executor.kernel.store.statements import TERMINAL
from server.http.errors import CrossSite
from server.http.request import INTEGER_MAX
from server.http.response import EVENTS_PAGE_MAX, Preview, encode_record, fragment, long_json
from server.http.security import is_cross_site
from server.http.sse import EventStream
from server.http.table import Call, Param, Routes, RouteSpec


class EventOnWire(Struct, frozen=True):
    """One event of a run, over SSE and in JSON. `key` is the node with its iteration and branch,
    `send@review#5/fan[2]`; `path` is the part after `@`; `block` is the block of the node. `data.output` has the output
    of the node, if any."""

    run: str
    seq: int
    at_ms: int
    type: str
    node: str | None
    block: str | None
    path: str
    key: str | None
    attempt: int
    data: dict[str, Any]


class EventPage(Struct, frozen=True):
    """`count`: all events that match the filters. `next`: pass it as `after` for the next page; null at the end."""

    events: list[EventOnWire]
    count: int
    next: int | None


class EventsQuery(Struct, frozen=True):
    """A stream uses `after` and `preview` alone."""

    after: Annotated[int, Meta(description="Continue after this `seq`.")] = 0
    limit: Annotated[int, Meta(ge=1, le=EVENTS_PAGE_MAX, description="JSON: events per page.")] = 1000
    node: Annotated[
        str | None, Meta(description="JSON: only events of this node, in all its iterations and branches.")
    ] = None
    type: Annotated[str | None, Meta(description="JSON: only these types, separated by commas.")] = None
    since: Annotated[int | None, Meta(description="JSON: only events at or after this time, Unix milliseconds.")] = None
    preview: Preview | None = None


def page_events(run: str, records: Sequence[Record], preview: int | None) -> list[Any]:
    return [fragment(encode_record(run, record, preview)) for record in records]


EVENTS_AT_ONCE = 1_000  # of a page of 10,000: others run in between
_LAST = Param("Last-Event-ID", "Continue after this event. Overrides `after`.", {"type": "integer"})

route = Routes("runs", RouteSpec)


@route(
    "GET",
    "/api/runs/{id}/events",
    "Events of a run: live stream, or history as JSON",
    needs="viewer",
    answer=EventPage,
    statuses=(204, 429, 503),
    params=(_LAST,),
    media=("text/event-stream", "application/json"),
)
async def events(call: Call, id: str, query: EventsQuery) -> Response:
    after = _last_event_id(call)
    after = query.after if after is None else after
    row = await call.engine.runs.row(id)
    if call.accepts("application/json") and not call.accepts("text/event-stream"):
        return await _history(call, row.id, after, query)
    if "last-event-id" in call.request.headers and row.status in TERMINAL and after >= row.seq:
        return Response(status_code=204)  # stops an EventSource from reconnecting
    return open_stream(call, row, after, query.preview)


def open_stream(
    call: Call, row: RunRow, after: int, preview: int | None, headers: dict[str, str] | None = None
) -> Response:
    """The stream of a run from a cursor; outputs over `preview` bytes are cut. Raises TooManyStreams, CrossSite."""
    if is_cross_site(call.request.headers):
        raise CrossSite()
    return EventStream(call.engine, call.streams, row, after, headers or {}, preview, session=call.who.key)


async def _history(call: Call, run: str, after: int, query: EventsQuery) -> Response:
    where = EventFilter(
        after=after,
        limit=query.limit,
        node=query.node,
        types=tuple(name.strip() for name in (query.type or "").split(",") if name.strip()),
        since_ms=query.since,
    )
    records, count = await call.engine.events.find(run, where)
    following = records[-1].seq if len(records) == where.limit else None
    shown: list[Any] = []
    for first in range(0, len(records), EVENTS_AT_ONCE):
        shown += page_events(run, records[first : first + EVENTS_AT_ONCE], query.preview)
        await asyncio.sleep(0)
    return await long_json(EventPage(shown, count, following), "events")


def _last_event_id(call: Call) -> int | None:
    """Return the Last-Event-ID that an EventSource sends when it reconnects; it takes precedence over `after`. Raises
    BadRequest."""
    text = call.request.headers.get("last-event-id", "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > 16 or int(text) > INTEGER_MAX:
        raise BadRequest("Last-Event-ID must be the id of an event: a whole number.", code="bad_cursor")
    return int(text)
