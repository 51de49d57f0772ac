"""Schedules and webhooks in SQLite. The contract is in `executor.store.contract`."""

# ruff: noqa: S608  (the pieces put together here are constants of this file, never values)

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from executor.store.rows import (
    DELIVERIES_KEPT,
    DELIVERY_KEPT_MS,
    DIGEST_CHARS,
    FIRES_KEPT,
    REASONS_KEPT,
    Declared,
    DeliveryRow,
    Fire,
    Fired,
    FireRow,
    RefusalRow,
    ScheduleRow,
    WebhookRow,
)
from executor.store.rules import check_unchanged, lasts, merged_schedule, merged_webhook, outcome_of
from executor.store.sqlite import statements as sql
from executor.store.sqlite import writes
from executor.store.sqlite.connection import Tx
from executor.store.sqlite.readers import Readers
from executor.store.sqlite.writer import Writer

if TYPE_CHECKING:
    from executor.store.rows import NewRun, RunRow

SCHEDULE = (
    "id, workflow, version, trigger_block, cron, tz, input, enabled, declared, overlap, catch_up, origin,"
    " next_run_at_ms, created_at_ms, updated_at_ms, queued_at_ms, last_run_at_ms, last_run_id, error"
)
FIRE = "due_ms, at_ms, outcome, run_id, error"
WEBHOOK = (
    "id, workflow, version, trigger_block, auth, secret_env, generation, respond, timeout_ms, headers, enabled,"
    " declared, origin, created_at_ms, updated_at_ms, last_run_at_ms, last_run_id"
)
DELIVERY = "webhook_id, id, digest, at_ms, run_id"
REFUSAL = "webhook_id, outcome, count, first_at_ms, last_at_ms, delivery, run_id"

# --- schedules

PUT_SCHEDULE = f"INSERT OR REPLACE INTO schedules ({SCHEDULE}) VALUES ({', '.join('?' * 19)})"
SCHEDULE_BY_ID = f"SELECT {SCHEDULE} FROM schedules WHERE id = ?"
SCHEDULES = f"SELECT {SCHEDULE} FROM schedules ORDER BY id LIMIT ?"
SCHEDULES_OF = f"SELECT {SCHEDULE} FROM schedules WHERE workflow = ? ORDER BY id LIMIT ?"
DECLARED_SCHEDULES = "SELECT id FROM schedules WHERE workflow = ? AND origin = 'document'"
DELETE_SCHEDULE = "DELETE FROM schedules WHERE id = ?"
DELETE_FIRES = "DELETE FROM fires WHERE schedule_id = ?"
SWITCH_SCHEDULE = """
UPDATE schedules SET enabled = :enabled, updated_at_ms = :now,
       next_run_at_ms = CASE WHEN :enabled THEN coalesce(next_run_at_ms, :next_run_at) END,
       queued_at_ms = CASE WHEN :enabled THEN queued_at_ms END
 WHERE id = :id AND (NOT :enabled OR (cron = :cron AND tz = :tz))"""
HAS_OPEN_RUN = f"""
EXISTS (SELECT 1 FROM fires AS f JOIN runs AS r ON r.id = f.run_id
         WHERE f.schedule_id = schedules.id AND r.{sql.OPEN})"""
DUE_SCHEDULES = f"""
SELECT * FROM (
SELECT {SCHEDULE} FROM schedules WHERE next_run_at_ms <= ?
UNION
SELECT {SCHEDULE} FROM schedules WHERE queued_at_ms IS NOT NULL AND NOT {HAS_OPEN_RUN})
 ORDER BY min(coalesce(next_run_at_ms, queued_at_ms), coalesce(queued_at_ms, next_run_at_ms)), id LIMIT ?"""
NEXT_SCHEDULE = """
SELECT (SELECT next_run_at_ms FROM schedules WHERE next_run_at_ms IS NOT NULL ORDER BY next_run_at_ms LIMIT 1),
       EXISTS (SELECT 1 FROM schedules WHERE queued_at_ms IS NOT NULL)"""

# --- one moment of a schedule. The first two are the fence: no row, and another process has dealt with it.

TAKE_DUE = """
UPDATE schedules SET next_run_at_ms = :next_run_at
 WHERE id = :id AND enabled AND next_run_at_ms = :expected RETURNING queued_at_ms"""
TAKE_QUEUED = f"""
UPDATE schedules SET queued_at_ms = NULL
 WHERE id = :id AND queued_at_ms = :expected AND NOT {HAS_OPEN_RUN} RETURNING queued_at_ms"""
TAKE_ANY = "UPDATE schedules SET id = id WHERE id = :id RETURNING queued_at_ms"
IS_OPEN = f"SELECT {HAS_OPEN_RUN} FROM schedules WHERE id = ?"
NOTE_RUN = "UPDATE schedules SET last_run_at_ms = ?, last_run_id = ?, error = NULL WHERE id = ?"
NOTE_QUEUED = "UPDATE schedules SET queued_at_ms = ? WHERE id = ?"
NOTE_ERROR = "UPDATE schedules SET error = ? WHERE id = ?"
ADD_FIRE = f"INSERT INTO fires (schedule_id, {FIRE}) VALUES (?, ?, ?, ?, ?, ?)"
FORGET_FIRES = f"""
DELETE FROM fires
 WHERE schedule_id = :id
   AND n < (SELECT n FROM fires WHERE schedule_id = :id ORDER BY n DESC LIMIT 1 OFFSET :kept)
   AND NOT EXISTS (SELECT 1 FROM runs AS r WHERE r.id = fires.run_id AND r.{sql.OPEN})"""
FIRES = f"SELECT {FIRE} FROM fires WHERE schedule_id = ? ORDER BY n DESC LIMIT ?"

# --- webhooks

PUT_WEBHOOK = f"INSERT OR REPLACE INTO webhooks ({WEBHOOK}) VALUES ({', '.join('?' * 17)})"
WEBHOOK_BY_ID = f"SELECT {WEBHOOK} FROM webhooks WHERE id = ?"
WEBHOOKS = f"SELECT {WEBHOOK} FROM webhooks ORDER BY id LIMIT ?"
WEBHOOKS_OF = f"SELECT {WEBHOOK} FROM webhooks WHERE workflow = ? ORDER BY id LIMIT ?"
DECLARED_WEBHOOKS = "SELECT id FROM webhooks WHERE workflow = ? AND origin = 'document'"
DELETE_WEBHOOK = "DELETE FROM webhooks WHERE id = ?"
DELETE_REFUSALS = "DELETE FROM refusals WHERE webhook_id = ?"
DELETE_DELIVERIES = "DELETE FROM deliveries WHERE webhook_id = ?"
SWITCH_WEBHOOK = "UPDATE webhooks SET enabled = ?, updated_at_ms = ? WHERE id = ?"
ROTATE_WEBHOOK = "UPDATE webhooks SET generation = ?, updated_at_ms = ? WHERE id = ?"
FORGOTTEN = """
 WHERE webhook_id = :id AND at_ms <= :before
   AND n < (SELECT n FROM deliveries WHERE webhook_id = :id ORDER BY n DESC LIMIT 1 OFFSET :kept)"""
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
REFUSALS = f"SELECT {REFUSAL} FROM refusals WHERE webhook_id = ? ORDER BY last_at_ms DESC, outcome LIMIT {REASONS_KEPT}"
ADD_REFUSAL = f"""
INSERT INTO refusals ({REFUSAL})
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE EXISTS (SELECT 1 FROM webhooks WHERE id = ?1)
ON CONFLICT (webhook_id, outcome) DO UPDATE
   SET count = count + excluded.count, last_at_ms = excluded.last_at_ms, delivery = excluded.delivery,
       run_id = excluded.run_id"""
DELIVERIES = f"SELECT {DELIVERY} FROM deliveries WHERE webhook_id = ? ORDER BY n DESC LIMIT ?"


class SQLiteTriggers:
    """What SQLiteStore can do with schedules and webhooks."""

    _writer: Writer
    _readers: Readers

    async def put_schedule(self, row: ScheduleRow) -> ScheduleRow:
        return await self._writer.submit(_put_schedule, row)

    async def get_schedule(self, id: str) -> ScheduleRow | None:
        row = await self._readers.one(SCHEDULE_BY_ID, (id,))
        return None if row is None else _schedule(row)

    async def list_schedules(self, workflow: str | None = None, limit: int = 1_000) -> list[ScheduleRow]:
        if workflow is None:
            return [_schedule(row) for row in await self._readers.all(SCHEDULES, (limit,))]
        return [_schedule(row) for row in await self._readers.all(SCHEDULES_OF, (workflow, limit))]

    async def switch_schedule(
        self, id: str, enabled: bool, next_run_at_ms: int | None, now_ms: int, times: tuple[str, str]
    ) -> ScheduleRow | None:
        return await self._writer.submit(_switch_schedule, id, enabled, next_run_at_ms, now_ms, times)

    async def delete_schedule(self, id: str) -> bool:
        return await self._writer.submit(delete_schedule, id)

    async def due_schedules(self, now_ms: int, limit: int) -> list[ScheduleRow]:
        return [_schedule(row) for row in await self._readers.all(DUE_SCHEDULES, (now_ms, limit))]

    async def next_schedule_ms(self) -> tuple[int | None, bool]:
        row = await self._readers.one(NEXT_SCHEDULE)
        assert row is not None, "a SELECT without FROM has one row"
        return row[0], bool(row[1])

    async def fire(self, fire: Fire) -> Fired | None:
        return await self._writer.submit(_fire, fire)

    async def list_fires(self, schedule_id: str, limit: int = FIRES_KEPT) -> list[FireRow]:
        return [FireRow(*row) for row in await self._readers.all(FIRES, (schedule_id, limit))]

    async def put_webhook(self, row: WebhookRow) -> WebhookRow:
        return await self._writer.submit(_put_webhook, row)

    async def get_webhook(self, id: str) -> WebhookRow | None:
        row = await self._readers.one(WEBHOOK_BY_ID, (id,))
        return None if row is None else _webhook(row)

    async def list_webhooks(self, workflow: str | None = None, limit: int = 1_000) -> list[WebhookRow]:
        if workflow is None:
            return [_webhook(row) for row in await self._readers.all(WEBHOOKS, (limit,))]
        return [_webhook(row) for row in await self._readers.all(WEBHOOKS_OF, (workflow, limit))]

    async def switch_webhook(self, id: str, enabled: bool, now_ms: int) -> WebhookRow | None:
        return await self._writer.submit(_change_webhook, SWITCH_WEBHOOK, (enabled, now_ms, id))

    async def rotate_webhook(self, id: str, generation: int, now_ms: int) -> WebhookRow | None:
        return await self._writer.submit(_rotate_webhook, id, generation, now_ms)

    async def delete_webhook(self, id: str) -> bool:
        return await self._writer.submit(delete_webhook, id)

    async def deliver(
        self, webhook: WebhookRow, delivery: DeliveryRow, run: NewRun
    ) -> tuple[DeliveryRow, RunRow | None]:
        return await self._writer.submit(_deliver, webhook, delivery, run)

    async def list_deliveries(self, webhook_id: str, limit: int = DELIVERIES_KEPT) -> list[DeliveryRow]:
        return [DeliveryRow(*row) for row in await self._readers.all(DELIVERIES, (webhook_id, limit))]

    async def add_refusals(self, rows: Sequence[RefusalRow]) -> None:
        await self._writer.submit(_add_refusals, tuple(rows))

    async def list_refusals(self, webhook_id: str) -> list[RefusalRow]:
        return [RefusalRow(*row) for row in await self._readers.all(REFUSALS, (webhook_id,))]


def put_declared(tx: Tx, workflow: str, declared: Declared) -> None:
    """Part of making a version active: its triggers take the place of those of the version before."""
    schedules = {row.id for row in declared.schedules}
    for (id,) in tx.db.execute(DECLARED_SCHEDULES, (workflow,)).fetchall():
        if id not in schedules:
            delete_schedule(tx, id)
    for schedule in declared.schedules:
        _put_schedule(tx, schedule)
    webhooks = {row.id for row in declared.webhooks}
    for (id,) in tx.db.execute(DECLARED_WEBHOOKS, (workflow,)).fetchall():
        if id not in webhooks:
            delete_webhook(tx, id)
    for webhook in declared.webhooks:
        _put_webhook(tx, webhook)


def _put_schedule(tx: Tx, row: ScheduleRow) -> ScheduleRow:
    merged = merged_schedule(_find_schedule(tx, row.id), row)
    tx.db.execute(PUT_SCHEDULE, msgspec.structs.astuple(merged))
    return merged


def _switch_schedule(
    tx: Tx, id: str, enabled: bool, next_run_at_ms: int | None, now_ms: int, times: tuple[str, str]
) -> ScheduleRow | None:
    change = {"id": id, "enabled": enabled, "next_run_at": next_run_at_ms, "now": now_ms}
    tx.db.execute(SWITCH_SCHEDULE, {**change, "cron": times[0], "tz": times[1]})
    return _find_schedule(tx, id)


def delete_schedule(tx: Tx, id: str) -> bool:
    tx.db.execute(DELETE_FIRES, (id,))
    return tx.db.execute(DELETE_SCHEDULE, (id,)).rowcount == 1


def _fire(tx: Tx, fire: Fire) -> Fired | None:
    take = {"due": TAKE_DUE, "queued": TAKE_QUEUED, None: TAKE_ANY}[fire.expects]
    values = {"id": fire.schedule_id, "expected": fire.expected_ms, "next_run_at": fire.next_run_at_ms}
    taken = tx.db.execute(take, values).fetchall()
    if not taken:
        return None
    (is_open,) = tx.db.execute(IS_OPEN, (fire.schedule_id,)).fetchone()
    outcome = outcome_of(fire, bool(is_open), taken[0][0] is not None)
    run = None
    if outcome == "started":
        assert fire.run is not None
        run, _ = writes.create_run(tx, fire.run)
        tx.db.execute(NOTE_RUN, (fire.now_ms, run.id, fire.schedule_id))
    elif outcome == "queued":
        tx.db.execute(NOTE_QUEUED, (fire.due_ms, fire.schedule_id))
    elif outcome == "failed":
        tx.db.execute(NOTE_ERROR, (fire.error, fire.schedule_id))
    noted = (fire.schedule_id, fire.due_ms, fire.now_ms, outcome, run.id if run else None, fire.error)
    tx.db.execute(ADD_FIRE, noted)
    tx.db.execute(FORGET_FIRES, {"id": fire.schedule_id, "kept": FIRES_KEPT - 1})
    return Fired(outcome, run)


def _put_webhook(tx: Tx, row: WebhookRow) -> WebhookRow:
    merged = merged_webhook(_find_webhook(tx, row.id), row)
    tx.db.execute(PUT_WEBHOOK, msgspec.structs.astuple(merged))
    return merged


def _change_webhook(tx: Tx, statement: str, values: tuple[Any, ...]) -> WebhookRow | None:
    """The id comes last in `values`."""
    tx.db.execute(statement, values)
    return _find_webhook(tx, values[-1])


def _rotate_webhook(tx: Tx, id: str, generation: int, now_ms: int) -> WebhookRow | None:
    tx.db.execute(DELETE_DIGESTS, (id,))
    return _change_webhook(tx, ROTATE_WEBHOOK, (generation, now_ms, id))


def delete_webhook(tx: Tx, id: str) -> bool:
    tx.db.execute(DELETE_DIGESTS, (id,))
    tx.db.execute(DELETE_DELIVERIES, (id,))
    tx.db.execute(DELETE_REFUSALS, (id,))
    return tx.db.execute(DELETE_WEBHOOK, (id,)).rowcount == 1


def _deliver(tx: Tx, webhook: WebhookRow, delivery: DeliveryRow, run: NewRun) -> tuple[DeliveryRow, RunRow | None]:
    check_unchanged(webhook, _find_webhook(tx, webhook.id))
    forget = {"id": delivery.webhook_id, "before": delivery.at_ms - DELIVERY_KEPT_MS, "kept": DELIVERIES_KEPT - 1}
    if lasts(webhook):
        tx.db.execute(KEEP_DIGESTS, forget)
    tx.db.execute(FORGET_DELIVERIES, forget)
    wanted = {"webhook": delivery.webhook_id, "id": delivery.id, "digest": delivery.digest}
    found = tx.db.execute(FIND_DELIVERY, wanted).fetchall()
    if found:
        return DeliveryRow(*found[0]), None
    for at_ms, run_id in tx.db.execute(FIND_DIGEST, (webhook.id, (delivery.digest or "")[:DIGEST_CHARS])).fetchall():
        return replace(delivery, at_ms=at_ms, run_id=run_id), None
    row, _ = writes.create_run(tx, run)
    delivery = replace(delivery, run_id=row.id)
    tx.db.execute(ADD_DELIVERY, msgspec.structs.astuple(delivery))
    tx.db.execute(NOTE_DELIVERY, (delivery.at_ms, row.id, delivery.webhook_id))
    return delivery, row


def _add_refusals(tx: Tx, rows: tuple[RefusalRow, ...]) -> None:
    for row in rows:
        tx.db.execute(ADD_REFUSAL, msgspec.structs.astuple(row))


def _find_schedule(tx: Tx, id: str) -> ScheduleRow | None:
    found = tx.db.execute(SCHEDULE_BY_ID, (id,)).fetchall()
    return _schedule(found[0]) if found else None


def _find_webhook(tx: Tx, id: str) -> WebhookRow | None:
    found = tx.db.execute(WEBHOOK_BY_ID, (id,)).fetchall()
    return _webhook(found[0]) if found else None


def _schedule(row: tuple[Any, ...]) -> ScheduleRow:
    read = ScheduleRow(*row)
    return replace(read, enabled=bool(read.enabled), declared=None if read.declared is None else bool(read.declared))


def _webhook(row: tuple[Any, ...]) -> WebhookRow:
    read = WebhookRow(*row)
    return replace(read, enabled=bool(read.enabled), declared=None if read.declared is None else bool(read.declared))
