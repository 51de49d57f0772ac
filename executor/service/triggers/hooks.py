"""Registrations of this server at services that report events themselves, so that a source need not be polled often;
`engine.hooks`.

A delivery starts no run: its source is polled at once, with the position and the ids of every poll. So a delivery that
is repeated, lost or forged changes no more than the time of a poll.

A registration is an effect outside. The claim of its row is committed before the service is asked, and what the service
answered after it. Whatever a process that ended in between has left at the service has the address of the row: it is
looked for first, and kept if its secret is known here, or removed.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
from msgspec import Struct

from compiler.diagnostics import CompileError
from executor.blocks.connectors.document import Hooks as Described
from executor.blocks.connectors.events import EventBlock
from executor.blocks.connectors.hooks import Registrations, is_gone
from executor.errors import BlockError, NotFound, StoreError, WebhookDisabled, WeftError
from executor.kernel.process.task import BackgroundTask
from executor.kernel.store.topics.hooks import HookChange, HookRow
from executor.kernel.store.topics.schedules import ScheduleRow
from executor.kernel.store.topics.secrets import SecretRow
from executor.kernel.store.topics.webhooks import Auth
from executor.service.parts import Parts, Topic
from executor.service.triggers.declared import StartOf
from executor.service.triggers.polls import Polls
from executor.service.triggers.requests import Received, prove

log = logging.getLogger("weft.triggers")

PUSH: Final = "push:"
IDLE_S: Final = 5.0
BATCH: Final = 100
AT_WORK_MAX: Final = 10  # at the same time in a process
WORK_S: Final = 90.0
CLAIM_MS: Final = 120_000  # longer than the work: what a process that ended has asked for is done or refused then
CHECK_MS: Final = 24 * 3_600_000  # people delete registrations at the service
BACKOFF_MS: Final = 60_000
BACKOFF_MAX_MS: Final = 3_600_000
REMOVALS_MAX: Final = 50  # tries, two days
ERROR_CHARS_MAX: Final = 500
ECHO_CHARS_MAX: Final = 2_000


class PushView(Struct, frozen=True):
    """`registered`: the service reports events, until `expires_at_ms` if that is given: it is renewed before. `error`:
    why this is not so, or not for long. While it is not, the source is polled at its times."""

    registered: bool
    expires_at_ms: int | None
    delivered_at_ms: int | None
    error: str | None


class Reply(Struct, frozen=True):
    """The answer to a delivery."""

    headers: dict[str, str] = {}
    text: str = ""


def push_view(row: ScheduleRow, hooks: Iterable[HookRow], now_ms: int) -> PushView | None:
    if row.push is None:
        return None
    hook = next((one for one in hooks if one.schedule_id == row.id and one.source == row.push), None)
    if hook is None:
        return PushView(False, None, None, None)
    is_there = hook.registered is not None and (hook.expires_at_ms is None or hook.expires_at_ms > now_ms)
    return PushView(is_there, hook.expires_at_ms, hook.delivered_at_ms, hook.error)


class Hooks(Topic):
    """`changed` is called after a delivery and after each registration: there may be a poll to do."""

    def __init__(self, parts: Parts, polls: Polls, changed: Callable[[], None]) -> None:
        super().__init__(parts)
        self._polls = polls
        self._changed = changed
        self._task = BackgroundTask("hooks", self._step, failed="registrations could not be checked", log=log)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._started = self._moved = False

    @property
    def place(self) -> str:
        """The key and the address of this server: a registration is of both, and is made again when one changes."""
        return f"{self._parts.links.key_ids[0]} {self._parts.links.webhook_url('')}"

    @property
    def under_way(self) -> int:
        return len(self._tasks)

    @property
    def is_idle(self) -> bool:
        return self._task.is_idle and not self._tasks

    def start(self) -> None:
        self._clock.on_jump(self._task.wake.set)
        self._task.start()

    def wake(self) -> None:
        self._task.wake.set()

    async def stop(self) -> None:
        """Stop. What is under way is looked at by the next process once its claim has ended."""
        await self._task.stop()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _step(self) -> float:
        now_ms = self._clock.now_ms()
        if not self._started:  # what was reported while no server was there
            if await self._store.list_hooks():
                await self._store.poll_pushed(now_ms)
                self._changed()
            self._started = True
        for id, workflow, source in await self._store.missing_hooks(BATCH):
            await self._store.add_hook(secrets.token_urlsafe(16), id, workflow, source, now_ms)
        is_public = self._parts.services.is_public
        # Once: processes with different addresses must not make it again and again in turn.
        place = self.place if is_public and not self._moved else ""
        rows = await self._store.due_hooks(now_ms, place, BATCH)
        for row in rows:
            is_of_another = row.wanted and not is_public and row.place not in (None, self.place)
            if row.id not in self._tasks and len(self._tasks) < AT_WORK_MAX and not is_of_another:
                await self._begin(row, now_ms)
        self._moved = self._moved or len(rows) < AT_WORK_MAX
        return IDLE_S

    async def _begin(self, row: HookRow, now_ms: int) -> None:
        until_ms = now_ms + CLAIM_MS
        if await self._store.claim_hook(row.id, row.until_ms, until_ms, self.place):
            task = asyncio.create_task(self._work(row, until_ms), name=f"hook {row.schedule_id}")
            self._tasks[row.id] = task
            task.add_done_callback(lambda _: self._done(row.id))

    def _done(self, id: str) -> None:
        task = self._tasks.pop(id)
        if not task.cancelled() and task.exception() is not None:
            log.error("the registration %s failed", id, exc_info=task.exception())
        self._task.wake.set()

    async def _work(self, row: HookRow, claimed_ms: int) -> None:
        try:
            async with asyncio.timeout(WORK_S):
                change = await (self._keep(row, claimed_ms) if row.wanted else self._remove(row, claimed_ms))
        except StoreError as error:  # the claim ends by itself
            log.warning("the registration of %s is not recorded: %s", row.schedule_id, error)
            return
        except Exception as error:
            change = self._failed(row, claimed_ms, error)
        try:
            await self._store.record_hook(change)
        except StoreError as error:
            log.warning("the registration of %s is not recorded: %s", row.schedule_id, error)
        self._changed()

    async def _keep(self, row: HookRow, claimed_ms: int) -> HookChange:
        """Have exactly one registration at the service. Raises BlockError, CompileError."""
        if not self._parts.services.is_public:
            hint = "set WEFT_BASE_URL to the address at which services reach it"
            raise BlockError(f"this server has no public address: {hint}", code="no_address", retryable=False)
        start, block = await self._start_of(row)
        async with self._polls.asking(start, f"hook:{row.id}") as ctx:
            url, own = self._url(row), self._own_secret(row)
            service = Registrations(block, ctx, url, _name(row), own)
            found = [one for one in await service.all() if _path(one.url) == _path(url)]
            is_known = not service.hooks.chooses_secret or self._stored_secret(row) is not None
            is_same = row.place in (None, self.place) and is_known
            kept = next((one for one in found if is_same and one.url == url), None)
            for one in found:
                if one is not kept:
                    await service.delete(one.id)
            if kept is not None and service.hooks.renew is not None:
                kept = await service.renew(kept)
            if kept is None:
                kept = await service.create()
        now_ms = self._clock.now_ms()
        left_ms = CHECK_MS if kept.expires_at_ms is None else max(kept.expires_at_ms - now_ms, 0) // 2
        return HookChange(
            row.id,
            claimed_ms,
            now_ms,
            renew_at_ms=now_ms + max(min(CHECK_MS, left_ms), BACKOFF_MS),
            place=self.place,
            registered=kept.id,
            secret=None if kept.secret is None else self._sealed(row, kept.secret),
            expires_at_ms=kept.expires_at_ms,
        )

    async def _remove(self, row: HookRow, claimed_ms: int) -> HookChange:
        gone = HookChange(row.id, claimed_ms, claimed_ms, gone=True)
        if row.place is None:  # nothing was asked for yet
            return gone
        start, block = await self._start_of(row)
        async with self._polls.asking(start, f"hook:{row.id}") as ctx:
            url = self._url(row)
            service = Registrations(block, ctx, url, _name(row), "")
            try:
                found = {one.id for one in await service.all() if _path(one.url) == _path(url)}
            except BlockError as error:
                if not is_gone(error):
                    raise
                return gone  # as is the repository or project whose events were reported
            for id in found.union([row.registered] if row.registered is not None else []):
                await service.delete(id)
        return gone

    def _failed(self, row: HookRow, claimed_ms: int, error: Exception) -> HookChange:
        is_ours = not isinstance(error, WeftError | CompileError | TimeoutError)
        text = "internal error; see the server log" if is_ours else str(error)[:ERROR_CHARS_MAX]
        if isinstance(error, TimeoutError):
            text = f"the service did not answer within {WORK_S:g} seconds"
        text = self._parts.redactor.redact(text)
        what = "registration" if row.wanted else "removal of the registration"
        log.warning("the %s of %s failed: %s", what, row.schedule_id, text, exc_info=is_ours)
        now_ms, failures = self._clock.now_ms(), row.failures + 1
        wait_ms = min(BACKOFF_MS * 2 ** min(failures - 1, 20), BACKOFF_MAX_MS)
        retry_at_ms = error.retry_at_ms if isinstance(error, BlockError) else None
        return HookChange(
            row.id,
            claimed_ms,
            max(now_ms + wait_ms, retry_at_ms or 0),
            renew_at_ms=0,
            place=row.place or self.place,
            registered=row.registered,
            expires_at_ms=row.expires_at_ms,
            failures=failures,
            error=text,
            gone=not row.wanted and failures >= REMOVALS_MAX,
        )

    async def _start_of(self, row: HookRow) -> tuple[StartOf, EventBlock]:
        """Return the block as its own workflow: the one that it came from may be gone. Raises CompileError."""
        document = {"format": "weft/1", "name": row.workflow, "blocks": {"hook": orjson.loads(row.source)}}
        plan = await self._parts.compiler.plan(document, "hook")
        node = plan.nodes[plan.regions[0].entries[0]]
        block = self._parts.registry.handler(node.type)
        assert isinstance(block, EventBlock), "a source that is pushed is one of a connector"
        return StartOf(row.workflow, 0, plan, node), block

    async def receive(self, id: str, request: Received, admit: Callable[[Auth], None]) -> Reply:
        """Poll the source that a delivery is about. `admit` as for a webhook. Raises NotFound, WebhookDisabled,
        DeliveryRefused, BadRequest."""
        row = await self._store.get_hook(id.removeprefix(PUSH))
        described = self._described(row) if row is not None else None
        if row is None or described is None:
            raise NotFound("there is no registration like this", code="webhook_not_found")
        now_ms = self._clock.now_ms()
        asked = described.handshake
        echo = dict(request.query).get(asked.get("query", ""))
        if echo is not None and len(echo) <= ECHO_CHARS_MAX:
            return Reply({"Content-Type": "text/plain; charset=utf-8"}, echo)
        header = asked.get("header", "")
        if header and (secret := request.headers.get(header)) is not None:
            sealed = self._sealed(row, secret[:ECHO_CHARS_MAX])
            if not await self._store.keep_hook_secret(row.id, sealed, now_ms):
                raise WebhookDisabled()
            return Reply({header: secret})
        self._prove(row, described, request, now_ms)
        admit("hmac")
        if not await self._store.push_hook(row.id, now_ms):
            raise WebhookDisabled()
        self._changed()
        return Reply()

    def _prove(self, row: HookRow, described: Described, request: Received, now_ms: int) -> None:
        secret = self._stored_secret(row) if described.chooses_secret else self._own_secret(row, was=True)
        prove(described.proof, secret, request, now_ms)

    def _described(self, row: HookRow) -> Described | None:
        source: dict[str, Any] = orjson.loads(row.source)
        block = self._parts.registry.handler(source["type"])
        return block.connector.hooks if isinstance(block, EventBlock) else None

    def _url(self, row: HookRow) -> str:
        return self._parts.links.webhook_url(PUSH + row.id)

    def _own_secret(self, row: HookRow, was: bool = False) -> str:
        """Return the secret with which the service signs; `was`: as it was registered, with a key before this one."""
        ids, key_id = self._parts.links.key_ids, (row.place or "").partition(" ")[0]
        key = ids.index(key_id) if was and key_id in ids else 0
        return self._parts.links.webhook_secret(PUSH + row.id, 0, key)

    def _sealed(self, row: HookRow, secret: str) -> bytes:
        return self._parts.vault.need_keys().seal(_name(row), 1, secret)

    def _stored_secret(self, row: HookRow) -> str | None:
        if row.secret is None:
            return None
        sealed = SecretRow(_name(row), 1, row.secret, (row.place or "").partition(" ")[0], (), "", row.created_at_ms)
        with suppress(BlockError):  # it is registered again
            return self._parts.vault.need_keys().open(sealed)
        return None


def _name(row: HookRow) -> str:
    return f"weft-{row.id}"


def _path(url: str) -> str:
    return urlsplit(url).path
