"""Links that answer a wait, as pages and as JSON, and the addresses that other systems post to, with the message that a
`callback` block waits for. Public: the token in the address is the credential. The first answer counts.
"""

from __future__ import annotations

from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from executor.errors import AlreadyAnswered, AnswerInvalid, Conflict, NotFound, NotYours, SignInRequired
from executor.kernel.process.acting import Act, Reach, acting
from executor.kernel.run.answers import needs_sign_in
from executor.service.views import WaitView, view_of
from server.api.waits import AnswerRequest, PublicWait, too_late
from server.http.auth import HINT
from server.http.errors import UnsupportedMedia, only_post
from server.http.multipart import FORM_MEDIAS, posted
from server.http.principal import Principal
from server.http.request import parse_json, read_as, read_bytes
from server.http.table import Call, Routes, RouteSpec
from server.pages import entry
from server.pages import resume as pages
from server.pages.forms import file_inputs, placed_errors, read_form
from server.settings import Limits

_BOTH = ("text/html", "application/json")
_SHOW = "The request behind a resume link"
_ANSWER = "Answer a wait, once"

route = Routes("waits", RouteSpec)


@route("GET", "/resume/{token}", _SHOW, public=True, statuses=(429,), media=_BOTH)
async def show(call: Call, token: str) -> PublicWait | Response:
    if call.accepts("application/json") and not call.accepts("text/html"):
        return await show_json(call, token)
    try:
        wait = await _find(call, token)
    except NotFound:
        return pages.unknown()
    if await _is_closed_to(call, wait):
        return entry.sign_in(provider=call.provider)
    if wait.status != "pending":
        return pages.closed(wait, 200, call.extras)
    return await _ask(call, wait, read_only=call.settings.read_only)


@route("GET", "/api/resume/{token}", _SHOW, public=True, statuses=(429,))
async def show_json(call: Call, token: str) -> PublicWait:
    wait = await _find(call, token)
    if await _is_closed_to(call, wait):
        raise SignInRequired(hint=HINT)
    return view_of(PublicWait, wait)


@route("POST", "/resume/{token}", _ANSWER, public=True, body=AnswerRequest, statuses=(401, 403, 409, 429), media=_BOTH)
async def answer(call: Call, token: str) -> PublicWait | Response:
    """A form post returns a page, a JSON post returns JSON."""
    return await (_answer_form if call.media_type in FORM_MEDIAS else answer_json)(call, token)


@route("POST", "/api/resume/{token}", _ANSWER, public=True, body=AnswerRequest, statuses=(401, 403, 409, 429))
async def answer_json(call: Call, token: str) -> PublicWait:
    """{"action", "fields", "by"}. Where the wait is for certain people, the request needs their credential too: 401 or
    403 without it, and `by` does not count."""
    wait = await _find(call, token, answering=True)
    body = await read_as(call.request, call.limits, AnswerRequest)
    try:
        answered = await _record(call, token, wait, body.fields, body.action, body.by)
    except AlreadyAnswered as error:
        raise too_late(error) from None
    return view_of(PublicWait, answered)


async def _answer_form(call: Call, token: str) -> Response:
    try:
        wait = await _find(call, token, answering=True)
    except NotFound:
        return pages.unknown()
    extras = call.extras
    files = file_inputs(wait.schema)
    if wait.status != "pending":
        late = None if files else (await posted(call, files, token)).get("action")
        return pages.closed(wait, 409, extras, late)
    if files and await _is_closed_to(call, wait):  # before anything is stored
        return entry.sign_in()
    typed = await posted(call, files, token)
    fields, errors = read_form(wait.schema, typed)
    if errors:
        return await _ask(call, wait, typed=typed, errors=errors)
    action = typed.get("action") or None
    try:
        answered = await _record(call, token, wait, fields, action, typed.get("by", "").strip()[:200] or None)
    except SignInRequired:
        return entry.sign_in(provider=call.provider)
    except NotYours as error:
        return await _ask(call, wait, typed=typed, error=error.message)
    except AnswerInvalid as error:
        at_field, on_top = placed_errors(wait.schema, error)
        return await _ask(call, wait, typed=typed, errors=at_field, error=on_top)
    except Conflict:
        return pages.closed(await call.engine.waits.find(token), 409, extras, action)
    return pages.thanks(answered, action, extras)


async def _ask(call: Call, wait: WaitView, **more: Any) -> Response:
    wait = replace(wait, workflow=await call.engine.workflows.title(wait.workflow))
    return pages.ask(wait, await call.engine.waits.background(wait), extras=call.extras, **more)


async def _is_closed_to(call: Call, wait: WaitView) -> bool:
    """Return whether the wait is for certain people, and the request does not come from one of them, signed in."""
    return needs_sign_in(wait.request) and call.auth.required and not await call.auth.allows(call.request)


async def _record(
    call: Call, token: str, wait: WaitView, fields: dict[str, Any], action: str | None, said: str | None
) -> WaitView:
    """Record the answer in the audit: its actor is the signed-in user, or the holder of the link with the name typed
    there."""
    who = await call.auth.principal(call.request) if call.auth.required else None
    reach = _reach(call, token, who)
    if who is not None and not needs_sign_in(wait.request):
        who = None if not who.is_signed_in else who
    detail = f"{action or 'answered'}" + (f", said to be {said}" if said else "")
    actor, via = ("link", "link") if who is None else (who.actor, who.via)
    now_ms = call.engine.parts.clock.now_ms()
    path = f"/api/runs/{wait.run}/waits/{wait.key}"
    with acting(Act(actor, via, "POST /resume/{token}", path, now_ms, detail, reach=reach)):
        return await call.engine.answer(token, fields, action, said, None if who is None else who.answerer)


def _reach(call: Call, token: str, who: Principal | None) -> Reach | None:
    """Return the files that an answer may name: those uploaded with it, and those that its sender may use."""
    if not call.auth.required or (who is not None and who.reach is None):
        return None
    if who is None or who.reach is None:
        return Reach(uploaders=(token,))
    return replace(who.reach, uploaders=(*who.reach.uploaders, token))


async def _find(call: Call, token: str, answering: bool = False) -> WaitView:
    wait = await call.follow_link(call.engine.waits.find(token))
    if answering:
        call.rates.link_answered(token)
    return wait


class CallbackTaken(Struct, frozen=True):
    """POST /callbacks/{token}: the request was accepted as the answer."""

    accepted: bool
    received_at_ms: int


CALLBACK_BYTES_MAX = 1024 * 1024
CALLBACK_HINT = "Send the answer to this URL with POST, as JSON or text. Only the first answer is accepted."


@route(
    "POST",
    "/callbacks/{token}",
    "Answer a callback block, once",
    public=True,
    body=Any,
    body_bytes=CALLBACK_BYTES_MAX,
    status=202,
    statuses=(409, 429),
)
async def receive(call: Call, token: str) -> CallbackTaken:
    """Any JSON or text. 202: accepted. 409: answered before; `answered_by` and `answered_at_ms` have details. 422: the
    body does not match the schema; the URL stays open."""
    headers = {name.lower(): value for name, value in call.request.headers.items()}
    body = _body(await read_bytes(call.request, call.limits), headers.get("content-type", ""), call.limits)
    await call.follow_link(call.engine.waits.by_token(token, "callback"))
    call.rates.link_answered(token)
    try:
        wait = await call.engine.callbacks.receive(token, body, headers)
    except AlreadyAnswered as error:
        late = too_late(error)
        del late.extra["answer"]  # later callers do not see the first answer
        raise late from None
    return CallbackTaken(True, wait.answered_at_ms or 0)


@route.page("GET", "/callbacks/{token}", "Not available", status=405)
async def refuse(call: Call) -> Response:
    return only_post(CALLBACK_HINT)


def _body(data: bytes, content_type: str, limits: Limits) -> Any:
    """Return the body. It must be JSON if it is declared as such; without a declaration it is JSON if it can be read
    so, else text. Raises MalformedBody (400), UnsupportedMedia (415)."""
    media = content_type.partition(";")[0].strip().lower()
    if not data.strip():
        return None
    if media == "application/json" or media.endswith("+json"):
        return parse_json(data, limits)
    if not media:
        try:
            orjson.loads(data)
        except orjson.JSONDecodeError:
            pass
        else:
            return parse_json(data, limits)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise UnsupportedMedia("The body is neither JSON nor UTF-8 text.", hint=CALLBACK_HINT) from None
