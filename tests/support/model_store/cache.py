"""Cached results in the model store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from executor.kernel.store.topics.cache import CacheRow


class ModelCache:
    """What ModelStore can do with cached results."""

    def __init__(self) -> None:
        super().__init__()
        self._cache: dict[str, CacheRow] = {}

    def _put_cached(self, rows: Sequence[CacheRow]) -> None:
        """Part of an append."""
        self._cache |= {row.key: row for row in rows}

    async def find_cached(self, key: str, now_ms: int) -> CacheRow | None:
        row = self._cache.get(key)
        return row if row is not None and row.expires_at_ms > now_ms else None

    async def clear_cache(self, workflow: str | None = None) -> int:
        return self._clear_cache(workflow)

    def _clear_cache(self, workflow: str | None) -> int:
        return self._forget(row for row in list(self._cache.values()) if workflow in (None, row.workflow))

    async def delete_expired_cache(self, now_ms: int, limit: int) -> int:
        expired = [row for row in self._cache.values() if row.expires_at_ms <= now_ms]
        return self._forget(sorted(expired, key=lambda row: row.expires_at_ms)[:limit])

    def _forget(self, rows: Iterable[CacheRow]) -> int:
        return len([self._cache.pop(row.key) for row in rows])
