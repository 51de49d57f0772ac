"""The lanes of durable functions that wait: an attempt continues in the lane which the one before has left, and nothing
is replayed.

Nothing depends on it. A lane is taken once, and only if nothing can have happened to its function but the ends of the
waits that it had: its leave is on disk, and this process has had the run since, with the same lease or the next one.
All others are thrown away, and the attempt begins from the first line.
See `docs/decisions/0087-lanes-that-are-kept.md`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Final, Protocol

from msgspec import Struct

from compiler.keys import NodeKey

log = logging.getLogger("weft.durable")

IDLE_S: Final = 60.0
LANES_SHARE: Final = 4  # one part in so many of the memory for outputs of runs
LANE_BYTES: Final = 16 * 1024  # of one in memory, beside what its code has received


class Kept(Protocol):
    """As `Driver` has them. `held_bytes`: of what the code has received, as JSON."""

    held_bytes: int

    def discard(self) -> None: ...


class Leave(Struct):
    """A lane that attempt `attempt` of the node `key` has left, at `epoch` of the lease, with plan `plan`. `code`: the
    function. `is_stored`: the leave is on disk."""

    lane: Kept
    key: NodeKey
    attempt: int
    epoch: int
    plan: str
    code: object
    is_stored: bool = False
    until_s: float = 0.0

    def settle(self, stored: bool) -> None:
        self.is_stored = stored

    def leads_to(self, key: NodeKey, epoch: int, plan: str, code: object) -> bool:
        """Return True if an attempt may continue in the lane."""
        same = (self.key, self.plan) == (key, plan) and self.code is code
        return same and self.is_stored and epoch - self.epoch in (0, 1)

    @property
    def bytes(self) -> int:
        return LANE_BYTES + 2 * self.lane.held_bytes  # objects of Python take more than their JSON


class LaneCache:
    """At most `most` lanes, which hold at most `most_bytes`, each for `IDLE_S`. A run has one."""

    def __init__(self, most: int = 0, most_bytes: int = 0) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._leaves: dict[str, Leave] = {}  # by run, the oldest first
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self.taken = 0

    def __len__(self) -> int:
        return len(self._leaves)

    def keep(self, run: str, leave: Leave) -> bool:
        """Keep a lane, and throw others away that are too many. Returns False if there is no room for it."""
        self.forget(run)
        if not self._most or leave.bytes > self._most_bytes:
            return False
        loop = asyncio.get_running_loop()
        leave.until_s = loop.time() + IDLE_S
        self._leaves[run] = leave
        self._bytes += leave.bytes
        while len(self._leaves) > self._most or self._bytes > self._most_bytes:
            self.forget(next(iter(self._leaves)))
        if self._timer is None:
            self._timer = loop.call_at(leave.until_s, self._discard_idle)
        return True

    def take(self, run: str, key: NodeKey, epoch: int, plan: str, code: object) -> Kept | None:
        """Return the lane in which this attempt may continue. One that does not fit is thrown away."""
        leave = self._pop(run)
        if leave is None:
            return None
        if leave.leads_to(key, epoch, plan, code):
            self.taken += 1
            return leave.lane
        _discard(leave.lane)
        return None

    def left(self, run: str, key: NodeKey, attempt: int) -> Iterator[Leave]:
        """Return what waits until the leave of this attempt is on disk."""
        leave = self._leaves.get(run)
        if leave is not None and (leave.key, leave.attempt) == (key, attempt):
            yield leave

    def forget(self, run: str) -> None:
        leave = self._pop(run)
        if leave is not None:
            _discard(leave.lane)

    def close(self) -> None:
        for run in list(self._leaves):
            self.forget(run)
        self._most = 0
        if self._timer is not None:
            self._timer.cancel()

    def _pop(self, run: str) -> Leave | None:
        leave = self._leaves.pop(run, None)
        if leave is not None:
            self._bytes -= leave.bytes
        return leave

    def _discard_idle(self) -> None:
        self._timer, loop = None, asyncio.get_running_loop()
        for run, leave in list(self._leaves.items()):
            if leave.until_s > loop.time():
                self._timer = loop.call_at(leave.until_s, self._discard_idle)
                return
            self.forget(run)


def _discard(lane: Kept) -> None:
    try:
        lane.discard()
    except Exception:  # of code of users
        log.exception("a durable function that waits could not be ended in memory")
