"""Cached results: forget them."""

from __future__ import annotations

from starlette.responses import Response

from server.http.call import Call
from server.http.response import json_response
from server.http.table import RouteSpec
from server.wire.upkeep import CacheCleared, CacheQuery


async def clear(call: Call) -> Response:
    """Blocks with a `policy.cache` run again the next time. Runs that have already reused a result keep it."""
    return json_response(CacheCleared(await call.engine.upkeep.clear_cache(call.query(CacheQuery).workflow)))


TABLE = (
    RouteSpec(
        "DELETE",
        "/api/cache",
        clear,
        "Delete cached results",
        answer=CacheCleared,
        query=CacheQuery,
    ),
)
