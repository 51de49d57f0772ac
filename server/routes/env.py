"""Which environment names there are. Their values never leave the server."""

from __future__ import annotations

from starlette.responses import Response

from server.http.call import Call
from server.http.response import json_response
from server.http.table import RouteSpec
from server.wire.about import EnvNames


async def env(call: Call) -> Response:
    """Names that are set on this server, and names that a draft or the active version of a workflow reads."""
    return json_response(EnvNames(await call.engine.environment.names()))


TABLE = (RouteSpec("GET", "/api/env", env, "Environment names and where they are used", "env", answer=EnvNames),)
