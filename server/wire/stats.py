"""The shapes of `GET /api/stats`: open work in the database, and counts of the process that answers."""

from __future__ import annotations

from msgspec import Struct


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
