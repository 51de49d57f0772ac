"""Says what happens again and again once a minute, with how often it did."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

EVERY_S = 60.0


class Repeated:
    """For one place in the code that logs. Not for several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._what: str | None = None
        self._logged_at_s = 0.0
        self._count = 0

    def due(self, what: str, count: int = 1) -> int:
        """It happened `count` times more. How often since it was said last, 0: it is not to be said yet. Something else
        than before is said at once."""
        now_s = self._clock()
        if what != self._what:
            self._what, self._count = what, 0
        elif now_s < self._logged_at_s + EVERY_S:
            self._count += count
            return 0
        total, self._count = self._count + count, 0
        self._logged_at_s = now_s
        return total

    def log(self, log: logging.Logger, level: int, cause: str, text: str, *values: object) -> None:
        """Write it if it is due, with how often this cause was met: an outage meets a thousand runs at once."""
        if count := self.due(cause):
            log.log(level, f"{text} (%d times)", *values, count)
