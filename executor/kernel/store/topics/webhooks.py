"""Webhooks, their deliveries, and the requests that were refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

from executor.errors import Conflict, Fenced
from executor.kernel.store.run_rows import NewRun, RunRow
from executor.kernel.store.statements import Readers, Tx, columns, insert, keep_workflow, replacing
from executor.kernel.store.topics.runs import create_run
from executor.kernel.store.topics.schedules import Origin

Auth = Literal["hmac", "github", "token", "none"]
Respond = Literal["immediate", "run"]
DELIVERIES_KEPT: Final = 50
REASONS_KEPT: Final = 50  # for a refusal; there are about a dozen
DIGEST_CHARS: Final = 32  # of those that are remembered longest: 128 bits
DELIVERY_KEPT_MS: Final = 24 * 3_600_000  # a copy that comes within a day is recognised


class _Webhook(Struct, frozen=True):
    """`secret_env` names the environment's value that is the secret; without it the secret follows from `generation`, a
    random number. `timeout_ms` is for respond `run`; `headers` is a JSON list of the names that are passed on besides
    the usual ones. For `version`, `trigger` and `declared` see ScheduleRow."""

    id: str
    workflow: str
    version: int | None
    trigger: str | None
    auth: Auth
    secret_env: str | None
    generation: int
    respond: Respond
    timeout_ms: int
    headers: bytes
    enabled: bool
    declared: bool | None
    origin: Origin
    created_at_ms: int
    updated_at_ms: int


class WebhookRow(_Webhook, frozen=True):
    last_run_at_ms: int | None = None
    last_run_id: str | None = None


class DeliveryRow(Struct, frozen=True):
    """`id` is the sender's name for it, or ours; `digest` is of the signature, if there is one."""

    webhook_id: str
    id: str
    digest: str | None
    at_ms: int
    run_id: str


class RefusalRow(Struct, frozen=True):
    """`outcome` is the code of the reason. `delivery` and `run_id` (of a copy, of the first) are of the last."""

    webhook_id: str
    outcome: str
    count: int
    first_at_ms: int
    last_at_ms: int
    delivery: str | None = None
    run_id: str | None = None

    def after(self, earlier: RefusalRow | None) -> RefusalRow:
        if earlier is None:
            return self
        return replace(self, count=earlier.count + self.count, first_at_ms=earlier.first_at_ms)


def merged_webhook(old: WebhookRow | None, new: WebhookRow) -> WebhookRow:
    """`new` with what outlives a change: as for schedules, and the generation of the secret."""
    if old is None:
        return new
    unchanged = new.declared is not None and new.declared == old.declared
    return replace(
        new,
        enabled=old.enabled if unchanged else new.enabled,
        generation=old.generation,
        last_run_at_ms=old.last_run_at_ms,
        last_run_id=old.last_run_id,
        created_at_ms=old.created_at_ms,
    )


def check_unchanged(webhook: WebhookRow, now: WebhookRow | None) -> None:
    if now is None or webhook != replace(now, last_run_at_ms=webhook.last_run_at_ms, last_run_id=webhook.last_run_id):
        raise Fenced(f"webhook {webhook.id} has changed")


def lasts(webhook: WebhookRow) -> bool:
    """Returns True if a signed request to it is valid for as long as its secret is."""
    return webhook.auth == "github"


# The last run is that of the last delivery: a column of the webhook would be written by all its deliveries at once.
_LAST = "(SELECT {column} FROM deliveries WHERE webhook_id = webhooks.id ORDER BY n DESC LIMIT 1)"
_COLUMNS = columns(_Webhook, trigger="trigger_block")
WEBHOOK = f"{_COLUMNS}, {_LAST.format(column='at_ms')}, {_LAST.format(column='run_id')}"
DELIVERY = columns(DeliveryRow)
REFUSAL = columns(RefusalRow)
_INSERT = insert("webhooks", _Webhook, trigger="trigger_block")
ADD_WEBHOOK = f"{_INSERT} ON CONFLICT (id) DO NOTHING"
PUT_WEBHOOK = _INSERT + replacing(_Webhook, "id", trigger="trigger_block")
TAKE_WEBHOOK = f"UPDATE webhooks SET enabled = enabled WHERE id = :id RETURNING {WEBHOOK}"
WEBHOOK_BY_ID = f"SELECT {WEBHOOK} FROM webhooks WHERE id = :id"
WEBHOOKS_OF = f"SELECT {WEBHOOK} FROM webhooks WHERE workflow = :workflow ORDER BY id LIMIT :limit"
DECLARED_WEBHOOKS = "SELECT id FROM webhooks WHERE workflow = :workflow AND origin = 'document'"
DELETE_REFUSALS = "DELETE FROM refusals WHERE webhook_id = :id"
DELETE_DELIVERIES = "DELETE FROM deliveries WHERE webhook_id = :id"
SWITCH_WEBHOOK = f"UPDATE webhooks SET enabled = :enabled, updated_at_ms = :now WHERE id = :id RETURNING {WEBHOOK}"
ROTATE_WEBHOOK = f"""
UPDATE webhooks SET generation = :generation, updated_at_ms = :now WHERE id = :id RETURNING {WEBHOOK}"""
FORGOTTEN = """
 WHERE webhook_id = :id AND at_ms <= :before
   AND n < (SELECT n FROM deliveries WHERE webhook_id = :id ORDER BY n DESC LIMIT 1 OFFSET :limit)"""
FORGET_DELIVERIES = f"DELETE FROM deliveries {FORGOTTEN}"
KEEP_DIGESTS = f"""
INSERT INTO old_deliveries (webhook_id, digest, at_ms, run_id)
SELECT webhook_id, substr(digest, 1, {DIGEST_CHARS}), at_ms, run_id FROM deliveries
{FORGOTTEN} AND digest IS NOT NULL
ON CONFLICT (webhook_id, digest) DO NOTHING"""
FIND_DIGEST = "SELECT at_ms, run_id FROM old_deliveries WHERE webhook_id = :webhook AND digest = :digest"
DELETE_DIGESTS = "DELETE FROM old_deliveries WHERE webhook_id = :id"
# A copy counts as one for a day; an older row may still be there for the list.
FIND_DELIVERY = f"""
SELECT {DELIVERY} FROM deliveries
 WHERE webhook_id = :webhook AND (id = :id OR digest = :digest) ORDER BY n LIMIT 1"""
# No row: another one has this id or this digest, or the webhook was changed since it was looked at.
ADD_DELIVERY = f"""
INSERT INTO deliveries ({DELIVERY})
SELECT id, :id, :digest, :now, :run FROM webhooks
 WHERE id = :webhook AND enabled = :enabled AND generation = :generation AND updated_at_ms = :updated $keep_there
ON CONFLICT DO NOTHING"""
DELIVERIES = f"SELECT {DELIVERY} FROM deliveries WHERE webhook_id = :id ORDER BY n DESC LIMIT :limit"
REFUSALS = f"""
SELECT {REFUSAL} FROM refusals WHERE webhook_id = :id ORDER BY last_at_ms DESC, outcome LIMIT {REASONS_KEPT}"""
ADD_REFUSAL = f"""
INSERT INTO refusals ({REFUSAL})
SELECT id, :outcome, :count, :first_at_ms, :last_at_ms, :delivery, :run_id FROM webhooks
 WHERE id = :webhook_id $keep_there
ON CONFLICT (webhook_id, outcome) DO UPDATE
   SET count = refusals.count + excluded.count, last_at_ms = excluded.last_at_ms, delivery = excluded.delivery,
       run_id = excluded.run_id"""
TRIES_MAX = 100  # each one that fails is a delivery that was forgotten just then


async def get_webhook(readers: Readers, id: str) -> WebhookRow | None:
    return await readers.fetch_one(WebhookRow, WEBHOOK_BY_ID, {"id": id})


async def list_webhooks(readers: Readers, workflow: str | None = None, limit: int = 1_000) -> list[WebhookRow]:
    query = f"SELECT {WEBHOOK} FROM webhooks ORDER BY id LIMIT :limit" if workflow is None else WEBHOOKS_OF
    return await readers.fetch(WebhookRow, query, {"workflow": workflow, "limit": limit})


async def list_deliveries(readers: Readers, webhook_id: str, limit: int = DELIVERIES_KEPT) -> list[DeliveryRow]:
    return await readers.fetch(DeliveryRow, DELIVERIES, {"id": webhook_id, "limit": limit})


async def list_refusals(readers: Readers, webhook_id: str) -> list[RefusalRow]:
    return await readers.fetch(RefusalRow, REFUSALS, {"id": webhook_id})


def put_webhook(tx: Tx, row: WebhookRow) -> WebhookRow:
    """Make it, or change it: see `merged_webhook` for what stays. Returns the row as it is now."""
    merged = merged_webhook(None, row)
    if tx.run(ADD_WEBHOOK, asdict(merged)) == 0:
        merged = merged_webhook(tx.fetch_one(WebhookRow, TAKE_WEBHOOK, {"id": row.id}), row)
        tx.run(PUT_WEBHOOK, asdict(merged))
    return merged


def switch_webhook(tx: Tx, id: str, enabled: bool, now_ms: int) -> WebhookRow | None:
    return tx.fetch_one(WebhookRow, SWITCH_WEBHOOK, {"id": id, "enabled": int(enabled), "now": now_ms})


def rotate_webhook(tx: Tx, id: str, generation: int, now_ms: int) -> WebhookRow | None:
    """Give the secret a new generation. The old one is no longer valid, and digests signed with it are deleted."""
    tx.run(DELETE_DIGESTS, {"id": id})
    return tx.fetch_one(WebhookRow, ROTATE_WEBHOOK, {"id": id, "generation": generation, "now": now_ms})


def delete_webhook(tx: Tx, id: str) -> bool:
    """Delete a webhook with its deliveries and refusals; its runs stay."""
    deleted = tx.run("DELETE FROM webhooks WHERE id = :id", {"id": id}) == 1
    for statement in (DELETE_DIGESTS, DELETE_DELIVERIES, DELETE_REFUSALS):
        tx.run(statement, {"id": id})
    return deleted


def deliver(tx: Tx, webhook: WebhookRow, delivery: DeliveryRow, run: NewRun) -> tuple[DeliveryRow, RunRow | None]:
    """Store the delivery and its run in one transaction. If the delivery is a copy nothing is written: the first
    value is the first delivery, the second None. Raises Fenced, with nothing written, if the webhook differs from
    `webhook` by now (except in its last run)."""
    keep_workflow(tx, run.workflow)
    _check(tx, webhook)
    forget = {"id": delivery.webhook_id, "before": delivery.at_ms - DELIVERY_KEPT_MS, "limit": DELIVERIES_KEPT - 1}
    if lasts(webhook):
        tx.run(KEEP_DIGESTS, forget)
    tx.run(FORGET_DELIVERIES, forget)
    delivery = replace(delivery, run_id=run.id)
    first = _first_delivery(tx, webhook, delivery)
    if first is not None:
        return first, None
    row, _ = create_run(tx, run)
    assert row.id == delivery.run_id, "the run of a delivery has no idempotency key"
    return delivery, row


def _first_delivery(tx: Tx, webhook: WebhookRow, delivery: DeliveryRow) -> DeliveryRow | None:
    """Return the delivery that this is a copy of, or None if this is the first, which is then stored. Raises Fenced."""
    wanted = {"webhook": delivery.webhook_id, "id": delivery.id, "digest": delivery.digest}
    values = {**wanted, "now": delivery.at_ms, "run": delivery.run_id, "enabled": int(webhook.enabled)}
    values |= {"generation": webhook.generation, "updated": webhook.updated_at_ms}
    for _ in range(TRIES_MAX):
        if tx.run(ADD_DELIVERY, values) == 1:
            break
        _check(tx, webhook)
        if found := tx.fetch_one(DeliveryRow, FIND_DELIVERY, wanted):
            return found
    else:
        raise Conflict(f"delivery {delivery.id} of webhook {delivery.webhook_id} could not be stored")
    # Looked at after `deliveries`, which is where digests come from: none is missed on its way.
    wanted["digest"] = (delivery.digest or "")[:DIGEST_CHARS]
    for at_ms, run_id in tx.rows(FIND_DIGEST, wanted):
        tx.run("DELETE FROM deliveries WHERE webhook_id = :webhook AND id = :id", wanted)
        return replace(delivery, at_ms=at_ms, run_id=run_id)
    return None


def add_refusals(tx: Tx, rows: Sequence[RefusalRow]) -> None:
    """Count them to those of the same webhook and reason, as `RefusalRow.after` does; one transaction."""
    for row in rows:
        tx.run(ADD_REFUSAL, asdict(row))


def delete_webhooks_of(tx: Tx, workflow: str) -> int:
    ids = tx.rows("SELECT id FROM webhooks WHERE workflow = :workflow", {"workflow": workflow})
    return sum(delete_webhook(tx, id) for (id,) in ids)


def put_declared_webhooks(tx: Tx, workflow: str, rows: Sequence[WebhookRow]) -> None:
    ids = {row.id for row in rows}
    for (id,) in tx.rows(DECLARED_WEBHOOKS, {"workflow": workflow}):
        if id not in ids:
            delete_webhook(tx, id)
    for row in rows:
        put_webhook(tx, row)


def _check(tx: Tx, webhook: WebhookRow) -> None:
    check_unchanged(webhook, tx.fetch_one(WebhookRow, WEBHOOK_BY_ID, {"id": webhook.id}))
