"""The open work of a database, for metrics. See `load` in the contract."""

from __future__ import annotations

from typing import Final, Protocol

from msgspec import Struct

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
    """Counts end at COUNTED_MAX.

    open                 runs that have not ended, by status
    queues               by pool
    timer_due_ms         the first time at which a run that sleeps is due, or None
    schedule_due_ms      the same of schedules
    waits                that are open, by kind
    notifications        that are not sent yet
    notification_due_ms  the first time at which one is due
    workers              by name; of more than WORKERS_MAX the first ones
    bytes                size of the database, or 0 if it cannot be measured
    """

    open: dict[str, int]
    queues: tuple[Queue, ...]
    timer_due_ms: int | None
    schedule_due_ms: int | None
    waits: dict[str, int]
    notifications: int
    notification_due_ms: int | None
    workers: tuple[WorkerLoad, ...]
    bytes: int


class LoadStore(Protocol):
    async def load(self) -> DatabaseLoad:
        """Return the load. The parts may be of slightly different times."""
