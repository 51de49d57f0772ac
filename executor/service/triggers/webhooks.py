"""Webhooks as people see them, and how a request to one becomes a run; `engine.webhooks`. The proof of a request is in
`requests.py`.

Refused requests are kept for operators. Strangers send these, so the writes that they cause are bounded: the database
has one row for each webhook and reason, with a count and the last request, and all of them are written at most every
few seconds, in one transaction. The last requests, one by one, are only kept in memory."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, Literal

import orjson
from msgspec import Struct

from compiler.diagnostics import CompileError
from executor import errors
from executor.blocks.types.webhook import header_problem
from executor.kernel.core import facts as f
from executor.kernel.journal.codec import keep_plan
from executor.kernel.run.new_run import Origin, check_input, new_run, new_run_id
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.webhooks import REASONS_KEPT, Auth, DeliveryRow, RefusalRow, Respond, WebhookRow
from executor.service.parts import Parts, Topic
from executor.service.triggers.declared import (
    ENV_NAME,
    StartOf,
    WebhookSpec,
    check_own_id,
    new_generation,
    of_document,
    page_of,
    start_of,
    webhook_row,
)
from executor.service.triggers.requests import Proof, Received, body_of, envelope, prove, same
from executor.service.views import Submitted, view_of

log = logging.getLogger("weft.triggers")

DELIVERIES_SHOWN: Final = 50
Kind = Literal["webhook", "form", "chat"]


class WebhookView(Struct, frozen=True):
    """Times are Unix milliseconds. `origin` is document if the block `trigger` of the workflow declares it. `problem`:
    why requests cannot be accepted. `kind` is form or chat for a public page, whose address is `url`."""

    id: str
    kind: Kind
    url: str
    workflow: str
    version: int | None
    trigger: str | None
    auth: Auth
    secret_env: str | None
    respond: Respond
    timeout_s: float
    headers: list[str]
    enabled: bool
    origin: str
    last_run_at_ms: int | None
    last_run_id: str | None
    problem: str | None
    created_at_ms: int
    updated_at_ms: int


class DeliveryView(Struct, frozen=True):
    """`outcome`: started, or the error code. Refused deliveries: the last ones of this process, and the last one of
    each reason from earlier. `run` of a repeated delivery is the run that the first one started."""

    at_ms: int
    outcome: str
    delivery: str | None
    run: str | None


class RefusalView(Struct, frozen=True):
    """The number of requests refused for this reason. `delivery` and `run` are those of the last one."""

    outcome: str
    count: int
    first_at_ms: int
    last_at_ms: int
    delivery: str | None
    run: str | None


class Delivered(Struct, frozen=True):
    """An accepted delivery. `timeout_s` is None if the sender does not wait for the run."""

    delivery: str
    submitted: Submitted
    timeout_s: float | None


class Webhooks(Topic):
    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._refusals = Refusals(parts.store)
        self._seen: set[str] = set()  # webhooks that something has come to; no other ids

    async def all(self, workflow: str | None = None) -> list[WebhookView]:
        return [self._view(row) for row in await self._store.list_webhooks(workflow)]

    async def get(self, id: str) -> WebhookView:
        return self._view(await self._row(id))

    async def secret(self, id: str) -> str | None:
        """Return the secret with which senders sign, or which they send as token; None if the environment has it, or
        none is needed: the address of a page is its secret."""
        row = await self._row(id)
        made_here = row.auth != "none" and row.secret_env is None and page_of(id) is None
        return self._parts.links.webhook_secret(row.id, row.generation) if made_here else None

    async def deliveries(self, id: str) -> list[DeliveryView]:
        stored = await self._store.list_deliveries((await self._row(id)).id, DELIVERIES_SHOWN)
        started = [DeliveryView(row.at_ms, "started", row.id, row.run_id) for row in stored]
        last = self._refusals.last(id)
        known = {(row.last_at_ms, row.outcome) for row in last}
        earlier = [row for row in await self._refusals.by_reason(id) if (row.last_at_ms, row.outcome) not in known]
        refused = [DeliveryView(row.last_at_ms, row.outcome, row.delivery, row.run_id) for row in [*last, *earlier]]
        return sorted([*started, *refused], key=lambda one: one.at_ms, reverse=True)[:DELIVERIES_SHOWN]

    async def refused(self, id: str) -> list[RefusalView]:
        rows = await self._refusals.by_reason((await self._row(id)).id)
        return [view_of(RefusalView, row, run=row.run_id) for row in rows]

    async def put(self, id: str, spec: WebhookSpec) -> tuple[WebhookView, bool]:
        """Make or change a webhook of the API; also returns True if it is new. Raises BadRequest, NotFound,
        CompileError, and Conflict for one that a document declares."""
        check_own_id("webhook", id)
        _check(spec)
        old = await self._store.get_webhook(id)
        row = webhook_row(id, spec, self._clock.now_ms(), "api")
        await start_of(self._parts, row)  # raises now if it cannot be started
        return self._view(await self._store.put_webhook(row)), old is None

    async def delete(self, id: str) -> None:
        if (await self._row(id)).origin == "document":
            raise of_document("webhook", id)
        await self._store.delete_webhook(id)
        self._refusals.forget(id)
        self._seen.discard(id)

    async def switch(self, id: str, enabled: bool) -> WebhookView:
        row = await self._row(id)
        if row.enabled != enabled:
            row = _there(id, await self._store.switch_webhook(id, enabled, self._clock.now_ms()))
        return self._view(row)

    async def rotate(self, id: str) -> str:
        """Return a new secret in place of the old one; for a page, the last part of its new address. Raises NotFound,
        Conflict."""
        row = await self._row(id)
        if row.auth == "none" or row.secret_env is not None:
            where = f"it is read from {row.secret_env}" if row.secret_env else "it has no authentication"
            raise errors.Conflict(f"the secret of webhook '{id}' cannot be rotated: {where}", code="no_own_secret")
        row = _there(id, await self._store.rotate_webhook(id, new_generation(), self._clock.now_ms()))
        secret = self._parts.links.webhook_secret if page_of(id) is None else self._parts.links.page_token
        return secret(row.id, row.generation)

    async def receive(self, id: str, request: Received, admit: Callable[[Auth], None] | None = None) -> Delivered:
        """Start the run that a request is for. `admit` is called once the request has the proof that the webhook needs,
        and may raise. Raises like `ready` and `prove`, NotFound, InputInvalid, and Conflict (delivery_replayed, `run`)
        for a copy."""
        if page_of(id) is not None:
            raise _unknown(id)
        row = await self._row(id)
        with self.noted(id):
            return await self._receive(row, request, admit)

    @contextmanager
    def noted(self, id: str) -> Iterator[None]:
        self._seen.add(id)
        try:
            yield
        except errors.StoreError:
            raise
        except errors.WeftError as error:
            self.record_refused(id, error)
            raise

    def record_refused(self, id: str, error: errors.WeftError) -> None:
        """Record a refused request; nothing is recorded for ids of no known webhook."""
        if id in self._seen:
            now_ms = self._clock.now_ms()
            delivery, run = error.extra.get("delivery"), error.extra.get("run")
            self._refusals.record(RefusalRow(id, error.code, 1, now_ms, now_ms, delivery, run))

    async def stop(self) -> None:
        await self._refusals.stop()

    async def _receive(
        self, row: WebhookRow, request: Received, admit: Callable[[Auth], None] | None = None
    ) -> Delivered:
        now_ms = self._clock.now_ms()
        proof = await self.proof(row, request, now_ms)
        if admit is not None:
            admit(row.auth)
        start = await self.ready(row)
        delivery = proof.delivery or f"weft-{secrets.token_hex(8)}"
        checked = await self._input_of(row, start, request, delivery, now_ms)
        try:
            return await self.deliver(row, start, checked, Proof(delivery, proof.digest), now_ms)
        except errors.Fenced:  # switched off, deleted or changed meanwhile: judged as things are now
            return await self._receive(await self._row(row.id), request, admit)

    async def page(self, id: str, token: str, message: str, code: str) -> WebhookRow:
        """Return the row of a public page: the token in its address proves that the visitor has the link. Raises
        NotFound, which does not reveal if the id or the token is wrong."""
        row = await self._store.get_webhook(id)
        generation = row.generation if row is not None else 0
        links = self._parts.links
        if row is not None and same(token, links.page_token(id, generation)):
            return row
        for key in await self._parts.key_times.old():
            if row is not None and same(token, links.page_token(id, generation, key)):
                return row
        raise errors.NotFound(message, code=code)

    async def ready(self, row: WebhookRow) -> StartOf:
        """Return the start of the webhook. Raises WebhookDisabled, WebhookNotReady."""
        if not row.enabled:
            raise errors.WebhookDisabled()
        try:
            return await start_of(self._parts, row)
        except (errors.NotFound, CompileError) as error:
            # A stranger must not learn the content of the workflow.
            log.error("webhook %s cannot start its workflow: %s", row.id, error)
            raise errors.WebhookNotReady() from error

    async def deliver(
        self, row: WebhookRow, start: StartOf, input: Any, proof: Proof, now_ms: int, files: Sequence[str] = ()
    ) -> Delivered:
        """Store the run with its checked input; `proof` names its delivery, `files` came with it. Raises Fenced: the
        row was changed since it was read; Conflict (delivery_replayed, `run`)."""
        assert proof.delivery is not None
        requested = f.StartRequested(now_ms, new_run_id(now_ms))
        clean = self._parts.redactor.redact_value(input)  # it came from outside, as answers and signals do
        run = new_run(start.plan, requested, Origin(start.workflow, start.version), clean, files=files)
        delivered = DeliveryRow(row.id, proof.delivery, proof.digest, now_ms, run.id)
        first, stored = await self._store.deliver(row, delivered, run)
        if stored is None:
            raise errors.Conflict(
                f"this delivery was received before and started run {first.run_id}",
                code="delivery_replayed",
                hint="each delivery starts one run; to start another, send a different body with a new signature",
                run=first.run_id,
                delivery=first.id,
            )
        keep_plan(start.plan)
        self._parts.wake(stored.id)
        submitted = Submitted(stored.id, stored.workflow, stored.version, stored.status, True)
        return Delivered(first.id, submitted, row.timeout_ms / 1000 if row.respond == "run" else None)

    async def _input_of(self, row: WebhookRow, start: StartOf, request: Received, delivery: str, now_ms: int) -> Any:
        whole = start.node.type == "webhook"
        input = envelope(request, orjson.loads(row.headers), delivery, now_ms) if whole else body_of(request)
        try:
            return await check_input(start.plan, input, self._parts.services.sandbox.matches)
        except errors.InputInvalid as error:
            inside = "/body" if whole else ""
            pointer = (error.pointer or "").removeprefix("/input").removeprefix(inside)
            found = [{**one, "pointer": one["pointer"].removeprefix(inside)} for one in error.extra.get("errors", [])]
            raise errors.InputInvalid(
                error.message,
                code=error.code,
                pointer=pointer,
                hint="the body must match the input schema of the workflow or the body schema of its webhook block",
                errors=found,
            ) from error

    async def proof(self, row: WebhookRow, request: Received, now_ms: int) -> Proof:
        """Check the proof, also with the secrets of earlier keys while they are valid. Raises like `prove`."""
        try:
            return prove(row.auth, self._known_secret(row), request, now_ms)
        except errors.DeliveryRefused:
            if row.secret_env is None:
                for key in await self._parts.key_times.old():
                    with suppress(errors.DeliveryRefused):
                        return prove(
                            row.auth, self._parts.links.webhook_secret(row.id, row.generation, key), request, now_ms
                        )
            raise

    def _known_secret(self, row: WebhookRow) -> str | None:
        if row.auth == "none":
            return None
        if row.secret_env is not None:
            kept = self._parts.services.kept.get(row.secret_env)
            return (kept.value if kept is not None else self._parts.services.env.get(row.secret_env)) or None
        return self._parts.links.webhook_secret(row.id, row.generation)

    async def _row(self, id: str) -> WebhookRow:
        return _there(id, await self._store.get_webhook(id))

    def _view(self, row: WebhookRow) -> WebhookView:
        missing = row.auth != "none" and self._known_secret(row) is None
        links, page = self._parts.links, page_of(row.id)
        return view_of(
            WebhookView,
            row,
            kind="webhook" if page is None else page[0],
            url=links.webhook_url(row.id) if page is None else links.page_url(*page, row.id, row.generation),
            timeout_s=row.timeout_ms / 1000,
            headers=orjson.loads(row.headers),
            problem=f"{row.secret_env} is not set on this server" if missing else None,
        )


def _there(id: str, row: WebhookRow | None) -> WebhookRow:
    if row is None:
        raise _unknown(id)
    return row


def _unknown(id: str) -> errors.NotFound:
    return errors.NotFound(f"there is no webhook '{id}'", code="webhook_not_found")


def _check(spec: WebhookSpec) -> None:
    for i, name in enumerate(spec.headers):
        problem = header_problem(name)
        if problem is not None:
            raise errors.BadRequest(problem, code="param_invalid", pointer=f"/headers/{i}")
    if spec.secret_env is not None and (spec.auth == "none" or not ENV_NAME.fullmatch(spec.secret_env)):
        what = (
            "a webhook without authentication has no secret"
            if spec.auth == "none"
            else "this is not a valid environment name"
        )
        raise errors.BadRequest(what, code="param_invalid", pointer="/secret_env", hint="remove it")


# --- refused requests ---


WRITE_EVERY_S: Final = 5.0
REMEMBERED: Final = 50  # per webhook, by this process


class Refusals:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._last: dict[str, deque[RefusalRow]] = {}
        self._unwritten: dict[tuple[str, str], RefusalRow] = {}
        self._task: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()  # rows that are being written are in neither place

    def record(self, row: RefusalRow) -> None:
        """Record a refusal, only for a webhook that exists: strangers must not be able to make this grow."""
        self._last.setdefault(row.webhook_id, deque(maxlen=REMEMBERED)).append(row)
        key = (row.webhook_id, row.outcome)
        self._unwritten[key] = row.after(self._unwritten.get(key))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_for_a_while(), name="refusals")

    def forget(self, webhook: str) -> None:
        self._last.pop(webhook, None)
        for key in [key for key in self._unwritten if key[0] == webhook]:
            del self._unwritten[key]

    def last(self, webhook: str) -> list[RefusalRow]:
        return list(self._last.get(webhook, ()))

    async def by_reason(self, webhook: str) -> list[RefusalRow]:
        async with self._lock:
            unwritten = {row.outcome: row for row in self._unwritten.values() if row.webhook_id == webhook}
            stored = {row.outcome: row for row in await self._store.list_refusals(webhook)}
        added = {outcome: row.after(stored.get(outcome)) for outcome, row in unwritten.items()}
        return sorted((stored | added).values(), key=lambda row: row.last_at_ms, reverse=True)[:REASONS_KEPT]

    async def stop(self) -> None:
        """Stop, and write the counts now."""
        task, self._task = self._task, None
        if task is not None:
            async with self._lock:
                task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self._write()

    async def _write_for_a_while(self) -> None:
        while self._unwritten:
            await self._write()
            await asyncio.sleep(WRITE_EVERY_S)

    async def _write(self) -> None:
        async with self._lock:
            rows, self._unwritten = self._unwritten, {}
            try:
                if rows:
                    await self._store.add_refusals(list(rows.values()))
            except errors.StoreError as error:
                log.warning("%d counts of refused requests could not be stored: %s", len(rows), error)
                for key, row in rows.items():
                    newer = self._unwritten.get(key)
                    self._unwritten[key] = newer.after(row) if newer is not None else row
