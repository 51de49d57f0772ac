"""Alerts for operators: what a store is asked for. See rules 46 to 48 of the contract."""

from __future__ import annotations

from typing import Protocol

from executor.kernel.store.topics.alerts import AlertCount, AlertMessage, AlertRow, AlertStatus, QueuedRun


class AlertStore(Protocol):
    async def add_alerts(self, alerts: tuple[AlertRow, ...]) -> int:
        """Add the alerts whose cause is new for the address. Returns how many these are."""

    async def group_alerts(self, now_ms: int, every_ms: int) -> int:
        """Make a message for each address that alerts are due for, of all of them, unless its last message is younger
        than `every_ms`. Alerts about waits that are closed are deleted. Returns how many messages were made."""

    async def next_alert_ms(self) -> int | None:
        """Return when the next alert or message is due, or None."""

    async def claim_alert_messages(self, now_ms: int, lease_ms: int, limit: int) -> list[AlertMessage]:
        """As `claim_notifications`."""

    async def keep_alert_message(self, id: str, attempt: int, until_ms: int, counts: bool = True) -> bool:
        """As `keep_notification`."""

    async def settle_alert_message(
        self,
        id: str,
        attempt: int,
        status: AlertStatus,
        now_ms: int,
        due_at_ms: int | None = None,
        error: str | None = None,
    ) -> bool:
        """As `settle_notification`."""

    async def alerts_of(self, message_id: str, limit: int) -> list[AlertRow]:
        """Return alerts, oldest first (at_ms, cause)."""

    async def count_alerts_of(self, message_id: str) -> list[AlertCount]:
        """Return counts over all alerts, the most frequent first."""

    async def queued_since(self, before_ms: int) -> list[QueuedRun]:
        """Return, of the QUEUED_LOOKED_AT runs that were created first and no worker has begun, those created before
        this time that have no alert."""

    async def delete_old_alerts(self, before_ms: int, limit: int) -> int:
        """Delete at most `limit` messages that were settled before this time, with their alerts. Returns how many."""
