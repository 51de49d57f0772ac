"""Is it well, and what does it speak."""

from __future__ import annotations

from starlette.responses import Response

from server.openapi import openapi_bytes
from server.routes.table import Call, RouteSpec
from server.wire import json_response


async def healthz(call: Call) -> Response:
    """200 when the database can be read and written; else the store's own error (503, 507)."""
    await call.engine.healthy()
    return json_response({"status": "ok"})


async def openapi(call: Call) -> Response:
    return Response(openapi_bytes(call.request.app.state.table), media_type="application/json")


_HEALTH = {"type": "object", "required": ["status"], "properties": {"status": {"const": "ok"}}}
_DOCUMENT = {"type": "object"}

TABLE = (
    RouteSpec("GET", "/healthz", healthz, "Health", "server", public=True, answer=_HEALTH, statuses=(503, 507)),
    RouteSpec("GET", "/openapi.json", openapi, "This description", "server", public=True, answer=_DOCUMENT),
    RouteSpec("GET", "/api/openapi.json", openapi, "This description", "server", answer=_DOCUMENT),
)
