"""Webhooks: their addresses, their secrets, and what came in. What comes in is the business of `hooks.py`."""

from __future__ import annotations

from msgspec import Struct
from starlette.responses import Response

from executor.service.triggers.webhooks import DeliveryView, RefusalView, WebhookSpec, WebhookView
from executor.service.views import view_of
from server.api.schedules import OWN_ID, TriggerDeleted, TriggersQuery
from server.http.body import read_as
from server.http.call import Call
from server.http.response import json_response
from server.http.table import Link, Routes, RouteSpec


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


_SAME = {"id": "$response.body#/id"}


route = Routes("triggers", RouteSpec)


@route("GET", "/api/webhooks", "All webhooks", needs="viewer", answer=WebhookList, query=TriggersQuery)
async def list_all(call: Call) -> Response:
    """All webhooks, without their secrets."""
    return json_response(WebhookList(await call.engine.webhooks.all(call.query(TriggersQuery).workflow)))


@route(
    "GET",
    _ONE,
    "A webhook with its secret and its last deliveries",
    needs="admin",
    answer=WebhookDetail,
    statuses=(404,),
)
async def read(call: Call) -> Response:
    """A webhook with its secret, its last deliveries and its refused requests."""
    return json_response(await _detail(call, await call.engine.webhooks.get(call.path("id"))))


@route(
    "PUT",
    _ONE,
    "Create or change a webhook",
    needs="admin",
    body=WebhookSpec,
    answer=WebhookDetail,
    statuses=(201, 400, 404, 409, 422),
    params=(OWN_ID,),
    links=(
        Link("GET", _ONE, _SAME),
        Link("POST", f"{_ONE}/enable", _SAME),
        Link("POST", f"{_ONE}/disable", _SAME),
        Link("POST", f"{_ONE}/rotate", _SAME),
        Link("POST", "/hooks/{id}", _SAME),
        Link("DELETE", _ONE, _SAME),
    ),
)
async def put(call: Call) -> Response:
    """201 for a new webhook, 200 for a change. 409: the webhook is declared by a document; change it there."""
    spec = await read_as(call.request, call.limits, WebhookSpec)
    view, created = await call.engine.webhooks.put(call.path("id"), spec)
    return json_response(await _detail(call, view), 201 if created else 200)


@route("DELETE", _ONE, "Delete a webhook", needs="admin", answer=TriggerDeleted, statuses=(404, 409))
async def delete(call: Call) -> Response:
    """Delete a webhook. Its runs are kept. 409: it is declared by a document; remove it there."""
    await call.engine.webhooks.delete(call.path("id"))
    return json_response(TriggerDeleted(call.path("id"), True))


@route("POST", f"{_ONE}/enable", "Enable a webhook", needs="editor", answer=WebhookDetail, statuses=(404,))
async def enable(call: Call) -> Response:
    """Authenticated requests start runs again."""
    return json_response(await _detail(call, await call.engine.webhooks.switch(call.path("id"), True)))


@route("POST", f"{_ONE}/disable", "Disable a webhook", needs="editor", answer=WebhookDetail, statuses=(404,))
async def disable(call: Call) -> Response:
    """Authenticated requests get 410."""
    return json_response(await _detail(call, await call.engine.webhooks.switch(call.path("id"), False)))


@route(
    "POST",
    f"{_ONE}/rotate",
    "Replace the secret of a webhook",
    needs="admin",
    answer=WebhookRotated,
    statuses=(404, 409),
)
async def rotate(call: Call) -> Response:
    """Create a new secret; the old one stops working. 409: the webhook has no secret, or reads it from the
    environment."""
    return json_response(WebhookRotated(call.path("id"), await call.engine.webhooks.rotate(call.path("id"))))


async def _detail(call: Call, view: WebhookView) -> WebhookDetail:
    webhooks = call.engine.webhooks
    return view_of(
        WebhookDetail,
        view,
        secret=await webhooks.secret(view.id),
        deliveries=await webhooks.deliveries(view.id),
        refused=await webhooks.refused(view.id),
    )
