"""Alerts in the model store."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec.structs import replace

from executor.kernel.store.topics.alerts import (
    QUEUED_LOOKED_AT,
    AlertCount,
    AlertMessage,
    AlertRow,
    QueuedRun,
    message_id,
)
from executor.kernel.store.topics.outbox import NotificationStatus

Key = tuple[str, str, str]


class ModelAlerts:
    """What ModelStore can do with alerts."""

    _runs: dict[str, Any]  # the store's own

    def __init__(self) -> None:
        super().__init__()
        self._alerts: dict[Key, tuple[AlertRow, str | None]] = {}
        self._alert_messages: dict[str, AlertMessage] = {}

    async def add_alerts(self, alerts: tuple[AlertRow, ...]) -> int:
        return self._add_alerts(alerts)

    def _add_alerts(self, alerts: tuple[AlertRow, ...]) -> int:
        added = 0
        for row in alerts:
            if row.channel == "workflow":
                message = AlertMessage(
                    row.cause, row.channel, row.target, row.run_id, "pending", 0, row.at_ms, row.due_at_ms
                )
                added += self._alert_messages.setdefault(row.cause, message) is message
            elif (row.cause, row.channel, row.target) not in self._alerts:
                self._alerts[row.cause, row.channel, row.target] = (row, None)
                added += 1
        return added

    def _delete_alerts_of_run(self, run: str) -> None:
        self._alerts = {key: each for key, each in self._alerts.items() if each[0].run_id != run}
        self._alert_messages = {id: each for id, each in self._alert_messages.items() if each.run_id != run}

    async def group_alerts(self, now_ms: int, every_ms: int) -> int:
        due: dict[tuple[str, str], list[Key]] = {}
        for key, (row, message) in list(self._alerts.items()):
            if message is not None or row.due_at_ms > now_ms:
                continue
            if row.kind == "run.waiting" and self._is_closed(row):
                del self._alerts[key]
            else:
                due.setdefault((row.channel, row.target), []).append(key)
        made = 0
        for (channel, target), keys in sorted(due.items()):
            times = [
                each.created_at_ms
                for each in self._alert_messages.values()
                if (each.channel, each.target) == (channel, target)
            ]
            last = max(times, default=None)
            if last is not None and now_ms - every_ms < last <= now_ms:
                continue
            id = message_id(channel, target, last)
            if id in self._alert_messages:
                continue
            first = self._alerts[keys[0]][0]
            self._alert_messages[id] = AlertMessage(id, first.channel, target, "", "pending", 0, now_ms, now_ms)
            for key in keys:
                self._alerts[key] = (self._alerts[key][0], id)
            made += 1
        return made

    def _is_closed(self, row: AlertRow) -> bool:
        run = self._runs.get(row.run_id)
        wait = None if run is None else run.waits.get(row.item)
        return wait is None or wait.status != "pending"

    async def next_alert_ms(self) -> int | None:
        dues = [row.due_at_ms for row, message in self._alerts.values() if message is None]
        dues += [each.due_at_ms for each in self._alert_messages.values() if each.status == "pending"]
        return min(dues, default=None)

    async def claim_alert_messages(self, now_ms: int, lease_ms: int, limit: int) -> list[AlertMessage]:
        due = [each for each in self._alert_messages.values() if each.status == "pending" and each.due_at_ms <= now_ms]
        claimed = []
        for each in sorted(due, key=lambda each: (each.due_at_ms, each.id))[:limit]:
            claimed.append(replace(each, attempts=each.attempts + 1, due_at_ms=now_ms + lease_ms))
            self._alert_messages[each.id] = claimed[-1]
        return claimed

    async def keep_alert_message(self, id: str, attempt: int, until_ms: int, counts: bool = True) -> bool:
        row = self._alert_messages.get(id)
        if row is None or (row.status, row.attempts) != ("pending", attempt):
            return False
        attempts = attempt if counts else attempt - 1
        self._alert_messages[id] = replace(row, due_at_ms=until_ms, attempts=attempts)
        return True

    async def record_alert_message(
        self,
        id: str,
        attempt: int,
        status: NotificationStatus,
        now_ms: int,
        due_at_ms: int | None = None,
        error: str | None = None,
    ) -> bool:
        row = self._alert_messages.get(id)
        if row is None or row.attempts != attempt:
            return False
        self._alert_messages[id] = replace(
            row,
            status=status,
            due_at_ms=row.due_at_ms if due_at_ms is None else due_at_ms,
            settled_at_ms=None if status == "pending" else now_ms,
            error=error,
        )
        return True

    async def alerts_of(self, message_id: str, limit: int) -> list[AlertRow]:
        found = [row for row, message in self._alerts.values() if message == message_id]
        return sorted(found, key=lambda row: (row.at_ms, row.cause))[:limit]

    async def count_alerts_of(self, message_id: str) -> list[AlertCount]:
        counts = Counter((row.kind, row.workflow) for row, message in self._alerts.values() if message == message_id)
        found = [AlertCount(kind, workflow, count) for (kind, workflow), count in counts.items()]
        return sorted(found, key=lambda each: (-each.count, each.kind, each.workflow))

    async def queued_since(self, before_ms: int) -> list[QueuedRun]:
        queued = [run.row for run in self._runs.values() if run.row.status == "queued"][:QUEUED_LOOKED_AT]
        known = {row.cause for row, _ in self._alerts.values()}
        return [
            QueuedRun(row.id, row.workflow, row.plan_hash, row.created_at_ms)
            for row in queued
            if row.created_at_ms < before_ms and f"queued:{row.id}" not in known
        ]

    async def delete_old_alerts(self, before_ms: int, limit: int) -> int:
        old = [each for each in self._alert_messages.values() if each.settled_at_ms is not None]
        old = sorted((each for each in old if (each.settled_at_ms or 0) < before_ms), key=_settled)[:limit]
        for each in old:
            del self._alert_messages[each.id]
            self._alerts = {key: found for key, found in self._alerts.items() if found[1] != each.id}
        return len(old)


def _settled(message: AlertMessage) -> tuple[int, str]:
    return message.settled_at_ms or 0, message.id
