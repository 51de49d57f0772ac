"""The cap on the length of the queue: each process counts the runs that wait in each pool, and estimates when more may
be submitted. What others add is seen at the next count."""

from __future__ import annotations

from math import ceil
from typing import Final

from msgspec import Struct

from executor.errors import QueueFull
from executor.kernel.process.clock import Clock
from executor.kernel.store.topics.store import Store

COUNT_EVERY_MS: Final = 1_000


RETRY_MIN_S, RETRY_MAX_S, RETRY_UNKNOWN_S = 1, 60, 5


# The part of the cap that must be free before a refused client is asked to return: not the place of a single run.
ROOM: Final = 0.1


class _Queue(Struct):
    """The queue of a pool: `count` at `at_ms`, and how many were `added` here since. `looked_ms` is when it was last
    asked for; `per_s` is how many left it, when last measured."""

    at_ms: int
    looked_ms: int
    count: int
    added: int = 0
    per_s: float | None = None


class Pressure:
    """Applies the cap. `most` is the number of runs of one pool that may wait for a worker; if None there is no cap,
    and nothing is counted."""

    def __init__(self, store: Store, clock: Clock, most: int | None) -> None:
        self._store = store
        self._clock = clock
        self._most = most
        self._queues: dict[str, _Queue] = {}

    async def admit(self, pool: str) -> None:
        """Admit one more run. Raises QueueFull."""
        most = self._most
        if most is None:
            return
        queue = await self._queue_of(pool, most)
        waiting = queue.count + queue.added
        if waiting >= most:
            raise QueueFull(
                f"{waiting:,} runs of pool '{pool}' wait for a worker, and {most:,} may",
                hint="Try again later, or start more workers for this pool.",
                pool=pool,
                retry_after_s=_retry_after_s(waiting - most * (1 - ROOM), queue.per_s),
            )
        queue.added += 1

    async def _queue_of(self, pool: str, most: int) -> _Queue:
        now_ms = self._clock.now_ms()
        before = self._queues.get(pool)
        if before is not None and 0 <= now_ms - before.looked_ms < COUNT_EVERY_MS:
            return before
        if before is not None:
            before.looked_ms = now_ms  # who comes while this is counted uses what is known
        count = await self._store.count_queued(pool, 2 * most)
        queue = _Queue(now_ms, now_ms, count)
        if before is not None:
            queue.per_s = before.per_s
            passed_s = (now_ms - before.at_ms) / 1000
            left = before.count + before.added - count
            if left > 0 and passed_s > 0:
                queue.per_s = left / passed_s
        self._queues[pool] = queue
        return queue


def _retry_after_s(runs: float, per_s: float | None) -> int:
    if per_s is None:
        return RETRY_UNKNOWN_S
    return min(RETRY_MAX_S, max(RETRY_MIN_S, ceil(runs / per_s)))
