"""A clock for tests."""

from __future__ import annotations

from collections.abc import Callable


class ManualClock:
    """Stands still until it is advanced."""

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
