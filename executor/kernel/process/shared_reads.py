"""Reads of one thing by many at the same time cost one read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


Value = TypeVar("Value")


class SharedReads(Generic[Key, Value]):
    """Reads of one thing by many at the same time cost one read. For one event loop. Callers share the value and must
    not change it.

    A caller joins a read that has not begun yet, never one that is under way, so it sees all that was committed before
    it asked.
    """

    def __init__(self, read: Callable[[Key], Awaitable[Value]]) -> None:
        self._read = read
        self._next: dict[Key, asyncio.Task[Value]] = {}
        self._under_way: dict[Key, asyncio.Task[Value]] = {}

    async def read(self, key: Key) -> Value:
        """Return the shared value. An error of the read is raised to all who share it."""
        task = self._next.get(key)
        if task is None:
            task = self._next[key] = asyncio.create_task(self._after(key, self._under_way.get(key)))
            task.add_done_callback(_retrieve)
        return await asyncio.shield(task)

    async def _after(self, key: Key, before: asyncio.Task[Value] | None) -> Value:
        if before is not None:
            await asyncio.wait([before])
        task = self._under_way[key] = self._next.pop(key)
        try:
            return await self._read(key)
        finally:
            if self._under_way[key] is task:
                del self._under_way[key]


def _retrieve(task: asyncio.Task[Value]) -> None:
    """Retrieve the error: all callers may have been cancelled meanwhile, and asyncio must not report it as lost."""
    if not task.cancelled():
        task.exception()
