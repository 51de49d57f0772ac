"""What would be said again and again is said once a minute."""

from __future__ import annotations

import time
from collections.abc import Callable

EVERY_S = 60.0


class Seldom:
    def __init__(self, every_s: float = EVERY_S, now_s: Callable[[], float] = time.monotonic) -> None:
        self._every_s = every_s
        self._now_s = now_s
        self._again_s: float | None = None

    def due(self) -> bool:
        """True for the first call, and for the first one `every_s` seconds after each that was."""
        now_s = self._now_s()
        if self._again_s is not None and now_s < self._again_s:
            return False
        self._again_s = now_s + self._every_s
        return True
