"""Routes that other systems post to, with the message that a `callback` block waits for. Public: the token in the
address is the credential.

The first POST that fits counts. GET shows nothing: only a program that has the address needs it.
"""

from __future__ import annotations

from typing import Any

import orjson
from msgspec import Struct
from starlette.responses import Response

from executor.errors import AlreadyAnswered, NotFound
from server.api.waits import too_late
from server.http.body import parse_json, read_bytes
from server.http.call import Call
from server.http.errors import UnsupportedMedia, problem
from server.http.response import json_response
from server.http.table import Routes, RouteSpec
from server.settings import Limits


class CallbackTaken(Struct, frozen=True):
    """POST /callbacks/{token}: the request was accepted as the answer."""

    accepted: bool
    received_at_ms: int


BODY_BYTES_MAX = 1024 * 1024


HINT = "Send the answer to this URL with POST, as JSON or text. Only the first answer is accepted."


route = Routes("waits", RouteSpec)


@route(
    "POST",
    "/callbacks/{token}",
    "Answer a callback block, once",
    public=True,
    body=Any,
    body_bytes=BODY_BYTES_MAX,
    answer=CallbackTaken,
    status=202,
    statuses=(400, 404, 409, 413, 415, 422, 429),
)
async def receive(call: Call) -> Response:
    """Any JSON or text. 202: accepted. 409: answered before; `answered_by` and `answered_at_ms` have details. 422: the
    body does not match the schema; the URL stays open."""
    token = call.path("token")
    headers = {name.lower(): value for name, value in call.request.headers.items()}
    body = _body(await read_bytes(call.request, call.limits), headers.get("content-type", ""), call.limits)
    try:
        await call.engine.waits.by_token(token, "callback")
    except NotFound:
        call.link_rates.missed(call.address)
        raise
    call.link_rates.answering(token)
    try:
        wait = await call.engine.callbacks.receive(token, body, headers)
    except AlreadyAnswered as error:
        late = too_late(error)
        del late.extra["answer"]  # later callers do not see the first answer
        raise late from None
    return json_response(CallbackTaken(True, wait.answered_at_ms or 0), 202)


@route("GET", "/callbacks/{token}", "Not available", public=True, documented=False, status=405)
async def look(call: Call) -> Response:
    """The same response for every token, so that it reveals nothing."""
    detail = "This URL accepts only POST requests from programs."
    return problem(405, "method_not_allowed", detail, hint=HINT, headers={"Allow": "POST"})


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
        raise UnsupportedMedia("The body is neither JSON nor UTF-8 text.", hint=HINT) from None
