"""Alerts: one task of the engine that groups new alerts, sends them, and starts error workflows; `engine.alerts`. The
texts are documented in docs/howto/alerts.md.

The causes are in the database already (`kernel.run.alerts`). Here all that is due for one address becomes one message,
and the next one to it is made EVERY_MS later at the earliest: ten thousand failures are a few mails. The run of an
error workflow has the run that failed in its idempotency key, so there is only one, even after several tries."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from compiler.diagnostics import CompileError
from executor.errors import BlockError, Conflict, QueueFull, StoreError, WeftError
from executor.kernel.run.alerts import ERROR_KEY, INSTALLATION, alerts_of_queued
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.topics.alerts import AlertCount, AlertKind, AlertMessage, AlertRow
from executor.kernel.store.topics.outbox import NotificationStatus
from executor.service.notifications.sending import Claim, Sender, post_signed
from executor.service.parts import Parts
from executor.service.topics.runs import Runs

log = logging.getLogger("weft.notifications")

EVERY_MS: Final = 300_000  # between two messages to one address
SENDING_MAX: Final = 8  # at the same time
SHOWN_MAX: Final = 20  # alerts in a message; the others are counted
CHECK_EVERY_MS: Final = 15_000  # for runs that are queued for too long


class Alerts(Sender[AlertMessage]):
    def __init__(self, parts: Parts, runs: Runs, lease_ms: int) -> None:
        failed, delayed = "alerts cannot be sent", "alerts were left for later"
        super().__init__("alerts", parts, lease_ms, parts.hub.alerts, most=SENDING_MAX, failed=failed, delayed=delayed)
        self._runs = runs
        self._settings = parts.services.alerts
        self._checked_ms = 0

    async def _claim(self, now_ms: int, room: int) -> list[AlertMessage]:
        await self._check_queue(now_ms)
        await self._store.group_alerts(now_ms, EVERY_MS)
        return await self._store.claim_alert_messages(now_ms, self._lease_ms, room) if room else []

    async def _next_due_ms(self, now_ms: int) -> int | None:
        due_ms = await self._store.next_alert_ms()
        return None if due_ms is None or due_ms <= now_ms else due_ms  # a due one waits for the message before

    async def _keep(self, message: AlertMessage, until_ms: int, counts: bool) -> bool:
        return await self._store.keep_alert_message(message.id, message.attempts, until_ms, counts)

    async def _check_queue(self, now_ms: int) -> None:
        late_ms = self._settings.queued_ms
        if late_ms is None or 0 <= now_ms - self._checked_ms < CHECK_EVERY_MS:
            return
        self._checked_ms = now_ms
        for run in await self._store.queued_since(now_ms - late_ms):
            alerts = alerts_of_queued(run.id, run.workflow, run.created_at_ms, now_ms, self._settings)
            await self._store.add_alerts(alerts)

    async def _write(
        self, row: AlertMessage, status: NotificationStatus, now_ms: int, due_ms: int | None, error: str | None
    ) -> None:
        await self._store.record_alert_message(row.id, row.attempts, status, now_ms, due_ms, error)

    def _name(self, row: AlertMessage) -> str:
        return f"the error workflow {row.target}" if row.channel == "workflow" else "an alert"

    async def _send(self, claim: Claim[AlertMessage]) -> None:
        if claim.row.channel == "workflow":
            claim.sends = True
            await self._start_error_workflow(claim.row)
        else:
            await self._send_alerts(claim)

    async def _start_error_workflow(self, message: AlertMessage) -> None:
        failed = await self._store.get_run(message.run_id)
        if failed is None:  # deleted meanwhile, with all that was to come of it
            return
        key = f"{ERROR_KEY}{failed.id}"
        if await self._store.runs_by_key(message.target, key, key, 1):
            return  # by a process that ended before it could record it
        try:
            await self._runs.submit(
                message.target, input=error_input(failed, self._parts.services.base_url), idempotency_key=key
            )
        except Conflict:
            return  # started by another process just now, from another version
        except StoreError:
            raise
        except QueueFull as error:
            raise BlockError(error.message, code=error.code, retryable=True) from error
        except (WeftError, CompileError) as error:
            raise BlockError(str(error), code="error_workflow", retryable=False) from error

    async def _send_alerts(self, claim: Claim[AlertMessage]) -> None:
        message = claim.row
        alerts = await self._store.alerts_of(message.id, SHOWN_MAX)
        counts = await self._store.count_alerts_of(message.id)
        if not alerts:  # the runs were deleted meanwhile
            return
        errors: dict[str, Any] = {}
        for alert in alerts:
            run = await self._store.get_run(alert.run_id) if alert.kind == "run.failed" else None
            if run is not None and run.error is not None:
                errors[alert.run_id] = orjson.loads(run.error)
        base_url = self._parts.services.base_url
        claim.sends = True
        if message.channel == "email":
            to = list(self._settings.email) if message.target == INSTALLATION else message.target.split(",")
            subject, text = mail_of(alerts, counts, errors, base_url)
            await self._mail(to, subject, text, message.id, message.created_at_ms, f"alert {message.id}")
            return
        url = (self._settings.webhook or "") if message.target == INSTALLATION else message.target
        body = alert_body(message.id, alerts, counts, errors, base_url)
        await post_signed(self._parts, url, "POST", {}, body, "notifications", f"alert:{message.id}")


# --- texts ---


_SAID: Final[dict[AlertKind, tuple[str, str]]] = {  # for one, for several
    "run.failed": ("run failed", "runs failed"),
    "run.waiting": ("run waits too long", "runs wait too long"),
    "run.queued": ("run is queued too long", "runs are queued too long"),
    "schedule.missed": ("schedule missed its time", "times of schedules were missed"),
}
_MESSAGE_CHARS_MAX: Final = 500


def error_input(run: RunRow, base_url: str) -> dict[str, Any]:
    """Return the input of an error workflow: the same whenever it is made."""
    error = orjson.loads(run.error) if run.error is not None else {}
    return {
        "run": run.id,
        "workflow": run.workflow,
        "version": run.version,
        "failure": {"code": error.get("code"), "message": error.get("message"), "hint": error.get("hint")},
        "node": error.get("block"),
        "url": f"{base_url}/runs/{run.id}",
        "created_at": run.created_at_ms,
        "finished_at": run.finished_at_ms,
    }


def alert_body(
    id: str, alerts: Sequence[AlertRow], counts: Sequence[AlertCount], errors: Mapping[str, Any], base_url: str
) -> dict[str, Any]:
    return {
        "event": "alerts",
        "id": id,
        "count": sum(each.count for each in counts),
        "counts": [{"kind": each.kind, "workflow": each.workflow, "count": each.count} for each in counts],
        "alerts": [_alert(alert, errors.get(alert.run_id), base_url) for alert in alerts],
    }


def mail_of(
    alerts: Sequence[AlertRow], counts: Sequence[AlertCount], errors: Mapping[str, Any], base_url: str
) -> tuple[str, str]:
    total = sum(each.count for each in counts)
    kinds: dict[AlertKind, int] = {}
    for each in counts:
        kinds[each.kind] = kinds.get(each.kind, 0) + each.count
    said = ", ".join(f"{count} {_SAID[kind][count != 1]}" for kind, count in kinds.items())
    names = {each.workflow for each in counts}
    subject = " ".join(f"weft: {said}{f' ({names.pop()})' if len(names) == 1 else ''}".split())[:200]
    parts = [f"{each.workflow}: {each.count} {_SAID[each.kind][each.count != 1]}" for each in counts[:50]]
    lines = ["\n".join(parts)]
    for alert in alerts:
        shown = _alert(alert, errors.get(alert.run_id), base_url)
        at = datetime.fromtimestamp(alert.at_ms / 1000, UTC)
        text = f"{at:%d %b %Y, %H:%M UTC}  {alert.workflow}: {_SAID[alert.kind][0]}"
        if alert.kind == "schedule.missed":
            text += f" ({alert.item})"
        if shown.get("error"):
            where = f" at block {shown['node']}" if shown.get("node") else ""
            text += f"{where}\n  {shown['error']['code']}: {shown['error']['message']}"
        if shown["url"]:
            text += f"\n  {shown['url']}"
        lines.append(text)
    if total > len(alerts):
        lines.append(f"And {total - len(alerts)} more: {base_url}/runs?status=failed")
    return subject, "\n\n".join(lines) + "\n"


def _alert(alert: AlertRow, error: Mapping[str, Any] | None, base_url: str) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "kind": alert.kind,
        "workflow": alert.workflow,
        "run": alert.run_id or None,
        "item": alert.item or None,
        "at": alert.at_ms,
        "url": f"{base_url}/runs/{alert.run_id}" if alert.run_id else None,
    }
    if error is not None:
        message = str(error.get("message") or "")[:_MESSAGE_CHARS_MAX]
        shown |= {"error": {"code": error.get("code"), "message": message}, "node": error.get("block")}
    return shown
