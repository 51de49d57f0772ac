"""Is it well, what does it speak, and which weft is it."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from typing import Any

from starlette.responses import Response

from server.http.call import Call
from server.http.openapi import openapi_bytes
from server.http.response import json_response
from server.http.table import RouteSpec
from server.wire.about import Health, Version


async def healthz(call: Call) -> Response:
    """200 when the database can be read, otherwise the error of the database (503 or 507). Does not wait for writes."""
    await call.engine.healthy()
    return json_response(Health("ok"))


async def readyz(call: Call) -> Response:
    """200 when the database completes a write within a second, otherwise 503 or 507."""
    await call.engine.ready()
    return json_response(Health("ok"))


async def openapi(call: Call) -> Response:
    """On a server with a token, the operations require it."""
    return Response(openapi_bytes(call.request.app.state.table, call.auth.required), media_type="application/json")


async def version(call: Call) -> Response:
    return json_response(Version(_version(), call.session is not None))


@cache
def _version() -> str:
    try:
        return installed_version("weft")
    except PackageNotFoundError:
        return "unknown"


TABLE = (
    RouteSpec("GET", "/healthz", healthz, "Health", "server", public=True, answer=Health, statuses=(503, 507)),
    RouteSpec("GET", "/readyz", readyz, "Readiness", "server", public=True, answer=Health, statuses=(503, 507)),
    RouteSpec("GET", "/api/version", version, "Version of the server", "server", answer=Version),
    RouteSpec("GET", "/openapi.json", openapi, "The OpenAPI description", "server", public=True, answer=dict[str, Any]),
    RouteSpec("GET", "/api/openapi.json", openapi, "The OpenAPI description", "server", answer=dict[str, Any]),
)
