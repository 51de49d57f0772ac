"""Signals that a run was sent, whether a wait took them or not. Sending one is in runs.py."""

from __future__ import annotations

from starlette.responses import Response

from server.http.call import Call
from server.http.response import json_response
from server.http.table import RouteSpec
from server.wire.waits import SignalList, SignalsQuery


async def list_signals(call: Call) -> Response:
    query = call.query(SignalsQuery)
    found = await call.engine.signals.list(
        call.path("id"),
        name=query.name,
        correlation=query.correlation,
        received_after_ms=query.received_after,
        limit=query.limit,
    )
    return json_response(SignalList(found))


TABLE = (
    RouteSpec(
        "GET",
        "/api/runs/{id}/signals",
        list_signals,
        "Signals sent to a run",
        "waits",
        answer=SignalList,
        statuses=(404,),
        query=SignalsQuery,
    ),
)
