"""Waits of all runs, for holders of the server's token: the inbox, one wait, withdrawing a question; and the signals
of a run."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from executor.errors import AlreadyAnswered, BadRequest, Conflict
from executor.kernel.core.events import WaitKind
from executor.kernel.run.answers import needs_sign_in
from executor.kernel.store.topics.waits import WaitStatus
from executor.service.topics.waits import WaitFilter
from executor.service.views import SignalView, WaitShown, WaitView, view_of
from server.api.runs import KEY, idempotency_key
from server.http.errors import Forbidden
from server.http.principal import without_links
from server.http.response import PAGE_MAX, Json, PersonName, ShortText, capped
from server.http.table import Call, Link, Routes, RouteSpec


class PublicWait(WaitShown, frozen=True, omit_defaults=False):
    """A wait as it is shown to the holder of its link. `label` is the name of the block; `age_s` is in seconds since it
    opened."""


class Wait(WaitView, frozen=True, omit_defaults=False):
    """A wait with its `link`, which answers it while it is pending; for a callback it is the URL to post to."""


class WaitCounts(Struct, frozen=True):
    """The number of waits by status."""

    pending: int
    answered: int
    cancelled: int
    expired: int


class WaitPage(Struct, frozen=True):
    """`next`: pass it as `before` for the following page; null at the end. `counts`: null with `counts=0`. `capped`:
    statuses of which there are at least 100,000 waits; they are not counted further."""

    waits: list[Wait]
    next: str | None
    counts: WaitCounts | None
    capped: list[WaitStatus]


class WaitsQuery(Struct, frozen=True):
    status: Annotated[
        Literal[WaitStatus, "all"], Meta(description="pending (default), answered, cancelled, expired or all.")
    ] = "pending"
    kind: Annotated[
        WaitKind | None, Meta(description="Only waits of this kind. Waits of callback blocks have the kind webhook.")
    ] = None
    workflow: Annotated[str | None, Meta(description="Only waits of runs of this workflow.")] = None
    run: Annotated[str | None, Meta(description="Only waits of this run.")] = None
    before: Annotated[str | None, Meta(description="`next` of the previous page.")] = None
    limit: Annotated[int, Meta(ge=1, le=PAGE_MAX, description="Waits per page.")] = 200
    counts: Annotated[bool, Meta(description="0: do not count waits; the answer comes sooner.")] = True


class SignalsQuery(Struct, frozen=True):
    name: Annotated[str | None, Meta(description="Only signals of this name.")] = None
    correlation: Annotated[str | None, Meta(description="Only signals with this correlation.")] = None
    received_after: Annotated[
        int | None, Meta(description="Only signals at or after this time, Unix milliseconds.")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=PAGE_MAX, description="Maximum number of signals, oldest first.")] = 200


class AnswerRequest(Struct, forbid_unknown_fields=True):
    """POST /resume/{token}. `by` is the name recorded with the answer."""

    action: str | None = None
    fields: dict[str, Any] = {}
    by: PersonName | None = None


class WithdrawRequest(Struct, forbid_unknown_fields=True):
    """DELETE /api/runs/{id}/waits/{wait}. Both fields are recorded in the error of the block."""

    by: PersonName | None = None
    reason: Annotated[str, Meta(max_length=500)] = ""


class SignalAccepted(Struct, frozen=True):
    """`seq` counts the signals of this run from 1. `new` is false if the dedupe key was used before."""

    run: str
    name: str
    seq: int
    new: bool


class SignalRequest(Struct, forbid_unknown_fields=True):
    """`dedupe_key`: a repeated key returns the first signal; the Idempotency-Key header does the same."""

    payload: Any = None
    correlation: ShortText | None = None
    dedupe_key: ShortText | None = None
    by: PersonName | None = None


class SignalList(Struct, frozen=True):
    """The signals in order of arrival, including those that a wait has received."""

    signals: list[SignalView]


_ONE = "/api/runs/{id}/waits/{key}"
_OLDEST = {"id": "$response.body#/waits/0/run", "key": "$response.body#/waits/0/id"}

route = Routes("waits", RouteSpec)


@route(
    "GET",
    "/api/waits",
    "Open waits, with links",
    needs="viewer",
    links=(Link("GET", _ONE, _OLDEST), Link("DELETE", _ONE, _OLDEST)),
)
async def list_waits(call: Call, query: WaitsQuery) -> WaitPage:
    """Open waits with their links, oldest first. `counts`: by status, up to 100,000, for the same run, kind and
    workflow."""
    where = view_of(WaitFilter, query, status=None if query.status == "all" else query.status)
    page = await call.engine.waits.page(where)
    counts = None if page.counts is None else WaitCounts(**page.counts)
    waits = [view_of(Wait, wait) for wait in without_links(call.who, page.waits)]
    return WaitPage(waits, page.next, counts, capped(page.counts or {}))


@route("GET", _ONE, "A wait, by its id or the key of its node", needs="viewer")
async def read(call: Call, id: str, key: str) -> Wait:
    wait = await call.engine.waits.get(id, key)
    return view_of(Wait, *without_links(call.who, [wait]))


@route("POST", _ONE, "Answer a wait", needs="viewer", statuses=(409,))
async def answer(call: Call, id: str, key: str, body: AnswerRequest) -> Wait:
    """The answer counts once. A wait for certain people is answered by them alone, any other wait by users with the
    role approver. `by`: by default your own name. 409: it was answered before."""
    who, waits = call.who, call.engine.waits
    wait = await waits.get(id, key)
    if not (needs_sign_in(wait.request) or who.may("approver")):
        raise Forbidden(f"This needs the role approver; yours is {who.role}.", needs="approver", role=who.role)
    call.record(body.action or "answered")
    answerer = who.answerer if call.auth.required else None
    by = body.by or (answerer.name if answerer else None)
    try:
        answered = await waits.answer_wait(id, wait.id, body.fields, body.action, by, answerer)
    except AlreadyAnswered as error:
        raise too_late(error) from None
    return view_of(Wait, *without_links(who, [answered]))


@route("DELETE", _ONE, "Withdraw a wait", needs="editor", statuses=(409,))
async def withdraw(call: Call, id: str, key: str, body: WithdrawRequest) -> Wait:
    """The wait becomes `cancelled` and its block fails with `wait_cancelled`. 409: the wait is already over, or is for
    a time, a signal or a child run and cannot be withdrawn."""
    wait = await call.engine.waits.cancel(id, key, body.by, body.reason)
    return view_of(Wait, wait)


@route("GET", "/api/runs/{id}/signals", "Signals sent to a run", needs="viewer")
async def list_signals(call: Call, id: str, query: SignalsQuery) -> SignalList:
    """Oldest first, also those that a wait has received."""
    found = await call.engine.signals.list(
        id,
        name=query.name,
        correlation=query.correlation,
        received_after_ms=query.received_after,
        limit=query.limit,
    )
    return SignalList(found)


def too_late(error: AlreadyAnswered) -> Conflict:
    """Return the conflict with who answered and when, or with the outcome of the wait."""
    wait: WaitView = error.extra["wait"]
    return Conflict(
        error.message,
        code=error.code,
        wait_status=wait.status,
        answered_by=wait.answered_by,
        answered_at_ms=wait.answered_at_ms,
        answer=wait.response,
    )


@route(
    "POST",
    "/api/runs/{id}/signals/{name}",
    "Send a signal to a run",
    tag="runs",
    needs="editor",
    status=202,
    statuses=(200, 409),
    params=(KEY,),
)
async def signal(call: Call, id: str, name: str, body: SignalRequest) -> Json[SignalAccepted]:
    """202 for a new signal, 200 when its dedupe key was used before."""
    key = idempotency_key(call)
    if not name:
        raise BadRequest("A signal requires a name.", code="signal_name_missing")
    seq, new = await call.engine.signal(
        id,
        name,
        body.payload,
        correlation=body.correlation,
        dedupe_key=body.dedupe_key or key,
        by=body.by,
    )
    return Json(SignalAccepted(id, name, seq, new), 202 if new else 200)
