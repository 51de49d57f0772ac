"""The outbox in the model store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from executor.kernel.store.topics.outbox import NotificationRow, NotificationStatus

Key = tuple[str, str, int]


class ModelNotifications:
    """What ModelStore can do with notifications."""

    _runs: dict[str, Any]  # the store's own

    def __init__(self) -> None:
        super().__init__()
        self._notifications: dict[Key, NotificationRow] = {}

    def _add_notifications(self, rows: Sequence[NotificationRow]) -> None:
        """Part of an append."""
        self._notifications |= {_key(row): row for row in rows}

    async def claim_notifications(self, now_ms: int, lease_ms: int, limit: int) -> list[NotificationRow]:
        due = []
        for row in list(self._notifications.values()):
            if row.status != "pending" or row.due_at_ms > now_ms:
                continue
            if row.channel != "job" and self._runs[row.run_id].waits[row.wait_id].status != "pending":
                self._notifications[_key(row)] = replace(row, status="cancelled", settled_at_ms=now_ms)
            else:
                due.append(row)
        claimed = []
        for row in sorted(due, key=lambda row: (row.due_at_ms, *_key(row)))[:limit]:
            claimed.append(replace(row, attempts=row.attempts + 1, due_at_ms=now_ms + lease_ms))
            self._notifications[_key(row)] = claimed[-1]
        return claimed

    async def keep_notification(
        self, run_id: str, wait_id: str, n: int, attempt: int, until_ms: int, counts: bool = True
    ) -> bool:
        row = self._notifications.get((run_id, wait_id, n))
        if row is None or (row.status, row.attempts) != ("pending", attempt):
            return False
        attempts = attempt if counts else attempt - 1
        self._notifications[run_id, wait_id, n] = replace(row, due_at_ms=until_ms, attempts=attempts)
        return True

    async def record_notification(
        self,
        run_id: str,
        wait_id: str,
        n: int,
        attempt: int,
        status: NotificationStatus,
        now_ms: int,
        due_at_ms: int | None = None,
        error: str | None = None,
    ) -> bool:
        row = self._notifications.get((run_id, wait_id, n))
        if row is None or row.attempts != attempt:
            return False
        self._notifications[run_id, wait_id, n] = replace(
            row,
            status=status,
            due_at_ms=row.due_at_ms if due_at_ms is None else due_at_ms,
            settled_at_ms=None if status == "pending" else now_ms,
            error=error,
        )
        return True

    async def next_notification_ms(self) -> int | None:
        return min((row.due_at_ms for row in self._notifications.values() if row.status == "pending"), default=None)

    async def list_notifications(self, waits: Sequence[tuple[str, str]]) -> list[NotificationRow]:
        wanted = set(waits)
        found = [row for row in self._notifications.values() if (row.run_id, row.wait_id) in wanted]
        return sorted(found, key=_key)


def _key(row: NotificationRow) -> Key:
    return row.run_id, row.wait_id, row.n
