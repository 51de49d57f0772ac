"""Usage and cost of steps, by day, workflow or model."""

from __future__ import annotations

from datetime import date

from starlette.responses import Response

from executor.errors import BadRequest
from server.http.call import Call
from server.http.response import json_response
from server.http.table import RouteSpec
from server.wire.usage import UsagePage, UsageQuery, usage_page


async def show(call: Call) -> Response:
    """Tokens and costs of the days from `from` to `to`, without `from` of the last 30. What deleted runs used is part
    of it."""
    query = call.query(UsageQuery)
    asked = _day("from", query.first), _day("to", query.to)
    first, last, found = await call.engine.usage.between(*asked, by=query.by, workflow=query.workflow)
    return json_response(usage_page(first.isoformat(), last.isoformat(), query.by, query.workflow, found))


def _day(name: str, text: str | None) -> date | None:
    """Raises BadRequest."""
    if text is None:
        return None
    try:
        if len(text) != 10:
            raise ValueError
        return date.fromisoformat(text)
    except ValueError:
        raise BadRequest(f"{name} must be a day such as 2026-11-01, not {text!r}.") from None


TABLE = (
    RouteSpec(
        "GET",
        "/api/usage",
        show,
        "Tokens and costs",
        "usage",
        needs="viewer",
        query=UsageQuery,
        answer=UsagePage,
        statuses=(400,),
    ),
)
