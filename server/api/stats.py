"""The open and completed work of the server, in numbers: for Prometheus, and for `weft top`."""

from __future__ import annotations

from msgspec import Struct
from starlette.responses import Response

from server.http.call import Call
from server.http.response import json_response
from server.http.table import Routes, RouteSpec
from server.metrics.collect import exposition


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


route = Routes("server", RouteSpec)


@route(
    "GET", "/metrics", "Metrics for Prometheus", needs="metrics", media=("text/plain", "application/openmetrics-text")
)
async def metrics(call: Call) -> Response:
    """Numbers of this process and of the database, for Prometheus. See docs/howto/observe.md."""
    call.process.streams = len(call.streams)
    body, media = await exposition(call.engine, call.process, call.request.headers.get("accept", ""))
    return Response(body, headers={"Content-Type": media, "Cache-Control": "no-store"})


@route("GET", "/api/stats", "What there is to do", needs="viewer", answer=ServerStats)
async def stats(call: Call) -> Response:
    """The open work in the database, and the counts of the process that answers since its start."""
    load = await call.engine.load.now(KEPT_S)
    now_ms = call.engine.parts.clock.now_ms()
    return json_response(
        ServerStats(
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
