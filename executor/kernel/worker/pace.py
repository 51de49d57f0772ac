"""The pace of a worker of a fleet: it claims as many runs at a time as it can drive, so that the first worker that
looks does not take what others would begin sooner. Alone on a database it claims what fits into memory. A run in memory
without an attempt under way waits for this process or for the database: a worker may have few of these."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final, NamedTuple

from executor.kernel.read.peers import Peers

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
