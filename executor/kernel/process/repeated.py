"""Limits a repeated log message to one a minute and counts the rest."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

EVERY_S = 60.0
AWAY: Final = frozenset({"db_unavailable", "db_write_failed"})  # one cause, for reads and writes
SHOWN_MAX: Final = 8  # the most frequent consequences of an outage


class Repeated:
    """The repeated messages of one place in the code. Not for several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._what: str | None = None
        self._logged_at_s = 0.0
        self._count = 0

    def due(self, what: str, count: int = 1) -> int:
        """Count `count` more. Returns the number to log, or 0 to stay silent. A new message is logged at once."""
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


class Failure(Protocol):
    @property
    def code(self) -> str: ...


class Outage:
    """Failures of this process because of the database. One cause is one line a minute, whichever part of weft notices
    it; for several threads, too."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._logged_at_s: dict[str, float] = {}
        self._stopped: dict[str, Counter[str]] = {}

    def log(self, log: logging.Logger, error: Failure, what: str, count: int = 1) -> None:
        """Log that `what` failed `count` times more, such as "claiming failed"."""
        cause = "away" if error.code in AWAY else error.code
        with self._lock:
            stopped = self._stopped.setdefault(cause, Counter())
            stopped[what] += count
            now_s = self._clock()
            if now_s < self._logged_at_s.get(cause, -EVERY_S) + EVERY_S:
                return
            self._logged_at_s[cause] = now_s
            del self._stopped[cause]
        shown = ", ".join(f"{each} ({times} times)" for each, times in stopped.most_common(SHOWN_MAX))
        more = "" if len(stopped) <= SHOWN_MAX else f", and {len(stopped) - SHOWN_MAX} others"
        log.error("the database failed: %s: %s%s", error, shown, more)


OUTAGE: Final = Outage()
