"""The open work of a database: counts for metrics, each of which ends at COUNTED_MAX."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from executor.kernel.store.statements import Readers

# Counts end here: a look costs the same however much waits.
COUNTED_MAX: Final = 100_000
WORKERS_MAX: Final = 1_000


class Queue(Struct, frozen=True):
    """Runs of a pool that could be executed now. `oldest_ms`: since when the first of them is due."""

    pool: str
    runs: int
    oldest_ms: int


class WorkerLoad(Struct, frozen=True):
    """A process with a lease, which ends at `until_ms`, and the number of runs that it owns."""

    name: str
    until_ms: int
    runs: int


class DatabaseLoad(Struct, frozen=True):
    """Counts end at COUNTED_MAX: of open runs, by status; of open waits, by kind; of notifications that are not sent.
    `timer_due_ms` is the first time at which a run that sleeps is due. Of more than WORKERS_MAX workers there are the
    first, by name."""

    open: dict[str, int]
    queues: tuple[Queue, ...]
    timer_due_ms: int | None
    schedule_due_ms: int | None
    waits: dict[str, int]
    notifications: int
    notification_due_ms: int | None
    workers: tuple[WorkerLoad, ...]
    bytes: int


OPEN_RUNS = f"""
SELECT status, count(*) FROM (SELECT status FROM heads LIMIT {COUNTED_MAX}) AS open GROUP BY status ORDER BY status"""
QUEUES = f"""
SELECT pool, count(*), min(due_ms)
  FROM (SELECT pool, due_ms FROM heads WHERE ready = 1 LIMIT {COUNTED_MAX}) AS due GROUP BY pool ORDER BY pool"""
# The index of runs that sleep is by pool: one step for each of those that there are.
_SLEEPS = "h.owner IS NULL AND h.ready = 0 AND h.blocked_by IS NULL"
TIMER_DUE = f"""
WITH RECURSIVE pools (pool) AS (
    SELECT (SELECT min(h.pool) FROM heads AS h WHERE {_SLEEPS})
    UNION ALL
    SELECT (SELECT min(h.pool) FROM heads AS h WHERE {_SLEEPS} AND h.pool > pools.pool)
      FROM pools WHERE pools.pool IS NOT NULL)
SELECT min((SELECT min(h.due_ms) FROM heads AS h WHERE {_SLEEPS} AND h.pool = pools.pool)) FROM pools"""
SCHEDULE_DUE = "SELECT min(next_run_at_ms) FROM schedules WHERE enabled = 1 AND next_run_at_ms IS NOT NULL"
OPEN_WAITS = f"""
SELECT kind, count(*) FROM (SELECT kind FROM waits WHERE status = 'pending' LIMIT {COUNTED_MAX}) AS open
 GROUP BY kind ORDER BY kind"""
PENDING_NOTIFICATIONS = f"""
SELECT count(*), min(due_at_ms)
  FROM (SELECT due_at_ms FROM notifications WHERE status = 'pending' ORDER BY due_at_ms LIMIT {COUNTED_MAX}) AS due"""
WORKERS = f"""
SELECT w.id, w.until_ms, (SELECT count(*) FROM heads AS h WHERE h.owner = w.id)
  FROM workers AS w ORDER BY w.id LIMIT {WORKERS_MAX}"""


async def load(readers: Readers) -> DatabaseLoad:
    """Return the load. The parts may be of slightly different times."""
    open = await readers.all(OPEN_RUNS)
    queues = await readers.all(QUEUES)
    [(timer_due_ms,)] = await readers.all(TIMER_DUE)
    [(schedule_due_ms,)] = await readers.all(SCHEDULE_DUE)
    waits = await readers.all(OPEN_WAITS)
    [(notifications, notification_due_ms)] = await readers.all(PENDING_NOTIFICATIONS)
    workers = await readers.all(WORKERS)
    [(size,)] = await readers.all("SELECT $database_bytes")
    return DatabaseLoad(
        open=dict(open),
        queues=tuple(Queue(*row) for row in queues),
        timer_due_ms=timer_due_ms,
        schedule_due_ms=schedule_due_ms,
        waits=dict(waits),
        notifications=notifications,
        notification_due_ms=notification_due_ms,
        workers=tuple(WorkerLoad(*row) for row in workers),
        bytes=size,
    )
