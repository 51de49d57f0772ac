"""Converts the counts of the engine to the format of Prometheus."""

from __future__ import annotations

import asyncio
import logging
import platform
from collections.abc import Awaitable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeVar

from msgspec import Struct
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from executor.errors import DatabaseUnavailable, StoreError
from executor.kernel.process.observe import Histogram
from executor.kernel.process.repeated import OUTAGE
from executor.kernel.store.topics.load import DatabaseLoad
from executor.open.engine import Engine
from server.metrics import ProcessMeters
from server.shipped import installed_version

Kind = Literal["counter", "gauge", "histogram"]


class Metric(Struct, frozen=True):
    """`of`: the subject of the number: this process, or the database, for which each process reports the same."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    of: Literal["process", "database"] = "process"


_ALL = (
    # Runs
    Metric("weft_runs_active", "gauge", "Runs that this process has in memory"),
    Metric("weft_runs_started_total", "counter", "Runs that this process began to execute", ("workflow",)),
    Metric("weft_runs_ended_total", "counter", "Runs that ended in this process", ("workflow", "status")),
    Metric("weft_run_queued_seconds", "histogram", "Time from the creation of a run to its begin", ("workflow",)),
    Metric("weft_run_seconds", "histogram", "Time from the creation of a run to its end", ("workflow", "status")),
    Metric("weft_claims_total", "counter", "Runs claimed, new ones included"),
    Metric("weft_leases_lost_total", "counter", "Runs that another process took over while this one executed them"),
    # Attempts and steps
    Metric("weft_attempts_active", "gauge", "Attempts of blocks in progress"),
    Metric("weft_attempts_total", "counter", "Attempts of blocks that ended or began to wait", ("block", "outcome")),
    Metric("weft_attempt_seconds", "histogram", "Time that attempts of a block type took", ("block",)),
    Metric("weft_steps_total", "counter", "Steps inside blocks that ended", ("kind", "outcome")),
    Metric("weft_step_seconds", "histogram", "Time that steps inside blocks took", ("kind",)),
    Metric("weft_model_tokens_total", "counter", "Tokens of language models", ("model", "kind")),
    Metric("weft_model_cost_dollars_total", "counter", "Cost of language models, where the price is known", ("model",)),
    # Commits
    Metric("weft_commits_total", "counter", "Groups of changes committed"),
    Metric("weft_changes_total", "counter", "Changes in these groups"),
    Metric("weft_commit_seconds", "histogram", "Time that a commit took, with its sync to disk"),
    Metric("weft_write_retries_total", "counter", "Groups written again because the database was busy"),
    # The process
    Metric("weft_build_info", "gauge", "1; the labels are what the process is", ("version", "python")),
    Metric("weft_event_loop_lag_seconds", "gauge", "Delay of the last tick"),
    Metric("weft_event_loop_late_seconds", "histogram", "Delay of ticks of the event loop"),
    Metric("weft_worker_pools", "gauge", "1 for each pool from which the process claims runs", ("pool",)),
    Metric("weft_worker_draining", "gauge", "1 while the process stops"),
    Metric("weft_http_answers_total", "counter", "Answers to HTTP requests", ("route", "status")),
    Metric("weft_http_seconds", "histogram", "Time from a request to the beginning of its answer", ("route",)),
    Metric("weft_traces_waiting", "gauge", "Ended runs whose traces are not exported yet"),
    Metric("weft_event_streams", "gauge", "Open event streams"),
    # The database
    Metric("weft_database_up", "gauge", "1 if the database could be read for this answer", of="database"),
    Metric("weft_database_bytes", "gauge", "Size of the database", of="database"),
    Metric("weft_runs_open", "gauge", "Runs that have not ended", ("status",), of="database"),
    Metric("weft_queue_runs", "gauge", "Runs that wait for a worker", ("pool",), of="database"),
    Metric("weft_queue_oldest_seconds", "gauge", "Time that the first of them has waited", ("pool",), of="database"),
    Metric("weft_timer_lag_seconds", "gauge", "Delay of the first due timer", of="database"),
    Metric("weft_schedule_lag_seconds", "gauge", "Delay of the first due schedule", of="database"),
    Metric("weft_waits_open", "gauge", "Waits that are open", ("kind",), of="database"),
    Metric("weft_notifications_pending", "gauge", "Messages that are not sent yet", of="database"),
    Metric("weft_notification_lag_seconds", "gauge", "Delay of the first due message", of="database"),
    Metric("weft_takeover_lag_seconds", "gauge", "Delay of runs whose process is gone, since its lease", of="database"),
    Metric("weft_workers", "gauge", "Processes that hold leases of runs; an idle one holds none", of="database"),
)
METRICS = {metric.name: metric for metric in _ALL}

Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily
Labels = tuple[str, ...]
T = TypeVar("T")
_log = logging.getLogger("weft.server")
DATABASE_S: Final = 1.0  # less than the timeout of any Prometheus: numbers of the process itself are always sent


async def exposition(engine: Engine | None, process: ProcessMeters, accept: str = "") -> tuple[bytes, str]:
    """The numbers of now, and their media type. `accept`: of the request. A database that cannot be read within a
    second is a number as well: a scrape that fails would hide it."""
    is_up, load = False, None
    if engine is not None:
        is_up, load = await asyncio.gather(_in_time(_is_up(engine), False), _in_time(engine.load.now(), None))
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Numbers([*of_process(process), *of_engine(engine), *of_database(engine, load, is_up)]))
    ProcessCollector(registry=registry)
    encode, media = choose_encoder(accept)
    return encode(registry), media


async def _is_up(engine: Engine) -> bool:
    await engine.readable(DATABASE_S)
    return True


async def _in_time(asked: Awaitable[T], otherwise: T) -> T:
    """Return the answer of the database if it comes within DATABASE_S, else `otherwise`."""
    try:
        async with asyncio.timeout(DATABASE_S):
            return await asked
    except (StoreError, TimeoutError) as error:
        late = DatabaseUnavailable(f"the database answered nothing within {DATABASE_S:g} s")
        OUTAGE.log(_log, error if isinstance(error, StoreError) else late, "metrics could not be read")
        return otherwise


class _Numbers(Collector):
    def __init__(self, families: list[Family]) -> None:
        self._families = families

    def collect(self) -> Iterable[Any]:
        return self._families


def of_process(process: ProcessMeters) -> Iterator[Family]:
    yield _by("weft_build_info", {(installed_version(), platform.python_version()): 1})
    yield _one("weft_worker_draining", int(process.draining))
    yield _one("weft_event_loop_lag_seconds", process.lag_s)
    yield _times("weft_event_loop_late_seconds", {(): process.lags})
    yield _by("weft_http_answers_total", process.answers.by)
    yield _times("weft_http_seconds", _single(process.answer_seconds.by))
    yield _one("weft_event_streams", process.streams)


def of_engine(engine: Engine | None) -> Iterator[Family]:
    if engine is None:
        return
    figures, meters, stats = engine.figures, engine.parts.meters, engine.store.stats
    yield _by("weft_worker_pools", {(pool,): 1 for pool in engine.pools})
    yield _one("weft_runs_active", figures.runs)
    yield _one("weft_attempts_active", figures.attempts)
    tracing = engine.parts.services.tracing
    yield _one("weft_traces_waiting", 0 if tracing is None else len(tracing.ended))
    yield _one("weft_claims_total", figures.claims)
    yield _one("weft_leases_lost_total", meters.leases_lost)
    yield _by("weft_runs_started_total", _single(meters.started.by))
    yield _by("weft_runs_ended_total", meters.ended.by)
    yield _times("weft_run_queued_seconds", _single(meters.queued_seconds.by))
    yield _times("weft_run_seconds", meters.seconds.by)
    yield _by("weft_attempts_total", meters.attempts.by)
    yield _times("weft_attempt_seconds", _single(meters.attempt_seconds.by))
    yield _by("weft_steps_total", meters.steps.by)
    yield _times("weft_step_seconds", _single(meters.step_seconds.by))
    yield _by("weft_model_tokens_total", meters.tokens.by)
    yield _by("weft_model_cost_dollars_total", _single(meters.cost.by))
    yield _one("weft_commits_total", stats.commits)
    yield _one("weft_changes_total", stats.items)
    yield _one("weft_write_retries_total", stats.retries)
    yield _times("weft_commit_seconds", {(): stats.seconds})


def of_database(engine: Engine | None, load: DatabaseLoad | None, is_up: bool) -> Iterator[Family]:
    yield _one("weft_database_up", int(is_up))
    if engine is None or load is None:
        return
    now_ms = engine.parts.clock.now_ms()
    yield _one("weft_database_bytes", load.bytes)
    yield _by("weft_runs_open", {(status,): load.open.get(status, 0) for status in ("queued", "running", "waiting")})
    yield _by("weft_queue_runs", {(queue.pool,): queue.runs for queue in load.queues})
    yield _by("weft_queue_oldest_seconds", {(queue.pool,): _late(queue.oldest_ms, now_ms) for queue in load.queues})
    yield _one("weft_timer_lag_seconds", _late(load.timer_due_ms, now_ms))
    yield _one("weft_schedule_lag_seconds", _late(load.schedule_due_ms, now_ms))
    yield _by("weft_waits_open", _single(load.waits))
    yield _one("weft_notifications_pending", load.notifications)
    yield _one("weft_notification_lag_seconds", _late(load.notification_due_ms, now_ms))
    left_ms = min((worker.until_ms for worker in load.workers if worker.runs), default=None)
    yield _one("weft_takeover_lag_seconds", _late(left_ms, now_ms))
    yield _one("weft_workers", sum(worker.until_ms > now_ms for worker in load.workers))


def _late(due_ms: int | None, now_ms: int) -> float:
    return 0.0 if due_ms is None else max(0, now_ms - due_ms) / 1000


def _single(values: Mapping[str, Any]) -> dict[Labels, Any]:
    return {(label,): value for label, value in values.items()}


def _one(name: str, value: float) -> Family:
    return _by(name, {(): value})


def _by(name: str, values: Mapping[Any, float]) -> Family:
    metric = METRICS[name]
    family = (CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily)(
        name, f"{metric.help}.", labels=metric.labels
    )
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family


def _times(name: str, values: Mapping[Any, Histogram]) -> Family:
    metric = METRICS[name]
    family = HistogramMetricFamily(name, f"{metric.help}.", labels=metric.labels)
    for labels, histogram in values.items():
        below, buckets = 0, []
        for bound, count in zip([*map(repr, histogram.bounds), "+Inf"], histogram.counts, strict=True):
            below += count
            buckets.append((bound, below))
        family.add_metric(labels, buckets, histogram.sum)
    return family
