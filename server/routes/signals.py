"""Signals that a run was sent, whether a wait took them or not. Sending one is in runs.py."""

from __future__ import annotations

from starlette.responses import Response

from server.http.params import integer
from server.http.response import json_response
from server.http.table import Call, Param, RouteSpec
from server.wire.waits import SignalList


async def list_signals(call: Call) -> Response:
    limit = integer(call, "limit", minimum=1, maximum=call.settings.limits.page_size_max, default=200) or 200
    found = await call.engine.signals.list(
        call.path("id"),
        name=call.query("name"),
        correlation=call.query("correlation"),
        received_after_ms=integer(call, "received_after"),
        limit=limit,
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
        params=(
            Param("name", "Only signals of this name."),
            Param("correlation", "Only signals with this correlation."),
            Param("received_after", "Only signals at or after this time, Unix milliseconds.", {"type": "integer"}),
            Param(
                "limit", "Maximum number of signals, oldest first.", {"type": "integer", "minimum": 1, "maximum": 1000}
            ),
        ),
    ),
)
