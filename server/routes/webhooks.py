"""Webhooks: their addresses, their secrets, and what came in. What comes in is the business of `hooks.py`."""

from __future__ import annotations

from starlette.responses import Response

from executor.service.triggers.webhooks import WebhookSpec, WebhookView
from executor.service.views import view_of
from server.http.body import read_as
from server.http.call import Call
from server.http.response import json_response
from server.http.table import Link, RouteSpec
from server.routes.schedules import OWN_ID
from server.wire.triggers import TriggerDeleted, TriggersQuery, WebhookDetail, WebhookList, WebhookRotated


async def list_all(call: Call) -> Response:
    """All webhooks, without their secrets."""
    return json_response(WebhookList(await call.engine.webhooks.all(call.query(TriggersQuery).workflow)))


async def read(call: Call) -> Response:
    """A webhook with its secret, its last deliveries and its refused requests."""
    return json_response(await _detail(call, await call.engine.webhooks.get(call.path("id"))))


async def put(call: Call) -> Response:
    """201 for a new webhook, 200 for a change. 409: the webhook is declared by a document; change it there."""
    spec = await read_as(call.request, call.limits, WebhookSpec)
    view, created = await call.engine.webhooks.put(call.path("id"), spec)
    return json_response(await _detail(call, view), 201 if created else 200)


async def delete(call: Call) -> Response:
    """Delete a webhook. Its runs are kept. 409: it is declared by a document; remove it there."""
    await call.engine.webhooks.delete(call.path("id"))
    return json_response(TriggerDeleted(call.path("id"), True))


async def enable(call: Call) -> Response:
    """Authenticated requests start runs again."""
    return json_response(await _detail(call, await call.engine.webhooks.switch(call.path("id"), True)))


async def disable(call: Call) -> Response:
    """Authenticated requests get 410."""
    return json_response(await _detail(call, await call.engine.webhooks.switch(call.path("id"), False)))


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


_ONE = "/api/webhooks/{id}"
_SAME = {"id": "$response.body#/id"}

TABLE = (
    RouteSpec(
        "GET",
        "/api/webhooks",
        list_all,
        "All webhooks",
        "triggers",
        needs="viewer",
        answer=WebhookList,
        query=TriggersQuery,
    ),
    RouteSpec(
        "GET",
        _ONE,
        read,
        "A webhook with its secret and its last deliveries",
        "triggers",
        needs="admin",
        answer=WebhookDetail,
        statuses=(404,),
    ),
    RouteSpec(
        "PUT",
        _ONE,
        put,
        "Create or change a webhook",
        "triggers",
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
    ),
    RouteSpec(
        "DELETE",
        _ONE,
        delete,
        "Delete a webhook",
        "triggers",
        needs="admin",
        answer=TriggerDeleted,
        statuses=(404, 409),
    ),
    RouteSpec(
        "POST",
        f"{_ONE}/enable",
        enable,
        "Enable a webhook",
        "triggers",
        needs="editor",
        answer=WebhookDetail,
        statuses=(404,),
    ),
    RouteSpec(
        "POST",
        f"{_ONE}/disable",
        disable,
        "Disable a webhook",
        "triggers",
        needs="editor",
        answer=WebhookDetail,
        statuses=(404,),
    ),
    RouteSpec(
        "POST",
        f"{_ONE}/rotate",
        rotate,
        "Replace the secret of a webhook",
        "triggers",
        needs="admin",
        answer=WebhookRotated,
        statuses=(404, 409),
    ),
)
