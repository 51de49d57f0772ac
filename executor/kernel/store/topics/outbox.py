"""The outbox: notifications about waits on their way out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from executor.kernel.store.statements import Readers, Tx, as_list, columns, insert

NotificationStatus = Literal["pending", "sent", "failed", "cancelled"]
JOB_CHANNEL: Final = "job"  # starts a Job and looks after it
NOT_CREATED: Final = ""  # the `error` of such a message until its Job exists, however many claims were lost before


class NotificationRow(Struct, frozen=True):
    """To one address. `n` counts those of a wait from 1; `content` is JSON without secrets; `attempts` made
    so far; `due_at_ms`: not before this time, or, while it is being sent, until when no other process tries. A reminder
    is recorded with the others, and `created_at_ms` is its time: later than the wait was opened."""

    run_id: str
    wait_id: str
    n: int
    channel: str
    content: bytes
    status: NotificationStatus
    attempts: int
    created_at_ms: int
    due_at_ms: int
    settled_at_ms: int | None = None
    error: str | None = None


M = TypeVar("M", bound=Struct)


class Outgoing(Generic[M]):
    """The statements of a table of messages on their way out, with this key. Each attempt is of one caller."""

    def __init__(self, table: str, kind: type[M], *key: str) -> None:
        self._kind, self._key = kind, key
        one = " AND ".join(f"{column} = :{column}" for column in key)
        due = f"FROM {table} WHERE status = 'pending' AND due_at_ms <= :now"
        # Most of the time there is nothing due: that costs one look into a small index.
        self.is_due = f"SELECT 1 {due} LIMIT 1"
        columns_of_key = ", ".join(key)
        self._find = f"SELECT {columns_of_key}, attempts {due} ORDER BY due_at_ms, {columns_of_key} LIMIT :limit"
        # No row: another process has begun an attempt, or keeps its own, or it was cancelled.
        self._begin = f"""
UPDATE {table} SET attempts = attempts + 1, due_at_ms = :until
 WHERE {one} AND status = 'pending' AND attempts = :attempts AND due_at_ms <= :now RETURNING {columns(kind)}"""
        self._keep = f"""
UPDATE {table} SET due_at_ms = :until, attempts = attempts - :uncounted
 WHERE {one} AND status = 'pending' AND attempts = :attempt"""
        # One that was sent after its wait was closed was sent all the same.
        self._record = f"""
UPDATE {table} SET status = :status, due_at_ms = coalesce(:due, due_at_ms), settled_at_ms = :settled, error = :error
 WHERE {one} AND attempts = :attempt"""

    def claim(self, tx: Tx, now_ms: int, lease_ms: int, limit: int) -> list[M]:
        claimed: list[M] = []
        for found in tx.rows(self._find, {"now": now_ms, "limit": limit}):
            values = dict(zip((*self._key, "attempts"), found, strict=True))
            claimed += tx.fetch(self._kind, self._begin, {**values, "now": now_ms, "until": now_ms + lease_ms})
        return claimed

    def keep(self, tx: Tx, key: Sequence[str | int], attempt: int, until_ms: int, counts: bool) -> bool:
        values = {"attempt": attempt, "until": until_ms, "uncounted": int(not counts)}
        return tx.run(self._keep, {**dict(zip(self._key, key, strict=True)), **values}) == 1

    def record(
        self,
        tx: Tx,
        key: Sequence[str | int],
        attempt: int,
        status: NotificationStatus,
        now_ms: int,
        due_at_ms: int | None,
        error: str | None,
    ) -> bool:
        values = {"attempt": attempt, "status": status, "due": due_at_ms, "error": error}
        values["settled"] = None if status == "pending" else now_ms
        return tx.run(self._record, {**dict(zip(self._key, key, strict=True)), **values}) == 1


NOTIFICATIONS = Outgoing("notifications", NotificationRow, "run_id", "wait_id", "n")
# Only those that are due: the others are looked at when they are. A process that started a job may have to end it.
CANCEL_CLOSED = """
UPDATE notifications SET status = 'cancelled', settled_at_ms = :now
 WHERE status = 'pending' AND due_at_ms <= :now AND channel <> 'job' AND NOT EXISTS (
       SELECT 1 FROM waits AS w
        WHERE w.run_id = notifications.run_id AND w.id = notifications.wait_id AND w.status = 'pending')"""
OF_WAITS = f"""
SELECT {columns(NotificationRow)} FROM notifications
 WHERE (run_id, wait_id) IN $rows(:waits, tt) ORDER BY run_id, wait_id, n"""


def claim_notifications(tx: Tx, now_ms: int, lease_ms: int, limit: int) -> list[NotificationRow]:
    """Claim pending ones that are due, oldest first: attempts + 1, due again when the lease is over. Those of waits
    that are closed become `cancelled` instead."""
    tx.run(CANCEL_CLOSED, {"now": now_ms})
    return NOTIFICATIONS.claim(tx, now_ms, lease_ms, limit)


def keep_notification(
    tx: Tx, run_id: str, wait_id: str, n: int, attempt: int, until_ms: int, counts: bool = True
) -> bool:
    """Let the claim of attempt number `attempt` last until then; it is free at a time that has come. With
    `counts=False` nothing was sent, so it was no attempt. Returns False, with nothing changed, if it was cancelled,
    or another attempt was begun."""
    return NOTIFICATIONS.keep(tx, (run_id, wait_id, n), attempt, until_ms, counts)


def record_notification(
    tx: Tx,
    run_id: str,
    wait_id: str,
    n: int,
    attempt: int,
    status: NotificationStatus,
    now_ms: int,
    due_at_ms: int | None = None,
    error: str | None = None,
) -> bool:
    """Record how attempt number `attempt` ended; `pending` with `due_at_ms` tries again then. Returns False, with
    nothing changed, if another attempt was begun meanwhile."""
    return NOTIFICATIONS.record(tx, (run_id, wait_id, n), attempt, status, now_ms, due_at_ms, error)


async def next_notification_ms(readers: Readers) -> int | None:
    return await readers.value(
        int, "SELECT due_at_ms FROM notifications WHERE status = 'pending' ORDER BY due_at_ms LIMIT 1"
    )


async def list_notifications(readers: Readers, waits: Sequence[tuple[str, str]]) -> list[NotificationRow]:
    """Return all notifications of these waits (run id, wait id), in the order of their numbers for each wait."""
    return await readers.fetch(NotificationRow, OF_WAITS, {"waits": as_list(waits)})


def add_notifications(tx: Tx, notifications: Sequence[NotificationRow]) -> None:
    for row in notifications:
        tx.run(insert("notifications", NotificationRow), asdict(row))
