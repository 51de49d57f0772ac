"""Deleting what is no longer needed: runs that ended long ago, and cached results."""

from __future__ import annotations

from starlette.responses import Response

from executor.upkeep.gc import Collected
from server.http.body import read_as
from server.http.call import Call
from server.http.response import json_response
from server.http.table import RouteSpec
from server.wire.server import CacheCleared, CacheQuery, GcRequest


async def gc(call: Call) -> Response:
    """Delete runs that ended long ago with all their data, then plans, documents and large outputs that no run refers
    to, and expired cached results. Open runs are kept, with everything they need. Responds when done; with `dry_run`
    nothing is deleted, and the counts are those of a real call."""
    body = await read_as(call.request, call.limits, GcRequest)
    older_than_ms = None if body.older_than_s is None else round(body.older_than_s * 1000)
    if older_than_ms is None and body.keep:
        older_than_ms = 0
    return json_response(await call.engine.upkeep.collect(older_than_ms, body.keep, dry_run=body.dry_run))


async def clear(call: Call) -> Response:
    """Blocks with a `policy.cache` run again the next time. Runs that have already reused a result keep it."""
    return json_response(CacheCleared(await call.engine.upkeep.clear_cache(call.query(CacheQuery).workflow)))


TABLE = (
    RouteSpec(
        "POST",
        "/api/upkeep/gc",
        gc,
        "Delete old runs",
        "upkeep",
        body=GcRequest,
        answer=Collected,
        statuses=(400, 422),
    ),
    RouteSpec(
        "DELETE",
        "/api/cache",
        clear,
        "Delete cached results",
        answer=CacheCleared,
        query=CacheQuery,
    ),
)
