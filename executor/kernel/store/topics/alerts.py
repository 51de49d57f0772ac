"""Alerts for operators, and the messages that carry them."""

from __future__ import annotations

import hashlib
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import asdict

from executor.kernel.store.statements import Readers, Tx, as_list, columns, insert
from executor.kernel.store.topics.outbox import NotificationStatus, Outgoing

AlertKind = Literal["run.failed", "run.waiting", "run.queued", "schedule.missed"]
AlertChannel = Literal["email", "webhook", "workflow"]
QUEUED_LOOKED_AT: Final = 100  # the runs that have been queued for longest


class AlertRow(Struct, frozen=True):
    """An alert for one address. There is one alert for each `cause`. `target` is mail addresses by commas, a URL, or
    empty for those of the installation; of channel `workflow`, the error workflow to start. `item` is the id of a wait
    or a schedule. `run_id` is empty if it is about no run. `due_at_ms`: not before this time."""

    cause: str
    channel: AlertChannel
    target: str
    kind: AlertKind
    workflow: str
    run_id: str
    item: str
    at_ms: int
    due_at_ms: int


class AlertMessage(Struct, frozen=True):
    """To one address, about any number of causes. `run_id`: for which an error workflow is to be started, else empty.
    `attempts`, `due_at_ms`: as of a notification."""

    id: str
    channel: AlertChannel
    target: str
    run_id: str
    status: NotificationStatus
    attempts: int
    created_at_ms: int
    due_at_ms: int
    settled_at_ms: int | None = None
    error: str | None = None


class AlertCount(Struct, frozen=True):
    kind: AlertKind
    workflow: str
    count: int


class QueuedRun(Struct, frozen=True):
    id: str
    workflow: str
    plan_hash: str
    created_at_ms: int


MESSAGES = Outgoing("alert_messages", AlertMessage, "id")
ADD_ALERT = f"{insert('alerts', AlertRow)} ON CONFLICT DO NOTHING"
ADD_MESSAGE = f"{insert('alert_messages', AlertMessage)} ON CONFLICT DO NOTHING"
DROP_CLOSED = """
DELETE FROM alerts
 WHERE message_id IS NULL AND due_at_ms <= :now AND kind = 'run.waiting' AND NOT EXISTS (
       SELECT 1 FROM waits AS w WHERE w.run_id = alerts.run_id AND w.id = alerts.item AND w.status = 'pending')"""
IS_ANY_DUE = "SELECT 1 FROM alerts WHERE message_id IS NULL AND due_at_ms <= :now LIMIT 1"
DUE_TARGETS = """
SELECT DISTINCT channel, target FROM alerts WHERE message_id IS NULL AND due_at_ms <= :now ORDER BY channel, target"""
LAST_TO = "SELECT max(created_at_ms) FROM alert_messages WHERE channel = :channel AND target = :target"
ASSIGN = """
UPDATE alerts SET message_id = :id
 WHERE channel = :channel AND target = :target AND message_id IS NULL AND due_at_ms <= :now"""
NEXT_DUE = """
SELECT min(due) FROM (
    SELECT min(due_at_ms) AS due FROM alerts WHERE message_id IS NULL
    UNION ALL SELECT min(due_at_ms) FROM alert_messages WHERE status = 'pending') AS dues"""
OF_MESSAGE = f"SELECT {columns(AlertRow)} FROM alerts WHERE message_id = :message ORDER BY at_ms, cause LIMIT :limit"
COUNTS = """
SELECT kind, workflow, count(*) FROM alerts WHERE message_id = :message
 GROUP BY kind, workflow ORDER BY count(*) DESC, kind, workflow"""
QUEUED = f"""
SELECT id, workflow, plan_hash, created_at_ms FROM (
    SELECT d.id, d.workflow, d.plan_hash, d.created_at_ms, h.n FROM heads AS h JOIN run_details AS d ON d.n = h.n
     WHERE h.status = 'queued' ORDER BY h.n LIMIT {QUEUED_LOOKED_AT}) AS oldest
 WHERE created_at_ms < :before AND NOT EXISTS (SELECT 1 FROM alerts WHERE alerts.cause = 'queued:' || oldest.id)
 ORDER BY n"""
OLD_MESSAGES = "SELECT id FROM alert_messages WHERE settled_at_ms < :before ORDER BY settled_at_ms, id LIMIT :limit"


def add_alerts(tx: Tx, alerts: tuple[AlertRow, ...]) -> int:
    """Add the alerts whose cause is new for the address. Returns how many these are. Also part of an append. An error
    workflow needs no message to be put into: it is one."""
    added = 0
    for row in alerts:
        if row.channel == "workflow":
            message = AlertMessage(
                row.cause, row.channel, row.target, row.run_id, "pending", 0, row.at_ms, row.due_at_ms
            )
            added += tx.run(ADD_MESSAGE, asdict(message))
        else:
            added += tx.run(ADD_ALERT, asdict(row))
    return added


def group_alerts(tx: Tx, now_ms: int, every_ms: int) -> int:
    """Make a message for each address that alerts are due for, of all of them, unless its last message is younger
    than `every_ms`. Alerts about waits that are closed are deleted. Returns how many messages were made."""
    tx.run(DROP_CLOSED, {"now": now_ms})
    made = 0
    for channel, target in tx.rows(DUE_TARGETS, {"now": now_ms}):
        to = {"channel": channel, "target": target}
        (last,) = tx.row(LAST_TO, to)
        if last is not None and now_ms - every_ms < last <= now_ms:
            continue
        id = message_id(channel, target, last)
        message = AlertMessage(id, channel, target, "", "pending", 0, now_ms, now_ms)
        if not tx.run(ADD_MESSAGE, asdict(message)):
            continue  # another process has made it
        if tx.run(ASSIGN, {**to, "id": id, "now": now_ms}):
            made += 1
        else:
            tx.run("DELETE FROM alert_messages WHERE id = :id", {"id": id})
    return made


def message_id(channel: str, target: str, last_ms: int | None) -> str:
    """The same for two processes that make the next message to one address at the same time: one of them does."""
    return f"{hashlib.sha256(f'{channel} {target}'.encode()).hexdigest()[:24]}-{last_ms or 0}"


async def next_alert_ms(readers: Readers) -> int | None:
    return await readers.value(int, NEXT_DUE)


def claim_alert_messages(tx: Tx, now_ms: int, lease_ms: int, limit: int) -> list[AlertMessage]:
    """As `claim_notifications`."""
    return MESSAGES.claim(tx, now_ms, lease_ms, limit)


def keep_alert_message(tx: Tx, id: str, attempt: int, until_ms: int, counts: bool = True) -> bool:
    """As `keep_notification`."""
    return MESSAGES.keep(tx, (id,), attempt, until_ms, counts)


def record_alert_message(
    tx: Tx,
    id: str,
    attempt: int,
    status: NotificationStatus,
    now_ms: int,
    due_at_ms: int | None = None,
    error: str | None = None,
) -> bool:
    """As `record_notification`."""
    return MESSAGES.record(tx, (id,), attempt, status, now_ms, due_at_ms, error)


async def alerts_of(readers: Readers, message_id: str, limit: int) -> list[AlertRow]:
    """Return alerts, oldest first (at_ms, cause)."""
    return await readers.fetch(AlertRow, OF_MESSAGE, {"message": message_id, "limit": limit})


async def count_alerts_of(readers: Readers, message_id: str) -> list[AlertCount]:
    """Return counts over all alerts, the most frequent first."""
    return await readers.fetch(AlertCount, COUNTS, {"message": message_id})


async def queued_since(readers: Readers, before_ms: int) -> list[QueuedRun]:
    """Return those without an alert that were created before this time, of the QUEUED_LOOKED_AT that wait longest."""
    return await readers.fetch(QueuedRun, QUEUED, {"before": before_ms})


def delete_old_alerts(tx: Tx, before_ms: int, limit: int) -> int:
    """Delete at most `limit` messages that were settled before this time, with their alerts. Returns how many."""
    ids = [id for (id,) in tx.rows(OLD_MESSAGES, {"before": before_ms, "limit": limit})]
    if not ids:
        return 0
    tx.run("DELETE FROM alerts WHERE message_id IN $texts(:ids)", {"ids": as_list(ids)})
    return tx.run("DELETE FROM alert_messages WHERE id IN $texts(:ids)", {"ids": as_list(ids)})
