"""The server itself: its health, version and API, its examples, the names of environment values, and the deletion of
data that is not needed any more: runs that ended long ago, and cached results."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import orjson
from starlette.responses import Response

from executor.service.upkeep.job import GcJob
from server.http.body import read_as
from server.http.call import Call
from server.http.openapi import openapi_bytes
from server.http.response import json_response
from server.http.table import Link, RouteSpec
from server.shipped import examples_folder, installed_version
from server.wire.server import (
    CacheCleared,
    CacheQuery,
    EnvNames,
    Example,
    Examples,
    GcAccepted,
    GcRequest,
    Health,
    Version,
)


async def healthz(call: Call) -> Response:
    """200 while the process works, also while the database is away. 503 when only another start can help, because the
    database was replaced."""
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
    """The version of the server, whether this browser is signed in, and whether the server is read-only."""
    read_only: bool = call.request.app.state.settings.read_only
    return json_response(Version(installed_version(), call.who.is_signed_in, read_only))


# The order for a newcomer: something to answer, something that survives a crash, then one idea at a time. Others follow
# by
# name.
ORDER = (
    "expense-approval",
    "durable-demo",
    "error-handling",
    "review-loop",
    "parallel-fanout",
    "nested",
    "child-run",
    "agent",
    "support-triage",
    "spreadsheet-summary",
    "receipt-summary",
    "daily-report",
    "signed-orders",
)


async def examples(call: Call) -> Response:
    """Their documents, complete, to open a copy of."""
    return json_response(packaged_examples())


@cache
def packaged_examples() -> Examples:
    """In the order of ORDER. They do not change while the server runs."""
    return Examples(read_examples(examples_folder()))


def read_examples(folder: Path) -> list[Example]:
    """All examples of a folder, in the order of ORDER."""
    found = []
    for path in sorted(folder.glob("*.json"), key=_place):
        document = orjson.loads(path.read_bytes())
        title = path.stem.replace("-", " ").capitalize()
        found.append(Example(path.stem, title, document.get("description", ""), document))
    return found


def _place(path: Path) -> tuple[int, str]:
    return (ORDER.index(path.stem) if path.stem in ORDER else len(ORDER), path.stem)


async def env(call: Call) -> Response:
    """Names that are set on this server, and names that a draft or the active version of a workflow reads."""
    return json_response(EnvNames(await call.engine.environment.names()))


async def gc(call: Call) -> Response:
    """Delete runs that ended long ago with all their data, then plans, documents and large outputs that no run refers
    to, and expired cached results. Open runs are kept, with everything they need. Responds at once; the job has the
    counts so far. With `dry_run` nothing is deleted, and the counts are those of a real call. If a deletion is at work
    already, in any process, the response is its job, and `created` is false."""
    body = await read_as(call.request, call.limits, GcRequest)
    older_than_ms = None if body.older_than_s is None else round(body.older_than_s * 1000)
    if older_than_ms is None and body.keep:
        older_than_ms = 0
    job, created = await call.engine.upkeep.begin(older_than_ms, body.keep, dry_run=body.dry_run)
    return json_response(GcAccepted(created, job), 202)


async def gc_job(call: Call) -> Response:
    """The progress of a deletion. `interrupted`: its process has ended, and nothing is half deleted."""
    return json_response(await call.engine.upkeep.job(call.request.path_params["id"]))


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
        needs="admin",
        body=GcRequest,
        answer=GcAccepted,
        status=202,
        statuses=(400, 409, 422),
        links=(Link("GET", "/api/upkeep/gc/{id}", {"id": "$response.body#/job/id"}),),
    ),
    RouteSpec(
        "GET",
        "/api/upkeep/gc/{id}",
        gc_job,
        "A deletion of runs",
        "upkeep",
        needs="admin",
        answer=GcJob,
        statuses=(404,),
    ),
    RouteSpec(
        "DELETE",
        "/api/cache",
        clear,
        "Delete cached results",
        needs="editor",
        answer=CacheCleared,
        query=CacheQuery,
    ),
    RouteSpec("GET", "/healthz", healthz, "Health", "server", public=True, answer=Health, statuses=(503,)),
    RouteSpec("GET", "/readyz", readyz, "Readiness", "server", public=True, answer=Health, statuses=(503, 507)),
    RouteSpec("GET", "/api/version", version, "Version of the server", "server", needs="viewer", answer=Version),
    RouteSpec("GET", "/openapi.json", openapi, "The OpenAPI description", "server", public=True, answer=dict[str, Any]),
    RouteSpec(
        "GET", "/api/openapi.json", openapi, "The OpenAPI description", "server", needs="viewer", answer=dict[str, Any]
    ),
    RouteSpec("GET", "/api/examples", examples, "Example workflows", "workflows", needs="viewer", answer=Examples),
    RouteSpec(
        "GET", "/api/env", env, "Environment names and where they are used", "env", needs="editor", answer=EnvNames
    ),
)
