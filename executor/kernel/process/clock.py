"""Time, as an argument: Unix milliseconds by the wall clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int: ...

    def on_jump(self, callback: Callable[[], None]) -> None:
        """Call back when the time moved by other than waiting (a manual clock was advanced)."""


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def on_jump(self, callback: Callable[[], None]) -> None:
        """The system gives no notice; timers look again at least once a minute."""
