"""The outbox: notifications about waits on their way out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from msgspec import Struct

from executor.kernel.store.statements import as_list
from executor.kernel.store.tx import Readers, Tx

NotificationStatus = Literal["pending", "sent", "failed", "cancelled"]
JOB_CHANNEL: Final = "job"  # starts a Job and looks after it
NOT_CREATED: Final = ""  # the `error` of such a message until its Job exists, however many claims were lost before


class NotificationRow(Struct, frozen=True):
    """To one address. `n` counts those of a wait from 1; `content` is JSON without secrets; `attempts` made
    so far; `due_at_ms`: not before this time, or, while it is being sent, until when no other process tries."""

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


NOTIFICATION = "run_id, wait_id, n, channel, content, status, attempts, created_at_ms, due_at_ms, settled_at_ms, error"
_VALUES = ", ".join(f":{field}" for field in NotificationRow.__struct_fields__)
ADD_NOTIFICATION = f"INSERT INTO notifications ({NOTIFICATION}) VALUES ({_VALUES})"
# Most of the time there is nothing due: that costs one look into a small index.
IS_ANY_DUE = "SELECT 1 FROM notifications WHERE status = 'pending' AND due_at_ms <= :now LIMIT 1"
# Only those that are due: the others are looked at when they are. A process that started a job may have to end it.
CANCEL_CLOSED = """
UPDATE notifications SET status = 'cancelled', settled_at_ms = :now
 WHERE status = 'pending' AND due_at_ms <= :now AND channel <> 'job' AND NOT EXISTS (
       SELECT 1 FROM waits AS w
        WHERE w.run_id = notifications.run_id AND w.id = notifications.wait_id AND w.status = 'pending')"""
FIND_DUE = f"""
SELECT {NOTIFICATION} FROM notifications WHERE status = 'pending' AND due_at_ms <= :now
 ORDER BY due_at_ms, run_id, wait_id, n LIMIT :limit"""
# No row: another process has begun an attempt, or keeps its own, or it was cancelled.
BEGIN_ATTEMPT = f"""
UPDATE notifications SET attempts = attempts + 1, due_at_ms = :until
 WHERE run_id = :run AND wait_id = :wait AND n = :n AND status = 'pending' AND attempts = :attempts
   AND due_at_ms <= :now
RETURNING {NOTIFICATION}"""
KEEP = """
UPDATE notifications SET due_at_ms = :until, attempts = attempts - :uncounted
 WHERE run_id = :run AND wait_id = :wait AND n = :n AND status = 'pending' AND attempts = :attempt"""
# One that was sent after its wait was closed was sent all the same.
SETTLE = """
UPDATE notifications SET status = :status, due_at_ms = coalesce(:due, due_at_ms), settled_at_ms = :settled,
       error = :error
 WHERE run_id = :run AND wait_id = :wait AND n = :n AND attempts = :attempt"""
OF_WAITS = f"""
SELECT {NOTIFICATION} FROM notifications
 WHERE (run_id, wait_id) IN $rows(:waits, tt) ORDER BY run_id, wait_id, n"""


async def is_any_due(readers: Readers, now_ms: int) -> bool:
    return await readers.one(IS_ANY_DUE, {"now": now_ms}) is not None


def claim_notifications(tx: Tx, now_ms: int, lease_ms: int, limit: int) -> list[NotificationRow]:
    """Claim pending ones that are due, oldest first: attempts + 1, due again when the lease is over. Those of waits
    that are closed become `cancelled` instead."""
    tx.run(CANCEL_CLOSED, {"now": now_ms})
    claimed = []
    for found in tx.rows(FIND_DUE, {"now": now_ms, "limit": limit}):
        row = NotificationRow(*found)
        values = {"run": row.run_id, "wait": row.wait_id, "n": row.n, "attempts": row.attempts, "now": now_ms}
        claimed += tx.rows(BEGIN_ATTEMPT, {**values, "until": now_ms + lease_ms})
    return [NotificationRow(*row) for row in claimed]


def keep_notification(
    tx: Tx, run_id: str, wait_id: str, n: int, attempt: int, until_ms: int, counts: bool = True
) -> bool:
    """Let the claim of attempt number `attempt` last until then; it is free at a time that has come. With
    `counts=False` nothing was sent, so it was no attempt. Returns False, with nothing changed, if it was cancelled,
    or another attempt was begun."""
    values = {"run": run_id, "wait": wait_id, "n": n, "attempt": attempt, "until": until_ms}
    return tx.run(KEEP, {**values, "uncounted": int(not counts)}) == 1


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
    values = {"run": run_id, "wait": wait_id, "n": n, "attempt": attempt, "status": status, "due": due_at_ms}
    values |= {"settled": None if status == "pending" else now_ms, "error": error}
    return tx.run(SETTLE, values) == 1


async def next_notification_ms(readers: Readers) -> int | None:
    """Return when the next one is due, or None if there is none to send."""
    row = await readers.one("SELECT due_at_ms FROM notifications WHERE status = 'pending' ORDER BY due_at_ms LIMIT 1")
    return None if row is None else int(row[0])


async def list_notifications(readers: Readers, waits: Sequence[tuple[str, str]]) -> list[NotificationRow]:
    """Return all notifications of these waits (run id, wait id), in the order of their numbers for each wait."""
    return [NotificationRow(*row) for row in await readers.all(OF_WAITS, {"waits": as_list(waits)})]


def add_notifications(tx: Tx, notifications: Sequence[NotificationRow]) -> None:
    """Part of an append."""
    for row in notifications:
        tx.run(ADD_NOTIFICATION, msgspec.structs.asdict(row))
