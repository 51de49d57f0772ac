"""Resume links: GET shows what is asked and changes nothing (mail scanners open links), POST answers, once.

Public: the token in the link is the credential. `/resume/{token}` speaks HTML, and JSON to those
who ask for it; `/api/resume/{token}` speaks JSON.
"""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.responses import Response

from executor.errors import AlreadyAnswered, AnswerInvalid, Conflict, NotFound
from executor.views import WaitView, view_of
from server import ui
from server.http.body import read_as, read_bytes
from server.http.call import Call
from server.http.errors import BodyInvalid
from server.http.response import json_response
from server.http.table import RouteSpec
from server.pages import resume as pages
from server.pages.forms import read_form, schema_fields
from server.wire.waits import AnswerRequest, PublicWait

FORM_FIELDS_MAX = 1000
FORM_HINT = f"Send text in UTF-8, at most {FORM_FIELDS_MAX} fields."


async def show(call: Call) -> Response:
    if _wants_json(call):
        return await show_json(call)
    try:
        wait = await _find(call)
    except NotFound:
        return pages.unknown()
    extras = _extras(call)
    return pages.ask(wait, extras=extras) if wait.status == "pending" else pages.closed(wait, 200, extras)


async def show_json(call: Call) -> Response:
    return json_response(view_of(PublicWait, await _find(call)))


async def answer(call: Call) -> Response:
    """A form post returns a page, a JSON post returns JSON."""
    media = call.request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media == "application/x-www-form-urlencoded":
        return await _answer_form(call)
    return await answer_json(call)


async def answer_json(call: Call) -> Response:
    """{"action", "fields", "by"}."""
    await _find(call, answering=True)
    body = await read_as(call.request, call.limits, AnswerRequest)
    try:
        answered = await call.engine.answer(call.path("token"), body.fields, body.action, body.by)
    except AlreadyAnswered as error:
        raise too_late(error) from None
    return json_response(view_of(PublicWait, answered))


async def _answer_form(call: Call) -> Response:
    token = call.path("token")
    try:
        wait = await _find(call, answering=True)
    except NotFound:
        return pages.unknown()
    typed, extras = _decode(await read_bytes(call.request, call.limits)), _extras(call)
    if wait.status != "pending":
        return pages.closed(wait, 409, extras)
    fields, errors = read_form(wait.schema, typed)
    if errors:
        return pages.ask(wait, typed=typed, errors=errors, extras=extras)
    action = typed.get("action") or None
    try:
        answered = await call.engine.answer(token, fields, action, typed.get("by", "").strip()[:200] or None)
    except AnswerInvalid as error:
        return _ask_again(wait, typed, error, extras)
    except Conflict:
        return pages.closed(await call.engine.waits.find(token), 409, extras)
    return pages.thanks(answered, action, extras)


async def _find(call: Call, answering: bool = False) -> WaitView:
    """Raises NotFound, TooManyTries."""
    try:
        wait = await call.engine.waits.find(call.path("token"))
    except NotFound:
        call.link_rates.missed(call.address)
        raise
    if answering:
        call.link_rates.answering(call.path("token"))
    return wait


def _ask_again(wait: WaitView, typed: dict[str, str], error: AnswerInvalid, extras: ui.Extras) -> Response:
    """Put each message at the field its pointer names; what belongs to no field is shown above the form."""
    known = schema_fields(wait.schema)
    found = error.extra.get("errors") or [{"pointer": "", "message": error.message}]
    at_field: dict[str, str] = {}
    on_top: list[str] = []
    for one in found:
        name = one["pointer"].split("/")[1].replace("~1", "/").replace("~0", "~") if one["pointer"] else None
        if name in known:
            at_field.setdefault(name, one["message"])
        else:
            on_top.append(one["message"])
    return pages.ask(wait, typed=typed, errors=at_field, error=" ".join(on_top) or None, extras=extras)


def _extras(call: Call) -> ui.Extras:
    """What the interface adds to these pages, if it was built: its fonts, checks while a form is filled in, a notice
    when the question was answered elsewhere."""
    return ui.extras(call.interface, "resume")


def _decode(data: bytes) -> dict[str, str]:
    """The last value of each input wins. Raises BodyInvalid (422)."""
    try:
        return dict(parse_qsl(data.decode("utf-8"), keep_blank_values=True, max_num_fields=FORM_FIELDS_MAX))
    except ValueError as error:
        raise BodyInvalid(f"The form cannot be read: {error}", pointer="", hint=FORM_HINT) from None


def too_late(error: AlreadyAnswered) -> Conflict:
    """The same conflict with who and when, or with what became of the wait."""
    wait: WaitView = error.extra["wait"]
    return Conflict(
        error.message,
        code=error.code,
        wait_status=wait.status,
        answered_by=wait.answered_by,
        answered_at_ms=wait.answered_at_ms,
        answer=wait.response,
    )


def _wants_json(call: Call) -> bool:
    return call.accepts("application/json") and not call.accepts("text/html")


_BOTH = ("text/html", "application/json")
_SHOW = "The request behind a resume link"
_ANSWER = "Answer a wait, once"

TABLE = (
    RouteSpec(
        "GET", "/resume/{token}", show, _SHOW, "waits", public=True, answer=PublicWait, statuses=(404, 429), media=_BOTH
    ),
    RouteSpec(
        "POST",
        "/resume/{token}",
        answer,
        _ANSWER,
        "waits",
        public=True,
        body=AnswerRequest,
        answer=PublicWait,
        statuses=(404, 409, 422, 429),
        media=_BOTH,
    ),
    RouteSpec(
        "GET", "/api/resume/{token}", show_json, _SHOW, "waits", public=True, answer=PublicWait, statuses=(404, 429)
    ),
    RouteSpec(
        "POST",
        "/api/resume/{token}",
        answer_json,
        _ANSWER,
        "waits",
        public=True,
        body=AnswerRequest,
        answer=PublicWait,
        statuses=(404, 409, 422, 429),
    ),
)
