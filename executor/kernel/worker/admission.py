"""Bounds of the runs that a process takes: by the bytes they hold, by what it can drive, and by the length of the
queue.

Admission: what a run will hold is estimated, before it is read, from the size of all its outputs; what it does hold
is known afterwards, and is less when loops let go of their iterations. A small run never waits. A large run waits its
turn, and is taken in any case when no other is in memory.

Pace: a worker of a fleet claims as many runs at a time as it can drive, so that the first worker that looks does not
take what others would begin sooner. Alone on a database it claims what fits into memory. A run in memory without an
attempt under way waits for this process or for the database: a worker may have few of these.

Pressure: each process counts the runs that wait in each pool, for a cap over all of them, and estimates when more may
be submitted. What others add is seen at the next count.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Final, NamedTuple

from executor.errors import QueueFull
from executor.kernel.process.clock import Clock
from executor.kernel.read.peers import Peers
from executor.kernel.run.results import SMALL_BYTES
from executor.kernel.store.topics.store import Store


class Admission:
    """The admission of one process. `held` returns the bytes of the outputs of the runs in memory."""

    def __init__(self, most_bytes: int, held: Callable[[], int]) -> None:
        self._most_bytes = most_bytes
        self._held = held
        self._entering: dict[str, int] = {}  # taken, and not read yet
        self._waiting: deque[tuple[str, int, asyncio.Future[bool]]] = deque()
        self._closed = False

    @property
    def waiting(self) -> int:
        """Runs that were claimed and wait for room."""
        return len(self._waiting)

    async def enter(self, run: str, bytes: int) -> bool:
        """Wait until there is room. Returns False if the process stops: the run stays out."""
        if bytes <= SMALL_BYTES:
            return not self._closed
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((run, bytes, turn))
        self.admit()
        return await turn

    def leaves_to_be_read(self, run: str, bytes: int) -> None:
        """Reserve the bytes of a run that is about to be reloaded; no waiting."""
        if bytes > SMALL_BYTES:
            self._entering[run] = bytes

    def entered(self, run: str) -> None:
        """Drop the estimate of a run that is in memory now, or will not come."""
        self._entering.pop(run, None)
        self.admit()

    def admit(self) -> None:
        """Let the runs in that fit by now, in order."""
        while self._waiting:
            run, bytes, turn = self._waiting[0]
            used = self._held() + sum(self._entering.values())
            if not turn.done():  # else the waiting task was cancelled
                if used and used + bytes > self._most_bytes and not self._closed:
                    return
                if not self._closed:
                    self._entering[run] = bytes
                turn.set_result(not self._closed)
            self._waiting.popleft()

    def close(self) -> None:
        self._closed = True
        self.admit()


LAG_MAX_S: Final = 0.02  # of the event loop: above, its runs wait for one another
PASSES: Final = 3  # of the event loop that are measured
ATTEMPTS_MAX: Final = 1_000  # under way
# More make no group of commits cheaper, and each of them slower.
BEHIND_MAX: Final = 64
# At a time, at least: a claim of one run costs as much as half a claim of sixteen. At most twice of what it has is in
# memory after a claim, so that workers that are woken for the same runs all have some.
LEAST: Final = 16
PAUSE_S: Final = 0.05
# A worker that is busy for longer claims a few runs all the same: the others may be as busy, or gone.
BUSY_MAX_S: Final = 1.0
FEW: Final = 4


class Load(NamedTuple):
    """The load of a worker: runs in memory, those of them that have no attempt under way, and attempts."""

    runs: int
    behind: int
    attempts: int


class Pace:
    def __init__(self, peers: Peers, load: Callable[[], Load]) -> None:
        self._peers = peers
        self._load = load
        self._claimed_s = 0.0  # when there was room, by the event loop's clock

    async def room(self, room: int) -> int:
        """Return how many of `room` runs to claim now. If 0, look again after `pause_s`."""
        if room <= 0 or not self._peers.is_connected:
            return room
        load = self._load()
        if load.attempts >= ATTEMPTS_MAX:
            return 0
        room = min(room, max(LEAST, load.runs))
        can_drive = BEHIND_MAX - load.behind
        is_busy = can_drive < LEAST or await _lag_s() > LAG_MAX_S
        now_s = asyncio.get_running_loop().time()
        if is_busy:
            if now_s - self._claimed_s < BUSY_MAX_S:
                return 0
            room = min(room, FEW)
        else:
            room = min(room, can_drive)
        self._claimed_s = now_s
        return room

    @property
    def pause_s(self) -> float:
        return PAUSE_S * random.uniform(0.5, 1.5)


async def _lag_s() -> float:
    """Return the seconds the event loop takes for one pass over all that is ready. Measured only on demand: a timer
    would wake an idle process."""
    now_s = asyncio.get_running_loop().time
    longest_s = 0.0
    for _ in range(PASSES):
        began_s = now_s()
        await asyncio.sleep(0)
        longest_s = max(longest_s, now_s() - began_s)
    return longest_s


COUNT_EVERY_MS: Final = 1_000
RETRY_MIN_S, RETRY_MAX_S, RETRY_UNKNOWN_S = 1, 60, 5
# The part of the cap that must be free before a refused client is asked to return: not the place of a single run.
ROOM: Final = 0.1


@dataclass(slots=True)
class _Queue:
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
