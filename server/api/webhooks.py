"""Webhooks, and the requests that they receive. Those are public: the secret of the webhook is the credential, never
the server's. A holder of the token chooses the workflow that runs.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from starlette.responses import Response

from executor.errors import NotFound, StoreError, WeftError
from executor.kernel.store.topics.webhooks import Auth
from executor.service.triggers.declared import WebhookSpec
from executor.service.triggers.hooks import PUSH
from executor.service.triggers.listening import TEST, DraftAddress, DraftEvent
from executor.service.triggers.requests import Received
from executor.service.triggers.webhooks import Delivered, DeliveryView, RefusalView, WebhookView
from executor.service.views import view_of
from server.api.runs import wait_for
from server.api.schedules import OWN_ID, TriggerDeleted, TriggersQuery
from server.http.errors import only_post, problem
from server.http.request import parse_json, read_bytes
from server.http.response import Json, block_response
from server.http.table import Call, Routes, RouteSpec, links_to
from server.settings import Limits


class WebhookList(Struct, frozen=True):
    """The webhooks, by id."""

    webhooks: list[WebhookView]


class WebhookDetail(WebhookView, frozen=True, kw_only=True):
    """`secret`: the key of signatures, or the bearer token; null when it is read from the environment or not required.
    `deliveries`: the last 50, newest first. `refused`: by reason, including those before the last start of the
    server."""

    secret: str | None
    deliveries: list[DeliveryView]
    refused: list[RefusalView]


class WebhookRotated(Struct, frozen=True):
    """`secret`: the new one; the old one no longer works."""

    id: str
    secret: str


_ONE = "/api/webhooks/{id}"

route = Routes("triggers", RouteSpec)


@route("GET", "/api/webhooks", "All webhooks", needs="viewer")
async def list_all(call: Call, query: TriggersQuery) -> WebhookList:
    """All webhooks, without their secrets."""
    return WebhookList(await call.engine.webhooks.all(query.workflow))


@route("GET", _ONE, "A webhook with its secret and its last deliveries", needs="admin")
async def read(call: Call, id: str) -> WebhookDetail:
    """A webhook with its secret, its last deliveries and its refused requests."""
    return await _detail(call, await call.engine.webhooks.get(id))


@route(
    "PUT",
    _ONE,
    "Create or change a webhook",
    needs="admin",
    statuses=(201, 409),
    params=(OWN_ID,),
    links=(
        *links_to(_ONE, "GET", "POST /enable", "POST /disable", "POST /rotate"),
        *links_to("/hooks/{id}", "POST"),
        *links_to(_ONE, "DELETE"),
    ),
)
async def put(call: Call, id: str, body: WebhookSpec) -> Json[WebhookDetail]:
    """201 for a new webhook, 200 for a change. 409: the webhook is declared by a document; change it there."""
    view, created = await call.engine.webhooks.put(id, body)
    return Json(await _detail(call, view), 201 if created else 200)


@route("DELETE", _ONE, "Delete a webhook", needs="admin", statuses=(409,))
async def delete(call: Call, id: str) -> TriggerDeleted:
    """Delete a webhook. Its runs are kept. 409: it is declared by a document; remove it there."""
    await call.engine.webhooks.delete(id)
    return TriggerDeleted(id, True)


@route("POST", f"{_ONE}/enable", "Enable a webhook", needs="editor")
async def enable(call: Call, id: str) -> WebhookDetail:
    """Authenticated requests start runs again."""
    return await _detail(call, await call.engine.webhooks.switch(id, True))


@route("POST", f"{_ONE}/disable", "Disable a webhook", needs="editor")
async def disable(call: Call, id: str) -> WebhookDetail:
    """Authenticated requests get 410."""
    return await _detail(call, await call.engine.webhooks.switch(id, False))


@route("POST", f"{_ONE}/rotate", "Replace the secret of a webhook", needs="admin", statuses=(409,))
async def rotate(call: Call, id: str) -> WebhookRotated:
    """Create a new secret; the old one stops working. 409: the webhook has no secret, or reads it from the
    environment."""
    return WebhookRotated(id, await call.engine.webhooks.rotate(id))


async def _detail(call: Call, view: WebhookView) -> WebhookDetail:
    webhooks = call.engine.webhooks
    return view_of(
        WebhookDetail,
        view,
        secret=await webhooks.secret(view.id),
        deliveries=await webhooks.deliveries(view.id),
        refused=await webhooks.refused(view.id),
    )


class ListenRequest(Struct, forbid_unknown_fields=True):
    """POST /api/drafts/{id}/listen. `trigger`: the id of a webhook block."""

    trigger: str


class PollRequest(Struct, forbid_unknown_fields=True):
    """POST /api/drafts/{id}/poll. `trigger`: the id of a block that polls. `after`: for the next event."""

    trigger: str
    after: str | None = None


@route("POST", "/api/drafts/{id}/listen", "Get a test address of a webhook", needs="editor", audit=False)
async def listen(call: Call, id: str, body: ListenRequest) -> DraftAddress:
    """For 10 minutes, requests to `url` run the draft as it is stored then, with the authentication that the webhook
    will have. Nothing is published, and a restart of the server changes nothing."""
    return await call.engine.listening.listen(id, body.trigger)


@route(
    "POST",
    "/api/drafts/{id}/poll",
    "Run a draft with an event of a source",
    status=202,
    needs="editor",
    audit=False,
)
async def poll_draft(call: Call, id: str, body: PollRequest) -> DraftEvent:
    """Read the source of the `event.*` block `trigger` as the draft has it, and run the draft with its newest event.
    409 `no_events`: there is none. To wait for the next one, send `after`, first '', then that of the answer before,
    every few seconds until an answer has a `run`. 409 `listening_ended`: two minutes are over, or the trigger was
    changed."""
    return await call.engine.listening.poll(id, body.trigger, body.after)


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


@route(
    "POST",
    "/hooks/{id}",
    "Receive a webhook request",
    public=True,
    body=Any,
    body_bytes=BODY_BYTES_MAX,
    answer=HookStarted,
    status=202,
    statuses=(200, 401, 409, 410, 429, 502, 503),
)
async def receive(call: Call, id: str) -> Response:
    """202 when the run is stored, or the response of the run; 200 for an event that a service reports. 401:
    authentication failed. 409: this delivery was received before. 410: the webhook is disabled."""
    proved = False
    try:
        received = await _read(call, id)

        def admit(auth: Auth) -> None:
            nonlocal proved
            proved = True
            call.rates.hook_proved(id, auth, call.address)
            _check_json(received, call.limits)

        if id.startswith(PUSH):
            reply = await call.engine.hooks.receive(id, received, admit)
            return Response(reply.text, headers=reply.headers)
        topic = call.engine.listening if id.startswith(TEST) else call.engine.webhooks
        delivered = await topic.receive(id, received, admit)
    except NotFound:
        call.rates.link_missed(call.address)
        raise
    except StoreError:
        raise
    except WeftError:
        if not proved:
            call.rates.hook_refused(call.address)
        raise
    if delivered.timeout_s is None:
        return _started(delivered, delivered.submitted.status)
    return await _answer(call, delivered, delivered.timeout_s)


async def _read(call: Call, id: str) -> Received:
    """Return the request as bytes. Raises BodyTooLarge, BodyTimeout, MalformedBody, which are recorded like refusals of
    the webhook."""
    request = call.request
    try:
        body = await read_bytes(request, call.limits)
    except WeftError as error:
        call.engine.webhooks.record_refused(id, error)
        raise
    headers = {name.lower(): value for name, value in request.headers.items()}
    return Received(request.method, headers, request.query_params.multi_items(), body)


def _check_json(received: Received, limits: Limits) -> None:
    media = received.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media.endswith(("/json", "+json")) and received.body.strip():
        parse_json(received.body, limits)


@route.page("GET", "/hooks/{id}", "Not available", status=405)
async def refuse(call: Call) -> Response:
    return only_post(HINT)


async def _answer(call: Call, delivered: Delivered, timeout_s: float) -> Response:
    """Return the run's answer, if there is one in time. Errors inside the run are shown only to users who may see the
    run."""
    run = await wait_for(call, delivered.submitted.run, timeout_s)
    if run.response is not None and run.status == "succeeded":
        return block_response(run.response, {"Weft-Run": run.id})
    if run.status == "succeeded":
        result = HookResult(run.id, run.status, delivered.delivery, run.output)
        return Json(result, headers={"Weft-Run": run.id})
    if run.status in ("failed", "cancelled"):
        return problem(502, f"run_{run.status}", f"The run has {_ENDED[run.status]}.", extra={"run": run.id})
    return _started(delivered, run.status)


_ENDED = {"failed": "failed", "cancelled": "been cancelled"}


def _started(delivered: Delivered, status: str) -> Response:
    run = delivered.submitted.run
    started = HookStarted(run, status, delivered.delivery, f"/api/runs/{run}")
    return Json(started, 202, {"Weft-Run": run})
