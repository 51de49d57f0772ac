"""The server itself: health, version, examples, names of the environment, upkeep, and its numbers."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from msgspec import Meta, Struct
from starlette.responses import Response

from executor.service.topics.secrets import EnvName
from executor.service.upkeep.gc import GcJob
from server.http.openapi import openapi_bytes
from server.http.response import PackedJson
from server.http.table import Call, Link, Routes, RouteSpec
from server.shipped import examples_folder, installed_version


class Health(Struct, frozen=True):
    """The database works."""

    status: Literal["ok"]


class Version(Struct, frozen=True):
    """`version`: of the installed package, or "unknown" if it is not installed. `signed_in`: the request came from a
    browser with a session, which can sign out. `read_only`: every request that changes something is refused."""

    version: str
    signed_in: bool
    read_only: bool


class EnvNames(Struct, frozen=True):
    """The environment values, by name. The values themselves never leave the server."""

    env: list[EnvName]


class Example(Struct, frozen=True):
    """A workflow that comes with weft; `name` is that of its file. A `template` runs when what is open in it is
    connected and chosen; any other runs as it is."""

    name: str
    title: str
    description: str
    document: dict[str, Any]
    template: bool = False


class Examples(Struct, frozen=True):
    """The examples, in the order of a tour, and the templates."""

    examples: list[Example]


class LoginRequest(Struct, forbid_unknown_fields=True):
    """POST /login. `code`: of a sign-in link."""

    token: str | None = None
    code: str | None = None


class SignInLink(Struct, frozen=True):
    """`url` signs in one browser, once, within `expires_in_s` seconds."""

    url: str
    expires_in_s: int


class SignedIn(Struct, frozen=True):
    """`signed_in`: this browser has a session. `at_provider`: after signing out, the page of the OpenID Connect
    provider that signs the browser out there too."""

    signed_in: bool
    at_provider: str | None = None


class SessionsEnded(Struct, frozen=True):
    """The number of sessions ended."""

    ended: int


class CacheCleared(Struct, frozen=True):
    """The number of deleted results."""

    cleared: int


class CacheQuery(Struct, frozen=True):
    workflow: Annotated[str | None, Meta(description="Only results of this workflow.")] = None


class GcRequest(Struct, forbid_unknown_fields=True):
    """POST /api/upkeep/gc. Deletes runs that ended more than `older_than_s` ago, except the `keep` newest of each
    workflow. With `keep` alone, all other ended runs are deleted; with neither, none."""

    older_than_s: Annotated[float, Meta(ge=0, le=10_000_000_000)] | None = None
    keep: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    dry_run: bool = False


class GcAccepted(Struct, frozen=True):
    """`created` is false if a deletion was in progress already: then `job` is that one, with its own age and `keep`."""

    created: bool
    job: GcJob


FAIL_MAX = 1000
DELAY_MS_MAX = 30_000


class EchoQuery(Struct, frozen=True):
    fail: Annotated[int, Meta(le=FAIL_MAX, description="Number of 503 responses for one key.")] = 0
    key: Annotated[str | None, Meta(description="The key to count by. Default: the Idempotency-Key header.")] = None
    delay_ms: Annotated[int, Meta(le=DELAY_MS_MAX, description="Delay of the response.")] = 0


class Echo(Struct, frozen=True):
    """The request. `call`: its number among those with the same key."""

    method: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    call: int


route = Routes("server", RouteSpec)


@route("GET", "/healthz", "Health", public=True, statuses=(503,))
async def healthz(call: Call) -> Health:
    """200 while the process works, also while the database is away. 503 when only another start can help, because the
    database was replaced."""
    await call.engine.healthy()
    return Health("ok")


@route("GET", "/readyz", "Readiness", public=True, statuses=(503, 507))
async def readyz(call: Call) -> Health:
    """200 when the database completes a write within a second, otherwise 503 or 507."""
    await call.engine.ready()
    return Health("ok")


@route("GET", "/openapi.json", "The OpenAPI description", public=True, answer=dict[str, Any])
@route("GET", "/api/openapi.json", "The OpenAPI description", needs="viewer", answer=dict[str, Any])
async def openapi(call: Call) -> Response:
    """On a server with a token, the operations require it."""
    return Response(openapi_bytes(call.request.app.state.table, call.auth.required), media_type="application/json")


@route("GET", "/api/version", "Version of the server", needs="viewer")
async def version(call: Call) -> Version:
    """The version of the server, whether this browser is signed in, and whether the server is read-only."""
    read_only: bool = call.request.app.state.settings.read_only
    return Version(installed_version(), call.who.is_signed_in, read_only)


ACRONYMS = {"oauth": "OAuth", "sql": "SQL"}  # in the titles of examples
# The order for a newcomer: something to answer, something that survives a crash, then one idea at a time. Others follow
# by name.
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


@route("GET", "/api/examples", "Example workflows", tag="workflows", needs="viewer")
async def examples(call: Call) -> PackedJson[Examples]:
    """Their documents, complete, to open a copy of."""
    return PackedJson(packaged_examples(), call.header(b"accept-encoding"))


@cache
def packaged_examples() -> Examples:
    """In the order of ORDER. They do not change while the server runs."""
    return Examples(read_examples(examples_folder()))


def read_examples(folder: Path) -> list[Example]:
    found = []
    for path in (*sorted(folder.glob("*.json"), key=_place), *sorted(folder.glob("templates/*.json"))):
        document = orjson.loads(path.read_bytes())
        first, *rest = path.stem.split("-")
        title = " ".join([ACRONYMS.get(first, first.capitalize()), *rest])
        template = path.parent != folder
        found.append(Example(path.stem, title, document.get("description", ""), document, template))
    return found


def _place(path: Path) -> tuple[int, str]:
    return (ORDER.index(path.stem) if path.stem in ORDER else len(ORDER), path.stem)


@route("GET", "/api/env", "Environment names and where they are used", tag="env", needs="editor")
async def env(call: Call) -> EnvNames:
    """Names that are set on this server, and names that a draft or the active version of a workflow reads."""
    return EnvNames(await call.engine.environment.names())


@route(
    "POST",
    "/api/upkeep/gc",
    "Delete old runs",
    tag="upkeep",
    needs="admin",
    status=202,
    statuses=(409,),
    links=(Link("GET", "/api/upkeep/gc/{id}", {"id": "$response.body#/job/id"}),),
)
async def gc(call: Call, body: GcRequest) -> GcAccepted:
    """Delete runs that ended long ago with all their data, then plans, documents and large outputs that no run refers
    to, and expired cached results. Open runs are kept, with everything they need. Responds at once; the job has the
    counts so far. With `dry_run` nothing is deleted, and the counts are those of a real call. If a deletion is at work
    already, in any process, the response is its job, and `created` is false."""
    older_than_ms = None if body.older_than_s is None else round(body.older_than_s * 1000)
    if older_than_ms is None and body.keep:
        older_than_ms = 0
    job, created = await call.engine.upkeep.begin(older_than_ms, body.keep, dry_run=body.dry_run)
    return GcAccepted(created, job)


@route("GET", "/api/upkeep/gc/{id}", "A deletion of runs", tag="upkeep", needs="admin")
async def gc_job(call: Call) -> GcJob:
    """The progress of a deletion. `interrupted`: its process has ended, and nothing is half deleted."""
    return await call.engine.upkeep.job(call.request.path_params["id"])


@route("DELETE", "/api/cache", "Delete cached results", tag="runs", needs="editor")
async def clear(call: Call, query: CacheQuery) -> CacheCleared:
    """Blocks with a `policy.cache` run again the next time. Runs that have already reused a result keep it."""
    return CacheCleared(await call.engine.store.clear_cache(query.workflow))


class QueueStats(Struct, frozen=True):
    """Runs of a pool that wait for a worker; `oldest_ms`: for how long the first of them has."""

    pool: str
    runs: int
    oldest_ms: int


class WorkerStats(Struct, frozen=True):
    """A process that holds a lease, and the runs that it executes. `lease_ms`: until its lease ends; negative: it has
    ended."""

    name: str
    runs: int
    lease_ms: int


class BlockStats(Struct, frozen=True):
    """Attempts of a block type that ended in this process, and the seconds that they took."""

    block: str
    attempts: int
    seconds: float


class ProcessStats(Struct, frozen=True):
    """Counts of the process that answers, since its start. Other processes on the database have their own, see
    `/metrics`. `blocks`: those that took most time first, at most 50."""

    worker: str
    runs_active: int
    attempts_active: int
    runs_started: int
    runs_ended: dict[str, int]
    commits: int
    changes: int
    write_retries: int
    event_streams: int
    event_loop_lag_ms: float
    blocks: list[BlockStats]


class ServerStats(Struct, frozen=True):
    """Counts of the whole database end at 100,000. They may be a second old. `runs_open` and `waits_open`: by status
    and by kind."""

    at_ms: int
    runs_open: dict[str, int]
    queues: list[QueueStats]
    timer_lag_ms: int
    schedule_lag_ms: int
    waits_open: dict[str, int]
    notifications_pending: int
    database_bytes: int
    workers: list[WorkerStats]
    process: ProcessStats


BLOCKS_MAX = 50
KEPT_S = 1.0


@route(
    "GET", "/metrics", "Metrics for Prometheus", needs="metrics", media=("text/plain", "application/openmetrics-text")
)
async def metrics(call: Call) -> Response:
    """Numbers of this process and of the database, for Prometheus. See docs/howto/observe.md."""
    from server.metrics.collect import exposition  # its library is not for a process that is not scraped

    call.process.streams = len(call.streams)
    body, media = await exposition(call.engine, call.process, call.request.headers.get("accept", ""))
    return Response(body, headers={"Content-Type": media, "Cache-Control": "no-store"})


@route("GET", "/api/stats", "What there is to do", needs="viewer")
async def stats(call: Call) -> ServerStats:
    """The open work in the database, and the counts of the process that answers since its start."""
    load = await call.engine.load.now(KEPT_S)
    now_ms = call.engine.parts.clock.now_ms()
    return ServerStats(
        at_ms=now_ms,
        runs_open=load.open,
        queues=[QueueStats(each.pool, each.runs, max(0, now_ms - each.oldest_ms)) for each in load.queues],
        timer_lag_ms=_late(load.timer_due_ms, now_ms),
        schedule_lag_ms=_late(load.schedule_due_ms, now_ms),
        waits_open=load.waits,
        notifications_pending=load.notifications,
        database_bytes=load.bytes,
        workers=[WorkerStats(each.name, each.runs, each.until_ms - now_ms) for each in load.workers],
        process=_of_process(call),
    )


def _of_process(call: Call) -> ProcessStats:
    figures, meters, store = call.engine.figures, call.engine.parts.meters, call.engine.store.stats
    ended: dict[str, int] = {}
    for (_, status), count in meters.ended.by.items():
        ended[status] = ended.get(status, 0) + int(count)
    slowest = sorted(meters.attempt_seconds.by.items(), key=lambda each: -each[1].sum)[:BLOCKS_MAX]
    return ProcessStats(
        worker=call.engine.worker_name,
        runs_active=figures.runs,
        attempts_active=figures.attempts,
        runs_started=int(sum(meters.started.by.values())),
        runs_ended=ended,
        commits=store.commits,
        changes=store.items,
        write_retries=store.retries,
        event_streams=len(call.streams),
        event_loop_lag_ms=round(call.process.lag_s * 1000, 3),
        blocks=[BlockStats(block, times.count, round(times.sum, 6)) for block, times in slowest],
    )


def _late(due_ms: int | None, now_ms: int) -> int:
    return 0 if due_ms is None else max(0, now_ms - due_ms)
