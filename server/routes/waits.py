"""Waits of all runs, for those who have the server's token: the inbox, one wait, a question taken back."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import asdict
from starlette.responses import Response

from executor.store.rows import WaitStatus
from executor.topics.waits import WaitFilter
from executor.views import WaitView
from server.http.body import read_as
from server.http.params import choice, integer
from server.http.response import json_response
from server.http.table import Call, Link, Param, RouteSpec
from server.wire.waits import WithdrawRequest

STATUSES: tuple[WaitStatus | Literal["all"], ...] = ("pending", "answered", "cancelled", "expired", "all")
KINDS = ("approval", "form", "timer", "signal", "webhook", "child", "attention")


async def list_waits(call: Call) -> Response:
    """Open waits with their links, oldest first. `counts`: by status, for the same run, kind and workflow."""
    status = choice(call, "status", STATUSES, "pending")
    kind = choice(call, "kind", KINDS, KINDS[0]) if call.query("kind") else None
    where = WaitFilter(
        status=None if status == "all" else status,
        run=call.query("run"),
        kind=kind,
        workflow=call.query("workflow"),
        before=call.query("before"),
        limit=integer(call, "limit", minimum=1, maximum=call.settings.limits.page_size_max, default=200) or 200,
    )
    page = await call.engine.waits.page(where)
    return json_response({"waits": [asdict(w) for w in page.waits], "next": page.next, "counts": page.counts})


async def read(call: Call) -> Response:
    return json_response(asdict(await call.engine.waits.get(call.path("id"), call.path("key"))))


async def withdraw(call: Call) -> Response:
    """The wait becomes `cancelled` and its block fails with `wait_cancelled`. 409: the wait is already over, or is for
    a time, a signal or a child run and cannot be withdrawn."""
    body = await read_as(call.request, call.limits, WithdrawRequest)
    wait = await call.engine.waits.cancel(call.path("id"), call.path("key"), body.by, body.reason)
    return json_response(asdict(wait))


_LIST_PARAMS = (
    Param("status", "pending (default), answered, cancelled, expired or all.", {"enum": list(STATUSES)}),
    Param("kind", "Only waits of this kind. Waits of callback blocks have the kind webhook.", {"enum": list(KINDS)}),
    Param("workflow", "Only waits of runs of this workflow."),
    Param("run", "Only waits of this run."),
    Param("before", "`next` of the previous page."),
    Param("limit", "Waits per page.", {"type": "integer", "minimum": 1, "maximum": 1000}),
)
_LIST = {
    "type": "object",
    "required": ["waits", "next", "counts"],
    "properties": {
        "waits": {"type": "array", "items": {"type": "object"}},
        "next": {"type": ["string", "null"]},
        "counts": {
            "type": "object",
            "required": list(STATUSES[:-1]),
            "properties": {status: {"type": "integer"} for status in STATUSES[:-1]},
        },
    },
}

_ONE = "/api/runs/{id}/waits/{key}"
_OLDEST = {"id": "$response.body#/waits/0/run", "key": "$response.body#/waits/0/id"}

TABLE = (
    RouteSpec(
        "GET",
        "/api/waits",
        list_waits,
        "Open waits, with links",
        "waits",
        answer=_LIST,
        params=_LIST_PARAMS,
        links=(Link("GET", _ONE, _OLDEST), Link("DELETE", _ONE, _OLDEST)),
    ),
    RouteSpec(
        "GET",
        _ONE,
        read,
        "A wait, by its id or the key of its node",
        "waits",
        answer=WaitView,
        statuses=(404,),
    ),
    RouteSpec(
        "DELETE",
        _ONE,
        withdraw,
        "Withdraw a wait",
        "waits",
        body=WithdrawRequest,
        answer=WaitView,
        statuses=(404, 409),
    ),
)
