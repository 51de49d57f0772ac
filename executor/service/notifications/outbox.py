"""The outbox: one task of the engine that claims due messages about waits and sends them; `engine.notifications`.

The append that opens the wait writes a row for each message (`kernel.run.recorder`), sealed so that no secret is in the
database (`kernel.values.redact`). Its text is made when it is sent, because the link is a credential.

At least once: a process that dies between sending and recording leaves the message to the next one, with the same
Message-ID or Idempotency-Key. No run waits for a message, and one that cannot be sent fails nothing: its error is shown
with its wait."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from executor.blocks.http.binding import RulesOf
from executor.errors import BlockError, NotFound, StoreError
from executor.kernel.process.repeated import OUTAGE
from executor.kernel.run.links import Signed
from executor.kernel.store.topics.outbox import JOB_CHANNEL, NotificationRow, NotificationStatus
from executor.kernel.values.payload import render
from executor.kernel.values.seal import sealed_names, unseal
from executor.service.notifications.jobs import KubernetesJobs
from executor.service.notifications.sending import OVER, Claim, Sender, post_signed
from executor.service.parts import Parts
from executor.service.topics.signals import Callbacks
from executor.service.topics.waits import Waits
from executor.service.views import WaitView

log = logging.getLogger("weft.notifications")

SENDING_MAX: Final = 16  # at the same time


class Notifications(Sender[NotificationRow]):
    def __init__(self, parts: Parts, waits: Waits, lease_ms: int) -> None:
        super().__init__(
            "notifications",
            parts,
            lease_ms,
            parts.hub.messages,
            most=SENDING_MAX,
            failed="the outbox cannot be read",
            delayed="messages about waits were left for later",
        )
        self._waits = waits
        self._jobs = KubernetesJobs(waits, Callbacks(parts, waits))

    async def _claim(self, now_ms: int, room: int) -> list[NotificationRow]:
        return await self._store.claim_notifications(now_ms, self._lease_ms, room) if room else []

    async def _next_due_ms(self, now_ms: int) -> int | None:
        return await self._store.next_notification_ms()

    async def _keep(self, row: NotificationRow, until_ms: int, counts: bool) -> bool:
        return await self._store.keep_notification(row.run_id, row.wait_id, row.n, row.attempts, until_ms, counts)

    async def _write(
        self, row: NotificationRow, status: NotificationStatus, now_ms: int, due_ms: int | None, error: str | None
    ) -> None:
        await self._store.record_notification(
            row.run_id, row.wait_id, row.n, row.attempts, status, now_ms, due_ms, error
        )

    def _name(self, row: NotificationRow) -> str:
        return f"a message about {row.wait_id} of run {row.run_id}"

    async def _try(self, claim: Claim[NotificationRow]) -> None:
        if claim.row.channel != JOB_CHANNEL:
            return await super()._try(claim)
        try:
            target, _ = await self._opened(claim.row)
            claim.sends = True
            status, after_ms, problem = await self._jobs.attend(claim.row, target)
            await self._record(claim, status, after_ms, problem and self._shown(problem))
        except StoreError as failure:
            OUTAGE.log(log, failure, self._delayed)

    async def _send(self, claim: Claim[NotificationRow]) -> None:
        row = claim.row
        try:
            wait = await self._waits.get(row.run_id, row.wait_id)
        except NotFound:  # its run was deleted meanwhile
            raise OVER from None
        reminder = row.created_at_ms > wait.opened_at_ms
        expired = wait.expires_at_ms is not None and self._clock.now_ms() >= wait.expires_at_ms
        if wait.status != "pending" or (reminder and expired):  # its run may not have closed it yet
            raise OVER
        target, rules = await self._opened(row)
        claim.sends = True
        with self._parts.vault.bound(rules):
            await self._send_to(row, wait, target, reminder)

    async def _opened(self, row: NotificationRow) -> tuple[dict[str, Any], RulesOf]:
        vault = self._parts.vault
        names = sealed_names(row.content)
        rules = await vault.open(names) if names else {}
        return unseal(row.content, vault.values), rules

    async def _send_to(self, row: NotificationRow, wait: WaitView, target: dict[str, Any], reminder: bool) -> None:
        server = self._parts.services.notify
        match row.channel:
            case "email":
                to = list(server.email) if target.get("server") else target["to"]
                key = f"{row.run_id}:{row.wait_id}:{row.n}"
                about = f"wait {row.wait_id}"
                subject = mail_subject(wait, reminder)
                await self._mail(to, subject, mail_body(wait), key, row.created_at_ms, about)
            case "webhook":
                url = (server.webhook or "") if target.get("server") else target["url"]
                event = "wait.reminder" if reminder else "wait.opened"
                await self._request(row, url, "POST", {}, webhook_body(wait, event), ":reminder" * reminder)
            case "request":
                body = request_body(wait, target.get("body"))
                await self._request(row, target["url"], target["method"], target["headers"], body)
            case other:
                raise BlockError(f"there is no channel {other!r}", retryable=False)

    async def _request(
        self,
        row: NotificationRow,
        url: str,
        method: str,
        headers: Mapping[str, str],
        body: dict[str, Any],
        suffix: str = "",
    ) -> None:
        """`suffix`: of the idempotency key."""
        what: Signed = "requests" if row.channel == "request" else "notifications"
        await post_signed(self._parts, url, method, headers, body, what, f"{row.run_id}:{row.wait_id}{suffix}")


# --- texts ---


SHOWN_CHARS_MAX: Final = 20_000  # for the text of a mail; the page of the link has the rest


def webhook_body(wait: WaitView, event: str) -> dict[str, Any]:
    """Return the JSON that a webhook gets; documented in docs/howto/approve-by-link.md."""
    return {
        "event": event,
        "run": wait.run,
        "workflow": wait.workflow,
        "wait": wait.id,
        "kind": wait.kind,
        "block": wait.label,
        "title": wait.title,
        "link": wait.link,
        "actions": list(wait.actions),
        "opened_at": wait.opened_at_ms,
        "expires_at": wait.expires_at_ms,
    }


def request_body(wait: WaitView, body: Any) -> dict[str, Any]:
    """Return the body that `send` of a callback block posts: the `body` of its params, with the address of the
    callback."""
    if isinstance(body, dict):
        return {**body, "callback_url": wait.link}
    return {"callback_url": wait.link, "run": wait.run, "wait": wait.id, "data": body}


def mail_subject(wait: WaitView, reminder: bool = False) -> str:
    """Return the subject, one line for any title."""
    return " ".join(f"{'Reminder: ' * reminder}{wait.title} ({wait.workflow})".split())[:200]


def mail_body(wait: WaitView) -> str:
    request = wait.request if isinstance(wait.request, dict) else {}
    parts = [wait.title]
    if isinstance(request.get("text"), str):
        parts.append(request["text"])
    if request.get("show") not in (None, {}, [], ""):
        parts.append(_show_value(request["show"])[:SHOWN_CHARS_MAX])
    choices = f" ({', '.join(wait.actions)})" if wait.actions else ""
    parts.append(f"Answer here{choices}:\n{wait.link}")
    if wait.expires_at_ms is not None:
        until = datetime.fromtimestamp(wait.expires_at_ms / 1000, UTC)
        parts.append(f"Expires on {until:%d %b %Y, %H:%M UTC}. Only the first answer is accepted.")
    else:
        parts.append("Only the first answer is accepted.")
    parts.append(f"Workflow {wait.workflow}, block {wait.label}, run {wait.run}.")
    return "\n\n".join(parts) + "\n"


def _show_value(value: Any) -> str:
    if not isinstance(value, dict):
        return render(value)
    return "\n".join(f"{name}: {render(item)}" for name, item in value.items())
