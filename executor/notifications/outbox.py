"""The outbox at work: one task of the engine that takes what is due and sends it; `engine.notifications`.

At least once: a message is claimed for LEASE_MS, sent, and settled. A process that dies in between leaves it to the
next one, so the receiver may see it twice: mails with the same Message-ID, requests with the same Idempotency-Key. No
run waits for a message, and a message that cannot be sent fails nothing: it says so where its wait is shown.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import random
from collections.abc import Mapping
from typing import Any, Final

import orjson

from executor.blocks.email import compose, post
from executor.errors import BlockError, NotFound, StoreError
from executor.http.binding import Hosts, bound_to
from executor.notifications.jobs import CHANNEL, KubernetesJobs
from executor.notifications.messages import mail_body, mail_subject, request_body, webhook_body
from executor.runtime.parts import Parts
from executor.runtime.task import BackgroundTask
from executor.store.rows import NotificationRow
from executor.topics.callbacks import Callbacks
from executor.topics.waits import Waits
from executor.values.redact import Redactor, sealed_names, unseal
from executor.views import WaitView

log = logging.getLogger("weft.notifications")

SENDING_MAX: Final = 16  # at the same time
REQUEST_S: Final = 15.0
LEASE_MS: Final = 90_000  # longer than any try takes: a mail server has 30 s for each step
# 5 s, 20 s, 80 s, 5 min, 21 min, 1 h, 1 h: after two and a half hours the receiver is gone.
ATTEMPTS_MAX: Final = 8
BACK_OFF_MS: Final = 5_000
BACK_OFF_FACTOR: Final = 4
BACK_OFF_MAX_MS: Final = 3_600_000
JITTER: Final = 0.1
IDLE_MAX_S: Final = 5.0  # another process may have written a message
ERROR_CHARS_MAX: Final = 500
# The wait has ended since the message was claimed: it is not sent, and nothing went wrong.
OVER: Final = BlockError("the wait has ended", retryable=False)
_RETRYABLE: Final = frozenset({408, 425, 429})


class Notifications:
    def __init__(self, parts: Parts, waits: Waits) -> None:
        self._parts = parts
        self._waits = waits
        self._store = parts.store
        self._clock = parts.clock
        self._wake = parts.hub.messages
        self._jobs = KubernetesJobs(waits, Callbacks(parts, waits))
        self._sending: set[asyncio.Task[None]] = set()
        self._task = BackgroundTask(
            "notifications", self._send_due, failed="the outbox cannot be read", log=log, wake=self._wake
        )

    def start(self) -> None:
        self._clock.on_jump(self._wake.set)
        self._task.start()

    async def stop(self) -> None:
        """Sends under way are cancelled; they are tried again when their leases are over."""
        await self._task.stop()
        for sending in self._sending:
            sending.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)

    # --- the loop ---

    async def _send_due(self) -> float:
        """Start to send what is due. Returns the seconds until more may be."""
        room = SENDING_MAX - len(self._sending)
        rows = await self._store.claim_notifications(self._clock.now_ms(), LEASE_MS, room) if room else []
        for row in rows:
            task = asyncio.create_task(self._try(row), name=f"message {row.run_id}:{row.wait_id}:{row.n}")
            self._sending.add(task)
            task.add_done_callback(self._done)
        if rows:
            return 0
        due_ms = await self._store.next_notification_ms() if room else None
        if due_ms is None:
            return IDLE_MAX_S
        return min(IDLE_MAX_S, max(0.0, (due_ms - self._clock.now_ms()) / 1000) + 0.001)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._sending.discard(task)
        self._wake.set()

    # --- one message ---

    async def _try(self, row: NotificationRow) -> None:
        """One attempt. What goes wrong with it is recorded; if even that fails, the lease brings the message back."""
        try:
            if row.channel == CHANNEL:
                target, _ = await self._opened(row)
                status, after_ms, problem = await self._jobs.attend(row, target)
                now_ms = self._clock.now_ms()
                shown = problem and self._parts.redactor.redact_cut(problem)[:ERROR_CHARS_MAX]
                await self._record(row, status, now_ms, None if after_ms is None else now_ms + after_ms, shown)
                return
            error = await self._attempt(row)
            now_ms = self._clock.now_ms()
            if error is None:
                await self._record(row, "sent", now_ms)
                return
            if error is OVER:
                await self._record(row, "cancelled", now_ms)
                return
            shown = self._parts.redactor.redact_cut(error.message)[:ERROR_CHARS_MAX]
            if error.retryable and row.attempts < ATTEMPTS_MAX:
                await self._record(row, "pending", now_ms, now_ms + back_off_ms(row.attempts, random.random()), shown)
            else:
                log.warning("a message about %s of run %s was abandoned: %s", row.wait_id, row.run_id, shown)
                await self._record(row, "failed", now_ms, None, shown)
        except StoreError as failure:
            log.error("a message about %s of run %s is not settled: %s", row.wait_id, row.run_id, failure)

    async def _record(
        self, row: NotificationRow, status: Any, now_ms: int, due_ms: int | None = None, error: str | None = None
    ) -> None:
        await self._store.settle_notification(
            row.run_id, row.wait_id, row.n, row.attempts, status, now_ms, due_ms, error
        )

    async def _attempt(self, row: NotificationRow) -> BlockError | None:
        """Why it was not sent; None when it was. Raises StoreError."""
        try:
            wait = await self._waits.get(row.run_id, row.wait_id)
            if wait.status != "pending":
                return OVER
            target, hosts = await self._opened(row)
            with bound_to(hosts, self._parts.vault.is_in):
                await self._send(row, wait, target)
        except BlockError as error:
            return error
        except NotFound:  # its run was deleted meanwhile
            return OVER
        except StoreError:
            raise
        except Exception as error:
            log.exception("a message about %s of run %s cannot be sent", row.wait_id, row.run_id)
            return BlockError(f"{type(error).__name__}: {error}", retryable=True)
        return None

    async def _opened(self, row: NotificationRow) -> tuple[dict[str, Any], Hosts]:
        """With the secrets as they are now, and where these may be sent to. Raises BlockError, StoreError."""
        vault = self._parts.vault
        names = sealed_names(row.content)
        hosts = await vault.open(names) if names else {}
        return unseal(row.content, vault.values), hosts

    async def _send(self, row: NotificationRow, wait: WaitView, target: dict[str, Any]) -> None:
        """Raises BlockError."""
        server = self._parts.services.notify
        match row.channel:
            case "email":
                to = list(server.email) if target.get("server") else target["to"]
                await self._mail(row, wait, to)
            case "webhook":
                url = (server.webhook or "") if target.get("server") else target["url"]
                await self._request(row, url, "POST", {}, webhook_body(wait))
            case "request":
                body = request_body(wait, target.get("body"))
                await self._request(row, target["url"], target["method"], target["headers"], body)
            case other:
                raise BlockError(f"there is no channel {other!r}", retryable=False)

    async def _mail(self, row: NotificationRow, wait: WaitView, to: list[str]) -> None:
        services = self._parts.services
        params = {"to": to, "subject": mail_subject(wait), "body": mail_body(wait)}
        key = f"{row.run_id}:{row.wait_id}:{row.n}"
        message, recipients = compose(params, services.mail.sender, key, row.created_at_ms)
        refused = await post(message, recipients, services, f"wait {row.wait_id}")
        if refused:  # others got it, and must not get it again
            raise BlockError(
                f"the mail server refused {', '.join(refused)}; the other recipients were accepted", retryable=False
            )

    async def _request(
        self, row: NotificationRow, url: str, method: str, headers: Mapping[str, str], body: dict[str, Any]
    ) -> None:
        content = orjson.dumps(body)
        key = self._parts.links.signing_key("requests" if row.channel == "request" else "notifications")
        at_s = self._clock.now_ms() // 1000
        own = {
            "Content-Type": "application/json",
            "Idempotency-Key": f"{row.run_id}:{row.wait_id}",
            "X-Weft-Timestamp": str(at_s),
            "X-Weft-Signature": sign(key, at_s, content),
        }
        custom = {name: value for name, value in headers.items() if name.lower() not in {one.lower() for one in own}}
        try:
            answer = await self._parts.services.http.request(
                method,
                url,
                headers={**custom, **own},
                content=content,
                timeout_s=REQUEST_S,
                max_bytes=64 * 1024,
                waiting=None,  # SENDING_MAX is the bound; a lease runs, so it must not wait behind blocks
            )
        except BlockError as error:
            if error.code == "response_too_large":
                return  # it was accepted; what the answer says does not matter
            raise BlockError(_without_path(error.message, url), code=error.code, retryable=error.retryable) from None
        if answer.status >= 400:
            raise BlockError(
                f"{_place(url)} answered {answer.status}",
                code="http_status",
                retryable=answer.status >= 500 or answer.status in _RETRYABLE,
            )


def sign(key: bytes, at_s: int, body: bytes) -> str:
    """`v1=` and the hexadecimal HMAC-SHA256 of `<seconds>.<body>`."""
    return "v1=" + hmac.new(key, b"%d." % at_s + body, hashlib.sha256).hexdigest()


def back_off_ms(attempts: int, chance: float) -> int:
    """The pause after attempt number `attempts`; `chance` in 0..1 spreads it."""
    pause = float(min(BACK_OFF_MS * BACK_OFF_FACTOR ** (attempts - 1), BACK_OFF_MAX_MS))
    return round(pause * (1 + JITTER * (2 * chance - 1)))


def _place(url: str) -> str:
    import httpx  # of the client, which loads it with the first request

    parsed = httpx.URL(url)
    return f"{parsed.scheme}://{parsed.netloc.decode()}"


def _without_path(text: str, url: str) -> str:
    """The address of a webhook is a credential: errors name its server alone."""
    import httpx

    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        return text
    return Redactor([url, parsed.path, parsed.raw_path.decode("ascii", "replace")]).redact(text)
