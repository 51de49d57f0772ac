"""A clock that stands still until it is moved."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from executor.open.engine import Engine

BEGIN_MS: Final = 1_800_000_000_000  # 2027-01-15, 08:00 UTC
_QUIET_LOOKS: Final = 5
_LOOK_S: Final = 0.004
_SETTLE_S: Final = 5.0


class ManualClock:
    """`await clock.advance(3600)`: an hour has passed, and all that became due has begun and, if it does not have to
    wait for anything, ended."""

    def __init__(self, now_ms: int = BEGIN_MS) -> None:
        self._now_ms = now_ms
        self._callbacks: list[Callable[[], None]] = []
        self._engines: list[Engine] = []

    def now_ms(self) -> int:
        """Return the time in Unix milliseconds."""
        return self._now_ms

    def on_jump(self, callback: Callable[[], None]) -> None:
        """Call back after each move."""
        self._callbacks.append(callback)

    def watch(self, engine: Engine) -> None:
        """Let `advance` wait for this engine."""
        self._engines.append(engine)

    def forget(self, engine: Engine) -> None:
        """The engine is closed: `advance` does not wait for it."""
        self._engines.remove(engine)

    def set(self, now_ms: int) -> None:
        """Move to a time without waiting. Raises ValueError if it has passed."""
        if now_ms < self._now_ms:
            raise ValueError(f"a clock cannot be set back: it is {self._now_ms}, which is later than {now_ms}")
        self._now_ms = now_ms
        for callback in list(self._callbacks):
            callback()

    async def advance(self, seconds: float) -> None:
        """Move by so many seconds, and wait until the engines have nothing more to do, at most five seconds."""
        self.set(self._now_ms + round(seconds * 1000))
        for engine in self._engines:
            await settled(engine)


async def settled(engine: Engine, within_s: float = _SETTLE_S) -> bool:
    """Wait until nothing was committed and no attempt was at work for a moment. Returns False if that takes too
    long."""
    loop = asyncio.get_running_loop()
    until_s, quiet, commits = loop.time() + within_s, 0, -1
    while quiet < _QUIET_LOOKS:
        if loop.time() > until_s:
            return False
        figures = engine.figures
        quiet = quiet + 1 if figures.commits == commits and not figures.attempts else 0
        commits = figures.commits
        await asyncio.sleep(_LOOK_S)
    return True
