"""The amount of work in the whole database: `engine.load`."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from executor.kernel.store.topics.load import DatabaseLoad
from executor.service.parts import Parts

KEPT_S: Final = 5.0


class Load:
    def __init__(self, parts: Parts) -> None:
        self._store = parts.store
        self._looking = asyncio.Lock()
        self._last: DatabaseLoad | None = None
        self._looked_at_s = 0.0

    async def now(self, kept_s: float = KEPT_S) -> DatabaseLoad:
        """Return the load, up to `kept_s` old: concurrent callers share one query. Raises StoreError."""
        async with self._looking:
            if self._last is None or time.monotonic() >= self._looked_at_s + kept_s:
                self._last = await self._store.load()
                self._looked_at_s = time.monotonic()
            return self._last
