"""The time of the database server, as the clock of an engine: all processes on one database share it, whatever their
own clocks show.

It is asked for at each heartbeat, and carried on in between by a clock of this machine that cannot be set and that
counts while the machine sleeps. It is never ahead of the server's by more than that clock drifts in one heartbeat, so
no timer fires early; it may be late by the time that the way from the server takes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from executor.kernel.process.task import BackgroundTask

log = logging.getLogger("weft.clock")

# Quartz is off by less than 50 millionths.
DRIFT: Final = 100e-6
# The server's clock was set, or it is another server now.
STEP_US: Final = 1_000_000


def elapsed_us() -> int:
    """Microseconds since some moment in the past, by CLOCK_BOOTTIME where there is one."""
    boottime: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return (time.monotonic_ns() if boottime is None else time.clock_gettime_ns(boottime)) // 1_000


class DatabaseClock:
    """A clock with the time of the database server. `ask` returns it in microseconds. Call `begin` before the first
    `now_ms`."""

    def __init__(self, ask: Callable[[], Awaitable[int]], elapsed_us: Callable[[], int] = elapsed_us) -> None:
        self._ask = ask
        self._elapsed_us = elapsed_us
        self._ahead_us: int | None = None  # of the server's time before `elapsed_us`
        self._measured_us = 0
        self._on_jump: list[Callable[[], None]] = []
        self._every_s = 0.0
        self._task = BackgroundTask("clock", self._step, failed="the database was not asked for its time", log=log)

    async def begin(self, every_s: float) -> None:
        """Measure now, and then so often. Raises StoreError."""
        self._every_s = every_s
        await self.measure()
        self._task.start(after_s=every_s)

    async def stop(self) -> None:
        await self._task.stop()

    def now_ms(self) -> int:
        assert self._ahead_us is not None, "not measured yet"
        return (self._elapsed_us() + self._ahead_us) // 1_000

    def on_jump(self, callback: Callable[[], None]) -> None:
        self._on_jump.append(callback)

    async def measure(self) -> None:
        """Ask the server. Raises StoreError."""
        asked_us = self._elapsed_us()
        server_us = await self._ask()
        heard_us = self._elapsed_us()
        # It was this time at the server at some moment between the two.
        least, most = server_us - heard_us, server_us - asked_us
        before = self._ahead_us
        if before is None:
            self._ahead_us = least
        else:
            drifted = before - round((heard_us - self._measured_us) * DRIFT)
            # The best of all answers counts, as long as it agrees with this one.
            self._ahead_us = drifted if least <= drifted <= most else least
            if abs(self._ahead_us - before) > STEP_US:
                log.warning("the clock of the database moved by %.1f s", (self._ahead_us - before) / 1e6)
                for callback in self._on_jump:
                    callback()
        self._measured_us = heard_us

    async def _step(self) -> float:
        await self.measure()
        return self._every_s
