"""Test events of drafts: the next or the newest one of a source that is polled, and test addresses of webhooks. For
some minutes a draft has an address of its own, whose requests run the draft as it is stored then. Nothing needs to be
published.

Neither an address nor the place in a source is stored: the id of the address has the moment at which it ends and a
token that signs both, and so has the place that the caller sends back. So they survive a restart of the server, and end
by themselves."""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any, Final

import orjson
from msgspec import Struct
from msgspec.json import decode, encode
from msgspec.structs import replace

from executor.blocks.types.polled import Polling, digest
from executor.errors import BadRequest, BlockError, Conflict, NotFound, WebhookDisabled
from executor.kernel.store.topics.webhooks import Auth, WebhookRow
from executor.service.parts import Parts, Topic
from executor.service.topics.before_runs import shown_errors
from executor.service.topics.drafts import Drafts
from executor.service.triggers.declared import StartOf, draft_webhook
from executor.service.triggers.polls import Polls, State
from executor.service.triggers.requests import Received, envelope, same
from executor.service.triggers.webhooks import Delivered, Webhooks

TEST: Final = "test:"
LISTEN_MS: Final = 10 * 60_000
NEXT_MS: Final = 2 * 60_000  # for the next event of a source, which is asked for every few seconds


class DraftAddress(Struct, frozen=True):
    """`url` starts runs of the draft until `until_ms`. `secret`: the sender signs with it, or sends it; None if none is
    needed, or if it is read from `secret_env`."""

    url: str
    until_ms: int
    auth: Auth
    secret: str | None
    secret_env: str | None


class DraftEvent(Struct, frozen=True):
    """`run` of the draft was started with this `input`. If it is None, there is no event yet: until `until_ms`, `after`
    asks for the next one. `newest`: there were events before."""

    run: str | None
    input: Any
    after: str | None = None
    until_ms: int | None = None
    newest: bool = False


class _Place(Struct, frozen=True):
    """The place in a source: `after` of a DraftEvent."""

    until_ms: int
    newest: bool
    state: State


class Listening(Topic):
    """`engine.listening`."""

    def __init__(self, parts: Parts, drafts: Drafts, webhooks: Webhooks, polls: Polls) -> None:
        super().__init__(parts)
        self._drafts = drafts
        self._webhooks = webhooks
        self._polls = polls

    async def poll(self, draft: str, trigger: str, after: str | None = None) -> DraftEvent:
        """Run the draft with the newest event of the source of this block, or with the next one `after` what an answer
        before had; '' begins. The published trigger is not concerned. Raises NotFound, CompileError, BadRequest,
        Conflict (no_events, listening_ended), and the errors of the source."""
        view = await self._drafts.get(draft)
        plan = await self._parts.compiler.plan(view.document, trigger)
        node = plan.nodes[plan.regions[0].entries[0]]
        name = f"{TEST}{draft}:{trigger}:{digest(f'{node.type} {bytes(node.params).decode()}')}"
        place = self._opened(name, after) if after else None
        with shown_errors(self._parts, "params_invalid"):
            try:
                start = StartOf(plan.name or draft, 0, plan, node)
                event, state = await self._polls.look(start, f"poll:{name}", None if place is None else place.state)
            except TimeoutError:
                raise BlockError("the source did not answer in time", code="http_timeout", retryable=True) from None
        if after is not None and (place is None or event is None):
            place = place or _Place(self._clock.now_ms() + NEXT_MS, event is not None, state)
            sealed = self._sealed(name, replace(place, state=state))
            return DraftEvent(None, None, sealed, place.until_ms, place.newest)
        if event is None:
            raise Conflict("there is no event in the source yet", code="no_events")
        with shown_errors(self._parts, "params_invalid"):
            value = await event.loaded()
        input = {"event": value, "id": event.id, "at": self._clock.now_ms()}
        if Polling(orjson.loads(bytes(node.params))).groups:
            input["events"] = [value]
        input = self._parts.redactor.redact_value(input)
        # Asked again because the answer was lost, it is the same run.
        key = f"next:{digest(event.id)}:{place.until_ms}:{name}"[:200] if place else None
        started, _ = await self._drafts.run(draft, input=input, trigger=trigger, idempotency_key=key)
        return DraftEvent(started.run, input)

    def _sealed(self, name: str, place: _Place) -> str:
        data = urlsafe_b64encode(encode(place)).decode()
        return f"{data}.{self._parts.links.page_token(f'{name}:{data}', 0)}"

    def _opened(self, name: str, after: str) -> _Place:
        """Raises Conflict, also if the trigger was changed since."""
        data, _, token = after.partition(".")
        if same(token, self._parts.links.page_token(f"{name}:{data}", 0)):
            place = decode(urlsafe_b64decode(data), type=_Place)
            if self._clock.now_ms() < place.until_ms:
                return place
        raise Conflict("listening has ended, or the trigger was changed", code="listening_ended", hint="Listen again.")

    async def listen(self, draft: str, trigger: str) -> DraftAddress:
        """Return an address for the next minutes. Raises NotFound, BadRequest (not_a_webhook)."""
        row, links = await self._row(draft, trigger), self._parts.links
        until_ms = self._clock.now_ms() + LISTEN_MS
        url = links.webhook_url(f"{row.id}:{until_ms}:{links.page_token(row.id, until_ms)}")
        made_here = row.auth != "none" and row.secret_env is None
        secret = links.webhook_secret(row.id, row.generation) if made_here else None
        return DraftAddress(url, until_ms, row.auth, secret, row.secret_env)

    async def receive(self, id: str, request: Received, admit: Callable[[Auth], None]) -> Delivered:
        """Run the draft with a request. Raises like `Webhooks.receive`, and WebhookDisabled once its time is over."""
        draft, trigger, until, token = [*id.removeprefix(TEST).split(":"), "", "", ""][:4]
        known = f"{TEST}{draft}:{trigger}"
        if not (until.isascii() and until.isdecimal() and len(until) < 16):
            raise _unknown()
        if not same(token, self._parts.links.page_token(known, int(until))):
            raise _unknown()
        now_ms = self._clock.now_ms()
        if now_ms >= int(until):
            raise WebhookDisabled()
        row = await self._row(draft, trigger)
        proof = await self._webhooks.proof(row, request, now_ms)
        admit(row.auth)
        delivery = proof.delivery or f"weft-{secrets.token_hex(8)}"
        input: Any = envelope(request, orjson.loads(row.headers), delivery, now_ms)
        # Signed twice, it is one request: the second starts no run.
        key = f"{known}:{proof.digest or delivery}"[:200]
        run, _ = await self._drafts.run(
            draft, input=self._parts.redactor.redact_value(input), trigger=trigger, idempotency_key=key
        )
        return Delivered(delivery, run, row.timeout_ms / 1000 if row.respond == "run" else None)

    async def _row(self, draft: str, trigger: str) -> WebhookRow:
        """Return the webhook that publishing the draft would make, with a secret that stays the same until then."""
        view = await self._drafts.get(draft)
        row = draft_webhook(view.document, f"{TEST}{draft}:{trigger}", trigger, self._clock.now_ms())
        if row is None:
            raise BadRequest(
                f"block {trigger[:80]!r} of the draft is no enabled webhook",
                code="not_a_webhook",
                pointer="/trigger",
                hint="name a block of type `webhook`",
            )
        return replace(row, generation=0)


def _unknown() -> NotFound:
    return NotFound("there is no test address like this", code="webhook_not_found")
