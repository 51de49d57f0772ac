"""The open and completed work of the server, in numbers: for Prometheus, and for `weft top`."""

from __future__ import annotations

from starlette.responses import Response

from server.http.call import Call
from server.http.response import json_response
from server.http.table import RouteSpec
from server.metrics.collect import exposition
from server.wire.stats import BlockStats, ProcessStats, QueueStats, ServerStats, WorkerStats

BLOCKS_MAX = 50
KEPT_S = 1.0


async def metrics(call: Call) -> Response:
    """Numbers of this process and of the database, for Prometheus. See docs/howto/observe.md."""
    call.process.streams = len(call.streams)
    body, media = await exposition(call.engine, call.process, call.request.headers.get("accept", ""))
    return Response(body, headers={"Content-Type": media, "Cache-Control": "no-store"})


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


TABLE = (
    RouteSpec(
        "GET",
        "/metrics",
        metrics,
        "Metrics for Prometheus",
        "server",
        needs="metrics",
        media=("text/plain", "application/openmetrics-text"),
    ),
    RouteSpec("GET", "/api/stats", stats, "What there is to do", "server", needs="viewer", answer=ServerStats),
)
