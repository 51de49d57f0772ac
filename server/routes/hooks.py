"""Where other systems post what starts runs. Public: the webhook's own secret is the credential, never the server's.

A request names a webhook and brings data. Which workflow runs is what somebody with the token stored.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from msgspec.structs import replace
from starlette.responses import Response

from executor.errors import NotFound, WeftError
from executor.triggers.requests import Received
from executor.triggers.webhooks import Delivered
from server.body import parse_json, read_bytes
from server.errors import problem
from server.rates import Buckets, LinkRates, TooManyTries
from server.routes.response import block_response
from server.routes.runs import wait_for
from server.routes.table import Call, RouteSpec
from server.wire import json_response
from server.wire_triggers import HookResult, HookStarted

BODY_BYTES_MAX = 1024 * 1024
# For each address and webhook. A sender that catches up sends a burst; a flood is told to come back later.
BURST, PER_S = 120, 20.0
ID_CHARS_MAX = 300  # longer than any id: what is asked for is remembered, whether it is there or not
HINT = "Post to this address."


class HookRates(Buckets):
    """Requests by address and webhook."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__(BURST, PER_S, now_s)

    def admit(self, call: Call) -> None:
        """Raises TooManyTries."""
        wait_s = self.take(f"{call.address}\0{call.path('id')[:ID_CHARS_MAX]}")
        if wait_s:
            seconds = math.ceil(wait_s)
            message = "Too many requests to this webhook."
            raise TooManyTries(message, hint=f"Try again in {seconds} s.", retry_after_s=seconds)


async def receive(call: Call) -> Response:
    """202 once the run is stored, or what the run answers. 401: the request proves nothing. 409: a delivery that came
    before. 410: the webhook is switched off."""
    misses: LinkRates = call.request.app.state.link_rates
    try:
        received = await _read(call)
    except WeftError as error:
        call.engine.webhooks.note_refused(call.path("id"), error)
        raise
    try:
        delivered = await call.engine.webhooks.receive(call.path("id"), received)
    except NotFound:
        misses.missed(call.address)
        raise
    if delivered.timeout_s is None:
        return _started(delivered, delivered.submitted.status)
    return await _answer(call, delivered, delivered.timeout_s)


async def _read(call: Call) -> Received:
    """Raises what is wrong with the request, whatever the webhook."""
    rates: HookRates = call.request.app.state.hook_rates
    rates.admit(call)
    request = call.request
    limits = replace(call.settings.limits, request_bytes=BODY_BYTES_MAX)
    headers = {name.lower(): value for name, value in request.headers.items()}
    body = await read_bytes(request, limits)
    if headers.get("content-type", "").partition(";")[0].strip().lower().endswith(("/json", "+json")) and body.strip():
        parse_json(body, limits)  # for its bounds
    return Received(request.method, headers, request.query_params.multi_items(), body)


async def look(call: Call) -> Response:
    """The same for every id, so that looking tells nothing."""
    detail = "This is an address for programs to post to."
    return problem(405, "method_not_allowed", detail, hint=HINT, headers={"Allow": "POST"})


async def _answer(call: Call, delivered: Delivered, timeout_s: float) -> Response:
    """What the run answers, if it does so in time. What went wrong inside it is for those who may see the run."""
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


TABLE = (
    RouteSpec("GET", "/hooks/{id}", look, "Nothing to see", "triggers", public=True, documented=False, status=405),
    RouteSpec(
        "POST",
        "/hooks/{id}",
        receive,
        "Start what a webhook starts",
        "triggers",
        public=True,
        body={},
        answer=HookStarted,
        status=202,
        statuses=(200, 400, 401, 404, 409, 410, 413, 422, 429, 502, 503),
    ),
)
