"""The outbox: notifications about waits on their way out."""

# ruff: noqa: S608  (the pieces put together here are constants of this package, never values)

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from executor.store.rows import NotificationRow, NotificationStatus
from executor.store.sqlite.connection import Tx
from executor.store.sqlite.readers import Readers

NOTIFICATION = "run_id, wait_id, n, channel, content, status, attempts, created_at_ms, due_at_ms, settled_at_ms, error"
ADD_NOTIFICATION = f"INSERT INTO notifications ({NOTIFICATION}) VALUES ({', '.join('?' * 11)})"
# Most of the time there is nothing due: that costs one look into a small index.
IS_ANY_DUE = "SELECT 1 FROM notifications WHERE status = 'pending' AND due_at_ms <= ? LIMIT 1"
CANCEL_CLOSED = """
UPDATE notifications SET status = 'cancelled', settled_at_ms = ?
 WHERE status = 'pending' AND NOT EXISTS (
       SELECT 1 FROM waits AS w
        WHERE w.run_id = notifications.run_id AND w.id = notifications.wait_id AND w.status = 'pending')"""
FIND_DUE = f"""
SELECT {NOTIFICATION} FROM notifications WHERE status = 'pending' AND due_at_ms <= ?
 ORDER BY due_at_ms, run_id, wait_id, n LIMIT ?"""
BEGIN_ATTEMPT = "UPDATE notifications SET attempts = ?, due_at_ms = ? WHERE run_id = ? AND wait_id = ? AND n = ?"
# One that was sent after its wait was closed was sent all the same.
SETTLE = """
UPDATE notifications SET status = ?, due_at_ms = coalesce(?, due_at_ms), settled_at_ms = ?, error = ?
 WHERE run_id = ? AND wait_id = ? AND n = ? AND attempts = ?"""
NEXT_DUE = "SELECT due_at_ms FROM notifications WHERE status = 'pending' ORDER BY due_at_ms LIMIT 1"
OF_WAITS = f"""
SELECT {NOTIFICATION} FROM notifications
 WHERE (run_id, wait_id) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?)) ORDER BY run_id, wait_id, n"""


async def is_any_due(readers: Readers, now_ms: int) -> bool:
    return await readers.one(IS_ANY_DUE, (now_ms,)) is not None


def claim_notifications(tx: Tx, now_ms: int, lease_ms: int, limit: int) -> list[NotificationRow]:
    tx.db.execute(CANCEL_CLOSED, (now_ms,))
    claimed = []
    for found in tx.db.execute(FIND_DUE, (now_ms, limit)).fetchall():
        row = NotificationRow(*found)
        row = msgspec.structs.replace(row, attempts=row.attempts + 1, due_at_ms=now_ms + lease_ms)
        tx.db.execute(BEGIN_ATTEMPT, (row.attempts, row.due_at_ms, row.run_id, row.wait_id, row.n))
        claimed.append(row)
    return claimed


def settle_notification(
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
    settled_at_ms = None if status == "pending" else now_ms
    values = (status, due_at_ms, settled_at_ms, error, run_id, wait_id, n, attempt)
    return tx.db.execute(SETTLE, values).rowcount == 1


async def next_notification_ms(readers: Readers) -> int | None:
    row = await readers.one(NEXT_DUE)
    return None if row is None else int(row[0])


async def list_notifications(readers: Readers, waits: Sequence[tuple[str, str]]) -> list[NotificationRow]:
    wanted = msgspec.json.encode([list(pair) for pair in waits]).decode()
    return [NotificationRow(*row) for row in await readers.all(OF_WAITS, (wanted,))]


def add_notifications(tx: Tx, notifications: Sequence[NotificationRow]) -> None:
    """Part of an append."""
    for row in notifications:
        tx.db.execute(ADD_NOTIFICATION, msgspec.structs.astuple(row))
