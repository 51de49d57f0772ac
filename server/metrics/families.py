"""Every metric that weft has: its name, kind, labels and meaning. `docs/howto/observe.md` has the same table."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

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
