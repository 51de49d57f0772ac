"""Routes that other systems post to in order to start runs. Public: the webhook's own secret is the credential, never
the server's.

A request names a webhook and brings data. A holder of the token chooses the workflow that runs.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from starlette.responses import Response

from executor.errors import NotFound, StoreError, WeftError
from executor.kernel.store.topics.webhooks import Auth
from executor.service.triggers.requests import Received
from executor.service.triggers.webhooks import Delivered
from server.api.runs import wait_for
from server.http.body import parse_json, read_bytes
from server.http.call import Call
from server.http.errors import problem
from server.http.response import block_response, json_response
from server.http.table import Routes, RouteSpec
from server.settings import Limits


class HookStarted(Struct, frozen=True):
    """202: the run is stored. `status_url` requires the token of the server, if it has one."""

    run: str
    status: str
    delivery: str
    status_url: str


class HookResult(Struct, frozen=True):
    """200: the run has succeeded."""

    run: str
    status: str
    delivery: str
    output: Any


BODY_BYTES_MAX = 1024 * 1024


HINT = "Send a POST request to this URL."


route = Routes("triggers", RouteSpec)


@route(
    "POST",
    "/hooks/{id}",
    "Receive a webhook request",
    public=True,
    body=Any,
    body_bytes=BODY_BYTES_MAX,
    answer=HookStarted,
    status=202,
    statuses=(200, 400, 401, 404, 409, 410, 413, 422, 429, 502, 503),
)
async def receive(call: Call) -> Response:
    """202 when the run is stored, or the response of the run. 401: authentication failed. 409: this delivery was
    received before. 410: the webhook is disabled."""
    id, rates = call.path("id"), call.hook_rates
    proved = False
    try:
        received = await _read(call)

        def admit(auth: Auth) -> None:
            nonlocal proved
            proved = True
            rates.proved(id, auth, call.address)
            _check_json(received, call.limits)

        delivered = await call.engine.webhooks.receive(id, received, admit)
    except NotFound:
        call.link_rates.missed(call.address)
        raise
    except StoreError:
        raise
    except WeftError:
        if not proved:
            rates.refused(call.address)
        raise
    if delivered.timeout_s is None:
        return _started(delivered, delivered.submitted.status)
    return await _answer(call, delivered, delivered.timeout_s)


async def _read(call: Call) -> Received:
    """Return the request as bytes. Raises BodyTooLarge, BodyTimeout, MalformedBody, which are recorded like refusals of
    the webhook."""
    request = call.request
    try:
        body = await read_bytes(request, call.limits)
    except WeftError as error:
        call.engine.webhooks.record_refused(call.path("id"), error)
        raise
    headers = {name.lower(): value for name, value in request.headers.items()}
    return Received(request.method, headers, request.query_params.multi_items(), body)


def _check_json(received: Received, limits: Limits) -> None:
    """Raises MalformedBody if the body is not JSON, or exceeds the bounds."""
    media = received.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media.endswith(("/json", "+json")) and received.body.strip():
        parse_json(received.body, limits)


@route("GET", "/hooks/{id}", "Not available", public=True, documented=False, status=405)
async def look(call: Call) -> Response:
    """The same response for every id, so that it reveals nothing."""
    detail = "This URL accepts only POST requests from programs."
    return problem(405, "method_not_allowed", detail, hint=HINT, headers={"Allow": "POST"})


async def _answer(call: Call, delivered: Delivered, timeout_s: float) -> Response:
    """Return the run's answer, if there is one in time. Errors inside the run are shown only to users who may see the
    run."""
    run = await wait_for(call, delivered.submitted.run, timeout_s)
    if run.response is not None and run.status == "succeeded":
        return block_response(run.response, {"Weft-Run": run.id})
    if run.status == "succeeded":
        result = HookResult(run.id, run.status, delivered.delivery, run.output)
        return json_response(result, headers={"Weft-Run": run.id})
    if run.status in ("failed", "cancelled"):
        return problem(502, f"run_{run.status}", f"The run has {_ENDED[run.status]}.", extra={"run": run.id})
    return _started(delivered, run.status)


_ENDED = {"failed": "failed", "cancelled": "been cancelled"}


def _started(delivered: Delivered, status: str) -> Response:
    run = delivered.submitted.run
    started = HookStarted(run, status, delivered.delivery, f"/api/runs/{run}")
    return json_response(started, 202, {"Weft-Run": run})
