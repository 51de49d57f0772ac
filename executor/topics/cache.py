"""Cached results as people see to them; `engine.cache`. How they are found and kept: `runtime/cached.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from executor.engine import Engine


class Cache:
    def __init__(self, engine: Engine) -> None:
        self._store = engine.store

    async def clear(self, workflow: str | None = None) -> int:
        """Forget all cached results, or those that runs of one workflow left. Returns how many there were."""
        return await self._store.clear_cache(workflow)
