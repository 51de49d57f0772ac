"""Requests to webhooks that were refused, for operators who find out why no run starts.

Strangers send these, so the writes that they cause are bounded: the database has one row for each webhook and reason,
with a count and the last request, and all of them are written at most every few seconds, in one transaction. The last
requests, one by one, are only kept in memory. A process that is killed loses its counts since the last write.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final

from executor.errors import StoreError
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.webhooks import REASONS_KEPT, RefusalRow

log = logging.getLogger("weft.triggers")

WRITE_EVERY_S: Final = 5.0
REMEMBERED: Final = 50  # per webhook, by this process


class Refusals:
    """Counts refused requests by webhook and reason, and writes the counts in the background."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last: dict[str, deque[RefusalRow]] = {}
        self._unwritten: dict[tuple[str, str], RefusalRow] = {}
        self._task: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()  # rows that are being written are in neither place

    def record(self, row: RefusalRow) -> None:
        """Record a refusal, only for a webhook that exists: strangers must not be able to make this grow."""
        self._last.setdefault(row.webhook_id, deque(maxlen=REMEMBERED)).append(row)
        key = (row.webhook_id, row.outcome)
        self._unwritten[key] = row.after(self._unwritten.get(key))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_for_a_while(), name="refusals")

    def forget(self, webhook: str) -> None:
        """Forget a webhook that has been deleted."""
        self._last.pop(webhook, None)
        for key in [key for key in self._unwritten if key[0] == webhook]:
            del self._unwritten[key]

    def last(self, webhook: str) -> list[RefusalRow]:
        """Return the requests that this process has refused, one by one, oldest first."""
        return list(self._last.get(webhook, ()))

    async def by_reason(self, webhook: str) -> list[RefusalRow]:
        """Return all reasons with their counts, the most recent one first."""
        async with self._lock:
            unwritten = {row.outcome: row for row in self._unwritten.values() if row.webhook_id == webhook}
            stored = {row.outcome: row for row in await self._store.list_refusals(webhook)}
        added = {outcome: row.after(stored.get(outcome)) for outcome, row in unwritten.items()}
        return sorted((stored | added).values(), key=lambda row: row.last_at_ms, reverse=True)[:REASONS_KEPT]

    async def stop(self) -> None:
        """Stop, and write the counts now."""
        task, self._task = self._task, None
        if task is not None:
            async with self._lock:
                task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self._write()

    async def _write_for_a_while(self) -> None:
        while self._unwritten:
            await self._write()
            await asyncio.sleep(WRITE_EVERY_S)

    async def _write(self) -> None:
        async with self._lock:
            rows, self._unwritten = self._unwritten, {}
            try:
                if rows:
                    await self._store.add_refusals(list(rows.values()))
            except StoreError as error:
                log.warning("%d counts of refused requests could not be stored: %s", len(rows), error)
                for key, row in rows.items():
                    newer = self._unwritten.get(key)
                    self._unwritten[key] = newer.after(row) if newer is not None else row
