"""Repairs rows of a later time when the wall clock was set back: nothing may wait for a time that was only thought to
come."""

from __future__ import annotations

import asyncio
import logging

from executor.kernel.run.parts import Parts

log = logging.getLogger("weft.worker")

# The wall clock went back by more than this: it was set, not slewed.
CLOCK_STEP_MS = 1_000
# It may also go forward and back between two looks, or while another process writes: then only the rows show it.
REPAIR_EVERY_S = 60.0
LEASE_MAX_MS = 3_600_000  # no lease is longer, so one that ends later was written by another time
# For a worker that starts: often after one that was killed, and maybe on a machine whose clock was lost. Its
# own lease is a better measure then. At least this long, so that a live worker with a longer lease keeps its runs.
LEASE_MAX_AT_START_MS = 60_000


class ClockRepair:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._repair_at_s = 0.0  # of the event loop's clock, which cannot be set
        self.seen_ms = 0  # the wall clock at the last claim

    def is_due(self) -> bool:
        was_set_back = self._parts.clock.now_ms() < self.seen_ms - CLOCK_STEP_MS
        return was_set_back or asyncio.get_running_loop().time() >= self._repair_at_s

    async def repair(self, lease_ms: int) -> None:
        """Repair the rows. The worker has renewed its own leases before, so they are of the new time."""
        starts = not self._repair_at_s
        longest_ms = max(2 * lease_ms, LEASE_MAX_AT_START_MS) if starts else LEASE_MAX_MS
        clock = self._parts.clock
        asked_ms = clock.now_ms()
        repair = await self._parts.store.repair_clock_skew(asked_ms, longest_ms)
        if asked_ms + repair.ahead_ms > clock.now_ms():  # else others wrote what is of a later time while this waited
            log.warning("the clock was set back: %d runs had leases or due times in the future", repair.runs)
        self._repair_at_s = asyncio.get_running_loop().time() + REPAIR_EVERY_S
