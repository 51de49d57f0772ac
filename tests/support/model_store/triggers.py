"""Schedules and webhooks in the model store."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict, replace

from executor.kernel.store.topics.hooks import HookChange, HookRow
from executor.kernel.store.topics.schedules import (
    FIRES_KEPT,
    UNREAD,
    Fire,
    Fired,
    FireRow,
    Poll,
    ScheduleRow,
    merged_schedule,
    outcome_of,
)
from executor.kernel.store.topics.webhooks import (
    DELIVERIES_KEPT,
    DELIVERY_KEPT_MS,
    DIGEST_CHARS,
    REASONS_KEPT,
    DeliveryRow,
    RefusalRow,
    WebhookRow,
    check_unchanged,
    lasts,
    merged_webhook,
)
from executor.kernel.store.topics.workflows import Declared
from tests.support.model_store.alerts import ModelAlerts

if TYPE_CHECKING:
    from executor.kernel.store.run_rows import NewRun, RunRow


class ModelTriggers(ModelAlerts):
    """What ModelStore can do with schedules and webhooks."""

    _open: dict[str, Any]  # these two are the store's own
    create_run: Callable[[NewRun], Coroutine[Any, Any, tuple[RunRow, bool]]]

    def __init__(self) -> None:
        super().__init__()
        self._schedules: dict[str, ScheduleRow] = {}
        self._fires: dict[str, list[FireRow]] = {}  # oldest first, as are deliveries
        self._webhooks: dict[str, WebhookRow] = {}
        self._hooks: dict[str, HookRow] = {}
        self._deliveries: dict[str, list[DeliveryRow]] = {}
        self._old_deliveries: dict[str, dict[str, DeliveryRow]] = {}  # by webhook and the beginning of the digest
        self._refusals: dict[str, dict[str, RefusalRow]] = {}

    async def put_schedule(self, row: ScheduleRow) -> ScheduleRow:
        merged = self._schedules[row.id] = merged_schedule(self._schedules.get(row.id), row)
        return merged

    async def get_schedule(self, id: str) -> ScheduleRow | None:
        return self._schedules.get(id)

    async def list_schedules(self, workflow: str | None = None, limit: int = 1_000) -> list[ScheduleRow]:
        found = [row for row in self._schedules.values() if workflow in (None, row.workflow)]
        return sorted(found, key=lambda row: row.id)[:limit]

    async def switch_schedule(
        self, id: str, enabled: bool, next_run_at_ms: int | None, now_ms: int, times: tuple[str, str]
    ) -> ScheduleRow | None:
        row = self._schedules.get(id)
        if row is None or (enabled and (row.cron, row.tz) != times):
            return row
        next_ms = next_run_at_ms if row.next_run_at_ms is None else row.next_run_at_ms
        row = self._schedules[id] = replace(
            row,
            enabled=enabled,
            next_run_at_ms=next_ms if enabled else None,
            queued_at_ms=row.queued_at_ms if enabled else None,
            poll=UNREAD if row.poll is not None and not row.enabled else row.poll,
            pushed_ms=row.pushed_ms if enabled and row.next_run_at_ms is not None else None,
            updated_at_ms=now_ms,
        )
        return row

    async def delete_schedule(self, id: str) -> bool:
        return self._delete_schedule(id)

    def _delete_schedule(self, id: str) -> bool:
        self._fires.pop(id, None)
        return self._schedules.pop(id, None) is not None

    async def due_schedules(self, now_ms: int, limit: int) -> list[ScheduleRow]:
        found = []
        for row in self._schedules.values():
            due = row.next_run_at_ms is not None and row.next_run_at_ms <= now_ms
            if due or (row.queued_at_ms is not None and not self._has_open_run(row.id)):
                found.append(row)
        return sorted(found, key=lambda row: (_first_ms(row), row.id))[:limit]

    async def next_schedule_ms(self) -> tuple[int | None, bool]:
        rows = self._schedules.values()
        next_ms = min((row.next_run_at_ms for row in rows if row.next_run_at_ms is not None), default=None)
        return next_ms, any(row.queued_at_ms is not None for row in rows)

    async def fire(self, fire: Fire) -> Fired | None:
        id = fire.schedule_id
        row = self._schedules.get(id)
        if row is None:
            return None
        is_open, is_queued = self._has_open_run(id), row.queued_at_ms is not None
        if fire.expects == "due":
            if not row.enabled or row.next_run_at_ms != fire.expected_ms:
                return None
            row = replace(row, next_run_at_ms=fire.next_run_at_ms)
        elif fire.expects == "queued":
            if row.queued_at_ms != fire.expected_ms or is_open:
                return None
            row = replace(row, queued_at_ms=None)
        outcome = outcome_of(fire, is_open, is_queued)
        run = None
        if outcome == "started":
            assert fire.run is not None
            run, _ = await self.create_run(fire.run)
            row = replace(row, last_run_at_ms=fire.now_ms, last_run_id=run.id, error=None)
        elif outcome == "queued":
            row = replace(row, queued_at_ms=fire.due_ms)
        elif outcome == "failed":
            row = replace(row, error=fire.error)
        self._schedules[id] = row
        fires = self._fires.setdefault(id, [])
        fires.append(FireRow(fire.due_ms, fire.now_ms, outcome, run.id if run else None, fire.error))
        self._fires[id] = [*(old for old in fires[:-FIRES_KEPT] if old.run_id in self._open), *fires[-FIRES_KEPT:]]
        await self.add_alerts(fire.alerts)
        return Fired(outcome, run)

    async def claim_poll(self, id: str, expected_ms: int, until_ms: int) -> bool:
        row = self._schedules.get(id)
        if row is None or not row.enabled or row.poll is None or row.next_run_at_ms != expected_ms:
            return False
        self._schedules[id] = replace(row, next_run_at_ms=until_ms, pushed_ms=0)
        return True

    async def record_poll(self, poll: Poll) -> list[RunRow] | None:
        id = poll.schedule_id
        row, next_ms = self._schedules.get(id), poll.next_run_at_ms
        if not await self.claim_poll(id, poll.expected_ms, next_ms) or row is None:
            return None
        next_ms = min(next_ms, poll.now_ms) if row.pushed_ms else next_ms
        state = row.poll if poll.state is None else poll.state
        row = replace(row, poll=state, error=poll.error, next_run_at_ms=next_ms, pushed_ms=None)
        fires, runs = self._fires.setdefault(id, []), []
        for new in poll.runs:
            run, created = await self.create_run(new)
            if created:
                runs.append(run)
                fires.append(FireRow(poll.now_ms, poll.now_ms, "started", run.id))
        if runs:
            row = replace(row, last_run_at_ms=poll.now_ms, last_run_id=runs[-1].id)
        fires += (FireRow(poll.now_ms, poll.now_ms, "failed", None, error) for error in poll.failures)
        self._schedules[id] = row
        self._fires[id] = [*(old for old in fires[:-FIRES_KEPT] if old.run_id in self._open), *fires[-FIRES_KEPT:]]
        await self.add_alerts(poll.alerts)
        return runs

    def _hook(self, row: HookRow) -> HookRow:
        trigger = self._schedules.get(row.schedule_id)
        return replace(row, wanted=trigger is not None and trigger.enabled and trigger.push == row.source)

    async def get_hook(self, id: str) -> HookRow | None:
        return self._hook(self._hooks[id]) if id in self._hooks else None

    async def list_hooks(self, schedule_id: str | None = None) -> list[HookRow]:
        rows = [self._hook(row) for row in self._hooks.values() if schedule_id in (None, row.schedule_id)]
        return sorted(rows, key=lambda row: row.id)

    async def due_hooks(self, now_ms: int, place: str, limit: int) -> list[HookRow]:
        rows = [row for row in await self.list_hooks() if row.until_ms <= now_ms]
        elsewhere = [row.id for row in rows if place and row.place not in (None, place)]
        due = [row for row in rows if row.renew_at_ms <= now_ms or row.id in elsewhere or not row.wanted]
        return sorted(due, key=lambda row: (row.until_ms, row.id))[:limit]

    async def missing_hooks(self, limit: int) -> list[tuple[str, str, bytes]]:
        known = {(row.schedule_id, row.source) for row in self._hooks.values()}
        rows = [row for row in sorted(self._schedules.values(), key=lambda row: row.id) if row.enabled]
        found = [(row.id, row.workflow, row.push) for row in rows if row.push is not None]
        return [one for one in found if (one[0], one[2]) not in known][:limit]

    async def add_hook(self, id: str, schedule_id: str, workflow: str, source: bytes, now_ms: int) -> bool:
        is_new = not any((row.schedule_id, row.source) == (schedule_id, source) for row in self._hooks.values())
        if is_new:
            self._hooks[id] = HookRow(id, schedule_id, workflow, source, now_ms)
        return is_new

    async def claim_hook(self, id: str, expected_ms: int, until_ms: int, place: str) -> bool:
        row = self._hooks.get(id)
        if row is None or row.until_ms != expected_ms:
            return False
        self._hooks[id] = replace(row, until_ms=until_ms, place=row.place or place)
        return True

    async def record_hook(self, change: HookChange) -> bool:
        row = self._hooks.get(change.id)
        if row is None or row.until_ms != change.expected_ms:
            return False
        if change.gone:
            del self._hooks[change.id]
            return True
        values = asdict(change)
        del values["expected_ms"], values["gone"]
        self._hooks[change.id] = replace(row, **{**values, "secret": change.secret or row.secret})
        return True

    async def keep_hook_secret(self, id: str, secret: bytes, now_ms: int) -> bool:
        row = self._hooks.get(id)
        if row is None or row.until_ms <= now_ms:
            return False
        self._hooks[id] = replace(row, secret=secret)
        return True

    async def push_hook(self, id: str, now_ms: int) -> bool:
        row = await self.get_hook(id)
        if row is None or not row.wanted:
            return False
        self._hooks[id] = replace(self._hooks[id], delivered_at_ms=now_ms)
        return self._poll_soon(row.schedule_id, now_ms) == 1

    async def poll_pushed(self, now_ms: int) -> int:
        return sum(self._poll_soon(id, now_ms) for id in list(self._schedules))

    def _poll_soon(self, id: str, now_ms: int) -> int:
        row = self._schedules[id]
        if not row.enabled or row.next_run_at_ms is None or row.push is None:
            return 0
        if row.pushed_ms is None:
            row = replace(row, next_run_at_ms=min(row.next_run_at_ms, now_ms))
        else:
            row = replace(row, pushed_ms=now_ms)
        self._schedules[id] = row
        return 1

    def _has_open_run(self, schedule_id: str) -> bool:
        return any(fire.run_id in self._open for fire in self._fires.get(schedule_id, ()))

    async def list_fires(self, schedule_id: str, limit: int = FIRES_KEPT) -> list[FireRow]:
        return self._fires.get(schedule_id, [])[::-1][:limit]

    async def put_webhook(self, row: WebhookRow) -> WebhookRow:
        merged = self._webhooks[row.id] = merged_webhook(self._webhooks.get(row.id), row)
        return merged

    async def get_webhook(self, id: str) -> WebhookRow | None:
        return self._webhooks.get(id)

    async def list_webhooks(self, workflow: str | None = None, limit: int = 1_000) -> list[WebhookRow]:
        found = [row for row in self._webhooks.values() if workflow in (None, row.workflow)]
        return sorted(found, key=lambda row: row.id)[:limit]

    async def switch_webhook(self, id: str, enabled: bool, now_ms: int) -> WebhookRow | None:
        row = self._webhooks.get(id)
        if row is not None:
            row = self._webhooks[id] = replace(row, enabled=enabled, updated_at_ms=now_ms)
        return row

    async def rotate_webhook(self, id: str, generation: int, now_ms: int) -> WebhookRow | None:
        row = self._webhooks.get(id)
        if row is not None:
            self._old_deliveries.pop(id, None)
            row = self._webhooks[id] = replace(row, generation=generation, updated_at_ms=now_ms)
        return row

    async def delete_webhook(self, id: str) -> bool:
        return self._delete_webhook(id)

    def _delete_webhook(self, id: str) -> bool:
        self._deliveries.pop(id, None)
        self._old_deliveries.pop(id, None)
        self._refusals.pop(id, None)
        return self._webhooks.pop(id, None) is not None

    async def deliver(
        self, webhook: WebhookRow, delivery: DeliveryRow, run: NewRun
    ) -> tuple[DeliveryRow, RunRow | None]:
        check_unchanged(webhook, self._webhooks.get(webhook.id))
        all_known = self._deliveries.setdefault(delivery.webhook_id, [])
        before_ms = delivery.at_ms - DELIVERY_KEPT_MS
        young = [old for old in all_known[:-DELIVERIES_KEPT] if old.at_ms > before_ms]
        known = self._deliveries[delivery.webhook_id] = [*young, *all_known[-DELIVERIES_KEPT:]]
        digests = self._old_deliveries.setdefault(delivery.webhook_id, {})
        if lasts(webhook):
            for old in all_known[:-DELIVERIES_KEPT]:
                if old.digest is not None and old.at_ms <= before_ms:
                    digests.setdefault(old.digest[:DIGEST_CHARS], old)
        for old in known:
            if old.id == delivery.id or (old.digest is not None and old.digest == delivery.digest):
                return old, None
        if delivery.digest is not None and delivery.digest[:DIGEST_CHARS] in digests:
            old = digests[delivery.digest[:DIGEST_CHARS]]
            return replace(delivery, at_ms=old.at_ms, run_id=old.run_id), None
        row, _ = await self.create_run(run)
        delivery = replace(delivery, run_id=row.id)
        known.append(delivery)
        hook = self._webhooks[webhook.id]
        self._webhooks[hook.id] = replace(hook, last_run_at_ms=delivery.at_ms, last_run_id=row.id)
        return delivery, row

    async def list_deliveries(self, webhook_id: str, limit: int = DELIVERIES_KEPT) -> list[DeliveryRow]:
        return self._deliveries.get(webhook_id, [])[::-1][:limit]

    async def add_refusals(self, rows: Sequence[RefusalRow]) -> None:
        for row in rows:
            if row.webhook_id in self._webhooks:
                reasons = self._refusals.setdefault(row.webhook_id, {})
                reasons[row.outcome] = row.after(reasons.get(row.outcome))

    async def list_refusals(self, webhook_id: str) -> list[RefusalRow]:
        found = self._refusals.get(webhook_id, {}).values()
        return sorted(found, key=lambda row: (-row.last_at_ms, row.outcome))[:REASONS_KEPT]

    def _put_declared(self, workflow: str, declared: Declared) -> None:
        """Part of making a version active: its triggers take the place of those of the version before."""
        schedules, webhooks = {row.id for row in declared.schedules}, {row.id for row in declared.webhooks}
        for schedule in list(self._schedules.values()):
            if (schedule.workflow, schedule.origin) == (workflow, "document") and schedule.id not in schedules:
                self._delete_schedule(schedule.id)
        for hook in list(self._webhooks.values()):
            if (hook.workflow, hook.origin) == (workflow, "document") and hook.id not in webhooks:
                self._delete_webhook(hook.id)
        for new in declared.schedules:
            self._schedules[new.id] = merged_schedule(self._schedules.get(new.id), new)
        for new_hook in declared.webhooks:
            self._webhooks[new_hook.id] = merged_webhook(self._webhooks.get(new_hook.id), new_hook)


def _first_ms(row: ScheduleRow) -> int:
    return min(ms for ms in (row.next_run_at_ms, row.queued_at_ms) if ms is not None)
