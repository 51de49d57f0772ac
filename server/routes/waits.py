"""Waits of all runs, for holders of the server's token: the inbox, one wait, withdrawing a question; and the signals
that a run has received. Sending a signal is in runs.py."""

from __future__ import annotations

from starlette.responses import Response

from executor.errors import AlreadyAnswered
from executor.kernel.run.answers import needs_sign_in
from executor.service.topics.waits import WaitFilter
from executor.service.views import view_of
from server.http.body import read_as
from server.http.call import Call
from server.http.errors import Forbidden
from server.http.principals import without_links
from server.http.response import json_response
from server.http.table import Link, RouteSpec
from server.routes.resume import too_late
from server.wire import capped
from server.wire.waits import (
    AnswerRequest,
    SignalList,
    SignalsQuery,
    Wait,
    WaitCounts,
    WaitPage,
    WaitsQuery,
    WithdrawRequest,
)


async def list_waits(call: Call) -> Response:
    """Open waits with their links, oldest first. `counts`: by status, up to 100,000, for the same run, kind and
    workflow."""
    query = call.query(WaitsQuery)
    where = WaitFilter(
        status=None if query.status == "all" else query.status,
        run=query.run,
        kind=query.kind,
        workflow=query.workflow,
        before=query.before,
        limit=query.limit,
        counts=query.counts,
    )
    page = await call.engine.waits.page(where)
    counts = None if page.counts is None else WaitCounts(**page.counts)
    waits = [view_of(Wait, wait) for wait in without_links(call.who, page.waits)]
    return json_response(WaitPage(waits, page.next, counts, capped(page.counts or {})))


async def read(call: Call) -> Response:
    """`key`: the id of a wait, or the key of its node."""
    wait = await call.engine.waits.get(call.path("id"), call.path("key"))
    return json_response(view_of(Wait, *without_links(call.who, [wait])))


async def answer(call: Call) -> Response:
    """The answer counts once. A wait for certain people is answered by them alone, any other wait by users with the
    role approver. `by`: by default your own name. 409: it was answered before."""
    body = await read_as(call.request, call.limits, AnswerRequest)
    who, waits = call.who, call.engine.waits
    run, key = call.path("id"), call.path("key")
    wait = await waits.get(run, key)
    if not (needs_sign_in(wait.request) or who.may("approver")):
        raise Forbidden(f"This needs the role approver; yours is {who.role}.", needs="approver", role=who.role)
    call.note(body.action or "answered")
    answerer = who.answerer if call.auth.required else None
    by = body.by or (answerer.name if answerer else None)
    try:
        answered = await waits.answer_wait(run, wait.id, body.fields, body.action, by, answerer)
    except AlreadyAnswered as error:
        raise too_late(error) from None
    return json_response(view_of(Wait, *without_links(who, [answered])))


async def withdraw(call: Call) -> Response:
    """The wait becomes `cancelled` and its block fails with `wait_cancelled`. 409: the wait is already over, or is for
    a time, a signal or a child run and cannot be withdrawn."""
    body = await read_as(call.request, call.limits, WithdrawRequest)
    wait = await call.engine.waits.cancel(call.path("id"), call.path("key"), body.by, body.reason)
    return json_response(view_of(Wait, wait))


_ONE = "/api/runs/{id}/waits/{key}"
_OLDEST = {"id": "$response.body#/waits/0/run", "key": "$response.body#/waits/0/id"}


async def list_signals(call: Call) -> Response:
    """Oldest first, also those that a wait has received."""
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
        "/api/waits",
        list_waits,
        "Open waits, with links",
        "waits",
        needs="viewer",
        answer=WaitPage,
        query=WaitsQuery,
        links=(Link("GET", _ONE, _OLDEST), Link("DELETE", _ONE, _OLDEST)),
    ),
    RouteSpec(
        "GET",
        _ONE,
        read,
        "A wait, by its id or the key of its node",
        "waits",
        needs="viewer",
        answer=Wait,
        statuses=(404,),
    ),
    RouteSpec(
        "POST",
        _ONE,
        answer,
        "Answer a wait",
        "waits",
        needs="viewer",
        body=AnswerRequest,
        answer=Wait,
        statuses=(404, 409, 422),
    ),
    RouteSpec(
        "DELETE",
        _ONE,
        withdraw,
        "Withdraw a wait",
        "waits",
        needs="editor",
        body=WithdrawRequest,
        answer=Wait,
        statuses=(404, 409),
    ),
    RouteSpec(
        "GET",
        "/api/runs/{id}/signals",
        list_signals,
        "Signals sent to a run",
        "waits",
        needs="viewer",
        answer=SignalList,
        statuses=(404,),
        query=SignalsQuery,
    ),
)
