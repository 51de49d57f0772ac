"""Webhooks, their deliveries, and the requests that were refused."""

# ruff: noqa: S608  (the pieces put together here are constants of this package, never values)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from executor.store.rows import (
    DELIVERIES_KEPT,
    DELIVERY_KEPT_MS,
    DIGEST_CHARS,
    REASONS_KEPT,
    DeliveryRow,
    NewRun,
    RefusalRow,
    RunRow,
    WebhookRow,
)
from executor.store.rules import check_unchanged, lasts, merged_webhook
from executor.store.sqlite.connection import Tx
from executor.store.sqlite.readers import Readers
from executor.store.sqlite.runs import create_run

WEBHOOK = (
    "id, workflow, version, trigger_block, auth, secret_env, generation, respond, timeout_ms, headers, enabled,"
    " declared, origin, created_at_ms, updated_at_ms, last_run_at_ms, last_run_id"
)
DELIVERY = "webhook_id, id, digest, at_ms, run_id"
REFUSAL = "webhook_id, outcome, count, first_at_ms, last_at_ms, delivery, run_id"
PUT_WEBHOOK = f"INSERT OR REPLACE INTO webhooks ({WEBHOOK}) VALUES ({', '.join('?' * 17)})"
WEBHOOK_BY_ID = f"SELECT {WEBHOOK} FROM webhooks WHERE id = ?"
WEBHOOKS = f"SELECT {WEBHOOK} FROM webhooks ORDER BY id LIMIT ?"
WEBHOOKS_OF = f"SELECT {WEBHOOK} FROM webhooks WHERE workflow = ? ORDER BY id LIMIT ?"
IDS_OF = "SELECT id FROM webhooks WHERE workflow = ?"
DECLARED_WEBHOOKS = "SELECT id FROM webhooks WHERE workflow = ? AND origin = 'document'"
DELETE_WEBHOOK = "DELETE FROM webhooks WHERE id = ?"
DELETE_REFUSALS = "DELETE FROM refusals WHERE webhook_id = ?"
DELETE_DELIVERIES = "DELETE FROM deliveries WHERE webhook_id = ?"
SWITCH_WEBHOOK = "UPDATE webhooks SET enabled = ?, updated_at_ms = ? WHERE id = ?"
ROTATE_WEBHOOK = "UPDATE webhooks SET generation = ?, updated_at_ms = ? WHERE id = ?"
FORGOTTEN = """
 WHERE webhook_id = :id AND at_ms <= :before
   AND n < (SELECT n FROM deliveries WHERE webhook_id = :id ORDER BY n DESC LIMIT 1 OFFSET :limit)"""
FORGET_DELIVERIES = f"DELETE FROM deliveries {FORGOTTEN}"
KEEP_DIGESTS = f"""
INSERT OR IGNORE INTO old_deliveries (webhook_id, digest, at_ms, run_id)
SELECT webhook_id, substr(digest, 1, {DIGEST_CHARS}), at_ms, run_id FROM deliveries
{FORGOTTEN} AND digest IS NOT NULL"""
FIND_DIGEST = "SELECT at_ms, run_id FROM old_deliveries WHERE webhook_id = ? AND digest = ?"
DELETE_DIGESTS = "DELETE FROM old_deliveries WHERE webhook_id = ?"
# A copy counts as one for a day; an older row may still be there for the list.
FIND_DELIVERY = f"""
SELECT {DELIVERY} FROM deliveries
 WHERE webhook_id = :webhook AND (id = :id OR digest = :digest) ORDER BY n LIMIT 1"""
ADD_DELIVERY = f"INSERT INTO deliveries ({DELIVERY}) VALUES (?, ?, ?, ?, ?)"
NOTE_DELIVERY = "UPDATE webhooks SET last_run_at_ms = ?, last_run_id = ? WHERE id = ?"
DELIVERIES = f"SELECT {DELIVERY} FROM deliveries WHERE webhook_id = ? ORDER BY n DESC LIMIT ?"
REFUSALS = f"SELECT {REFUSAL} FROM refusals WHERE webhook_id = ? ORDER BY last_at_ms DESC, outcome LIMIT {REASONS_KEPT}"
ADD_REFUSAL = f"""
INSERT INTO refusals ({REFUSAL})
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE EXISTS (SELECT 1 FROM webhooks WHERE id = ?1)
ON CONFLICT (webhook_id, outcome) DO UPDATE
   SET count = count + excluded.count, last_at_ms = excluded.last_at_ms, delivery = excluded.delivery,
       run_id = excluded.run_id"""


async def get_webhook(readers: Readers, id: str) -> WebhookRow | None:
    row = await readers.one(WEBHOOK_BY_ID, (id,))
    return None if row is None else _webhook(row)


async def list_webhooks(readers: Readers, workflow: str | None = None, limit: int = 1_000) -> list[WebhookRow]:
    if workflow is None:
        return [_webhook(row) for row in await readers.all(WEBHOOKS, (limit,))]
    return [_webhook(row) for row in await readers.all(WEBHOOKS_OF, (workflow, limit))]


async def list_deliveries(readers: Readers, webhook_id: str, limit: int = DELIVERIES_KEPT) -> list[DeliveryRow]:
    return [DeliveryRow(*row) for row in await readers.all(DELIVERIES, (webhook_id, limit))]


async def list_refusals(readers: Readers, webhook_id: str) -> list[RefusalRow]:
    return [RefusalRow(*row) for row in await readers.all(REFUSALS, (webhook_id,))]


def put_webhook(tx: Tx, row: WebhookRow) -> WebhookRow:
    merged = merged_webhook(_find_webhook(tx, row.id), row)
    tx.db.execute(PUT_WEBHOOK, msgspec.structs.astuple(merged))
    return merged


def switch_webhook(tx: Tx, id: str, enabled: bool, now_ms: int) -> WebhookRow | None:
    tx.db.execute(SWITCH_WEBHOOK, (enabled, now_ms, id))
    return _find_webhook(tx, id)


def rotate_webhook(tx: Tx, id: str, generation: int, now_ms: int) -> WebhookRow | None:
    tx.db.execute(DELETE_DIGESTS, (id,))
    tx.db.execute(ROTATE_WEBHOOK, (generation, now_ms, id))
    return _find_webhook(tx, id)


def delete_webhook(tx: Tx, id: str) -> bool:
    tx.db.execute(DELETE_DIGESTS, (id,))
    tx.db.execute(DELETE_DELIVERIES, (id,))
    tx.db.execute(DELETE_REFUSALS, (id,))
    return tx.db.execute(DELETE_WEBHOOK, (id,)).rowcount == 1


def deliver(tx: Tx, webhook: WebhookRow, delivery: DeliveryRow, run: NewRun) -> tuple[DeliveryRow, RunRow | None]:
    check_unchanged(webhook, _find_webhook(tx, webhook.id))
    forget = {"id": delivery.webhook_id, "before": delivery.at_ms - DELIVERY_KEPT_MS, "limit": DELIVERIES_KEPT - 1}
    if lasts(webhook):
        tx.db.execute(KEEP_DIGESTS, forget)
    tx.db.execute(FORGET_DELIVERIES, forget)
    wanted = {"webhook": delivery.webhook_id, "id": delivery.id, "digest": delivery.digest}
    found = tx.db.execute(FIND_DELIVERY, wanted).fetchall()
    if found:
        return DeliveryRow(*found[0]), None
    for at_ms, run_id in tx.db.execute(FIND_DIGEST, (webhook.id, (delivery.digest or "")[:DIGEST_CHARS])).fetchall():
        return replace(delivery, at_ms=at_ms, run_id=run_id), None
    row, _ = create_run(tx, run)
    delivery = replace(delivery, run_id=row.id)
    tx.db.execute(ADD_DELIVERY, msgspec.structs.astuple(delivery))
    tx.db.execute(NOTE_DELIVERY, (delivery.at_ms, row.id, delivery.webhook_id))
    return delivery, row


def add_refusals(tx: Tx, rows: Sequence[RefusalRow]) -> None:
    for row in rows:
        tx.db.execute(ADD_REFUSAL, msgspec.structs.astuple(row))


def delete_webhooks_of(tx: Tx, workflow: str) -> int:
    """Part of deleting a workflow. Returns how many there were."""
    ids = tx.db.execute(IDS_OF, (workflow,)).fetchall()
    for (id,) in ids:
        delete_webhook(tx, id)
    return len(ids)


def put_declared_webhooks(tx: Tx, workflow: str, rows: Sequence[WebhookRow]) -> None:
    """Part of making a version active, as for schedules."""
    ids = {row.id for row in rows}
    for (id,) in tx.db.execute(DECLARED_WEBHOOKS, (workflow,)).fetchall():
        if id not in ids:
            delete_webhook(tx, id)
    for row in rows:
        put_webhook(tx, row)


def _find_webhook(tx: Tx, id: str) -> WebhookRow | None:
    found = tx.db.execute(WEBHOOK_BY_ID, (id,)).fetchall()
    return _webhook(found[0]) if found else None


def _webhook(row: tuple[Any, ...]) -> WebhookRow:
    read = WebhookRow(*row)
    return replace(read, enabled=bool(read.enabled), declared=None if read.declared is None else bool(read.declared))
