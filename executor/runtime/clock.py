"""Wall-clock time, as an argument: deadlines are Unix milliseconds."""

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


class ManualClock:
    """Stands still until it is advanced. For tests and for simulated worlds."""

    def __init__(self, now_ms: int = 1_800_000_000_000) -> None:
        self._now_ms = now_ms
        self._callbacks: list[Callable[[], None]] = []

    def now_ms(self) -> int:
        return self._now_ms

    def on_jump(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def advance(self, ms: int) -> None:
        self._now_ms += ms
        for callback in self._callbacks:
            callback()
