"""Messages that this process sends: its claims to them, the signed request, and the pause before the next try.

A claim lasts as long as the lease of a worker and is renewed as often, so after a crash messages wait no longer than
runs. A process that stops frees its claims: messages being sent then have STOP_S to finish, and are sent again
otherwise, with the same key. A claim that is freed before anything was sent is not counted as a try.
"""

from __future__ import annotations

import asyncio
import logging
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, Generic, TypeVar

import orjson

from executor.blocks.http.binding import opened_bytes
from executor.blocks.http.handles import written_as
from executor.blocks.types.email import EmailParams, compose, post
from executor.errors import BlockError, StoreError
from executor.kernel.process.repeated import OUTAGE
from executor.kernel.process.task import BackgroundTask
from executor.kernel.read.peers import MESSAGES
from executor.kernel.run.links import Signed
from executor.kernel.store.topics.alerts import AlertMessage
from executor.kernel.store.topics.outbox import NotificationRow, NotificationStatus
from executor.kernel.values.redact import Redactor
from executor.kernel.worker.worker import RENEWALS_PER_LEASE
from executor.service.parts import Parts
from executor.service.topics.waits import place_of
from executor.service.triggers.requests import sign

log = logging.getLogger("weft.notifications")

REQUEST_S: Final = 15.0
# 5 s, 20 s, 80 s, 5 min, 21 min, 1 h, 1 h: after two and a half hours the receiver is gone.
ATTEMPTS_MAX: Final = 8
BACK_OFF_MS: Final = 5_000
BACK_OFF_FACTOR: Final = 4
BACK_OFF_MAX_MS: Final = 3_600_000
JITTER: Final = 0.1
IDLE_MAX_S: Final = 5.0  # another process may have written a message
ERROR_CHARS_MAX: Final = 500
_RETRYABLE: Final = frozenset({408, 425, 429})


async def post_signed(
    parts: Parts, url: str, method: str, headers: Mapping[str, str], body: dict[str, Any], what: Signed, key: str
) -> None:
    """Send a signed request. `key`: the Idempotency-Key, the same in each try. While the previous key is valid,
    receivers may have only that one: it still signs, and the present one signs in addition. Raises BlockError."""
    content = opened_bytes(
        written_as(orjson.dumps(body).decode(), "j").encode()
    )  # exactly the bytes that are sent are signed
    at_s = parts.clock.now_ms() // 1000
    own = {
        "Content-Type": "application/json",
        "Idempotency-Key": key,
        "X-Weft-Timestamp": str(at_s),
        "X-Weft-Signature": sign(parts.links.signing_key(what), content, at_s),
    }
    try:
        old = await parts.key_times.old()
    except StoreError as error:
        raise BlockError(f"the database cannot be read: {error}", retryable=True) from error
    if old:
        own["X-Weft-Signature-New"] = own["X-Weft-Signature"]
        own["X-Weft-Signature"] = sign(parts.links.signing_key(what, old[0]), content, at_s)
    custom = {name: value for name, value in headers.items() if name.lower() not in {one.lower() for one in own}}
    try:
        answer = await parts.services.http.request(
            method,
            url,
            headers={**custom, **own},
            content=content,
            timeout_s=REQUEST_S,
            max_bytes=64 * 1024,
            waiting=None,  # the outbox has a bound; a lease runs, so it must not wait for blocks
        )
    except BlockError as error:
        if error.code == "response_too_large":
            return  # accepted; the content of the answer does not matter
        raise BlockError(_without_path(error.message, url), code=error.code, retryable=error.retryable) from None
    if answer.status >= 400:
        raise BlockError(
            f"{place_of(url)} answered {answer.status}",
            code="http_status",
            retryable=answer.status >= 500 or answer.status in _RETRYABLE,
        )


def back_off_ms(attempts: int, chance: float) -> int:
    """Return the pause after attempt number `attempts`; `chance` in 0..1 spreads it."""
    pause = float(min(BACK_OFF_MS * BACK_OFF_FACTOR ** (attempts - 1), BACK_OFF_MAX_MS))
    return round(pause * (1 + JITTER * (2 * chance - 1)))


def _without_path(text: str, url: str) -> str:
    """Remove the address of a webhook, which is a credential: errors name only its server."""
    import httpx

    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        return text
    return Redactor([url, parsed.path, parsed.raw_path.decode("ascii", "replace")]).redact(text)


# --- claims ---


STOP_S: Final = 2.0
AGAIN_MS: Final = 1_000  # after a database that could not be read
# A message that is not to be sent any more, because its wait has ended: nothing went wrong.
OVER: Final = BlockError("the wait has ended", retryable=False)
Row = TypeVar("Row", bound=NotificationRow | AlertMessage)


class Claim(Generic[Row]):
    """`sends` is set before something is sent, and `record`, which writes the outcome, once there is one."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.sends = False
        self.record: Callable[[], Awaitable[object]] | None = None
        self.task: asyncio.Task[None] | None = None


class Sender(ABC, Generic[Row]):
    """The task of one kind of messages: it claims those that are due, and sends each once more until one try succeeds,
    or too many have failed."""

    def __init__(
        self, name: str, parts: Parts, lease_ms: int, wake: asyncio.Event, *, most: int, failed: str, delayed: str
    ) -> None:
        """`most`: how many are sent at the same time. `failed` and `delayed`: the texts of the log when the database
        fails, for all messages and for one."""
        self._parts = parts
        self._store = parts.store
        self._clock = parts.clock
        self._lease_ms = lease_ms
        self._most = most
        self._delayed = delayed
        self._held: set[Claim[Row]] = set()
        self._task = BackgroundTask(name, self._step, failed=failed, log=log, wake=wake)
        renewing = "claims of messages cannot be renewed"
        self._renewing = BackgroundTask(f"{name}:renew", self._renew, failed=renewing, log=log)

    def start(self) -> None:
        self._clock.on_jump(self._task.wake.set)
        self._task.start()
        self._renewing.start(after_s=self._renew_every_s)

    async def stop(self, grace_s: float = 0.0) -> None:
        """Claim no more, let messages being sent finish, and hand over the others when the grace is over."""
        within_s = min(grace_s, STOP_S)
        await self._task.end(within_s)  # claims under way are freed as well
        await self._task.stop()
        tasks = [claim.task for claim in self._held if claim.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=within_s)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, self._renewing.stop(), return_exceptions=True)
        held = list(self._held)
        self._held.clear()
        try:
            await asyncio.gather(*(self._leave(claim, 0) for claim in held))
        except StoreError:
            log.warning("claims of messages could not be released; they will expire")
        if held:
            self._parts.peers.notify(MESSAGES, "")

    # --- of one kind ---

    @abstractmethod
    async def _claim(self, now_ms: int, room: int) -> list[Row]:
        """Claim due messages for `_lease_ms`, at most so many."""

    @abstractmethod
    async def _next_due_ms(self, now_ms: int) -> int | None:
        """Return when the next message is due, or None if that is not known."""

    @abstractmethod
    async def _keep(self, row: Row, until_ms: int, counts: bool) -> bool:
        """Write until when a claim lasts, and whether it counts as a try. Returns False if another process has it."""

    @abstractmethod
    async def _send(self, claim: Claim[Row]) -> None:
        """Raises BlockError (OVER: it is not to be sent any more), StoreError."""

    @abstractmethod
    async def _write(
        self, row: Row, status: NotificationStatus, now_ms: int, due_ms: int | None, error: str | None
    ) -> None:
        """Write the outcome of a try. Raises StoreError."""

    @abstractmethod
    def _name(self, row: Row) -> str:
        """Return what the log calls the message."""

    # --- claims ---

    async def _step(self) -> float:
        now_ms, room = self._clock.now_ms(), self._most - len(self._held)
        rows = await self._claim(now_ms, room)
        for row in rows:
            claim = Claim(row)
            self._held.add(claim)
            claim.task = asyncio.create_task(self._try(claim), name=self._name(row))
            claim.task.add_done_callback(partial(self._ended, claim))
        if rows:
            return 0
        due_ms = await self._next_due_ms(now_ms) if room else None
        return IDLE_MAX_S if due_ms is None else min(IDLE_MAX_S, max(0.0, (due_ms - now_ms) / 1000) + 0.001)

    @property
    def _renew_every_s(self) -> float:
        return self._lease_ms / 1000 / RENEWALS_PER_LEASE

    async def _renew(self) -> float:
        await asyncio.gather(*(self._renew_one(claim) for claim in list(self._held)))
        return self._renew_every_s

    async def _renew_one(self, claim: Claim[Row]) -> None:
        assert claim.task is not None
        if claim.task.done():
            await self._leave(claim, self._lease_ms if claim.sends else AGAIN_MS)
            self._held.discard(claim)
            self._task.wake.set()
        elif claim.record is None and not await self._keep(claim.row, self._clock.now_ms() + self._lease_ms, True):
            self._held.discard(claim)  # this process stood still, and another one sends it
            if claim.record is None:
                claim.task.cancel()

    async def _leave(self, claim: Claim[Row], pause_ms: int) -> None:
        """Write the outcome, or, without one, that the message is free after a pause. Raises StoreError."""
        if claim.record is not None:
            await claim.record()
        else:
            await self._keep(claim.row, self._clock.now_ms() + pause_ms, claim.sends)

    def _ended(self, claim: Claim[Row], task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a message cannot be sent", exc_info=error)
        if claim in self._held:  # the database failed: the heartbeat deals with it
            self._renewing.wake.set()
        self._task.wake.set()

    # --- tries ---

    async def _try(self, claim: Claim[Row]) -> None:
        row = claim.row
        try:
            error = await self._attempt(claim)
            if error is None:
                await self._record(claim, "sent")
            elif error is OVER:
                await self._record(claim, "cancelled")
            elif error.retryable and row.attempts < ATTEMPTS_MAX:
                after_ms = back_off_ms(row.attempts, random.random())
                await self._record(claim, "pending", after_ms, self._shown(error.message))
            else:
                shown = self._shown(error.message)
                log.warning("%s was abandoned: %s", self._name(row), shown)
                await self._record(claim, "failed", None, shown)
        except StoreError as failure:
            OUTAGE.log(log, failure, self._delayed)

    async def _attempt(self, claim: Claim[Row]) -> BlockError | None:
        """Return why it was not sent, or None if it was. Raises StoreError."""
        try:
            await self._send(claim)
        except BlockError as error:
            return error
        except StoreError:
            raise
        except Exception as error:
            log.exception("%s cannot be sent", self._name(claim.row))
            return BlockError(f"{type(error).__name__}: {error}", retryable=True)
        return None

    async def _record(
        self, claim: Claim[Row], status: NotificationStatus, after_ms: int | None = None, error: str | None = None
    ) -> None:
        now_ms = self._clock.now_ms()
        due_ms = None if after_ms is None else now_ms + after_ms
        claim.record = lambda: self._write(claim.row, status, now_ms, due_ms, error)  # repeated later if it fails
        await claim.record()
        self._held.discard(claim)

    async def _mail(self, to: list[str], subject: str, body: str, key: str, made_at_ms: int, what: str) -> None:
        services = self._parts.services
        params = EmailParams({"to": to, "subject": subject, "body": body})
        message, recipients = compose(params, services.mail.sender, key, made_at_ms)
        if refused := await post(message, recipients, services, what):  # others got it, and must not get it again
            raise BlockError(
                f"the mail server refused {', '.join(refused)}; the other recipients were accepted", retryable=False
            )

    def _shown(self, message: str) -> str:
        return self._parts.redactor.redact_cut(message)[:ERROR_CHARS_MAX]
