"""How far beyond its limit a program was stopped, and how long the event loop stood still meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

OVER_S, GAP_S = 0.5, 0.1  # on a machine that has time for it
_TRIES = 5


async def assert_stopped_in_time(run: Callable[[], Awaitable[None]], limit_ms: int, what: str) -> None:
    """In computing time of this process, which other work of the machine does not add to: on a quiet machine it is the
    time on the wall. The gap is by the clock on the wall, so best of five."""
    over, gap = float("inf"), float("inf")
    for _ in range(_TRIES):
        watching = asyncio.ensure_future(_longest_gap())
        began = time.process_time()
        await run()
        over = min(over, time.process_time() - began - limit_ms / 1000)
        watching.cancel()
        gap = min(gap, await watching)
        if over <= OVER_S and gap <= GAP_S:
            return
    raise AssertionError(f"{what}: stopped {over:.3f} s over its limit, the event loop stood still for {gap:.3f} s")


async def _longest_gap() -> float:
    longest, last = 0.0, time.monotonic()
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            await asyncio.sleep(0.001)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
    return max(longest, time.monotonic() - last)
