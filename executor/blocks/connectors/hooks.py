"""Registrations of this server at a service, by the `hooks` of its document."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from executor.blocks.connectors.block import refused_by, request_of
from executor.blocks.connectors.document import HookCall, Hooks, Pages
from executor.blocks.connectors.events import EventBlock, number_of
from executor.blocks.connectors.pages import PAGES_MAX, after, at, items_of
from executor.blocks.types import http
from executor.blocks.types.params import invalid
from executor.errors import BlockError
from executor.kernel.handler.base import StepContext

_GONE = (404, 410)


class Registered(Struct, frozen=True):
    id: str
    url: str
    expires_at_ms: int | None = None
    secret: str | None = None


class Registrations:
    """The registrations of a trigger, asked for with its params, which `ctx` has. `url`: the address of this server,
    `name`: what it is called where the service wants one, `secret`: unless the service chooses it."""

    def __init__(self, block: EventBlock, ctx: StepContext, url: str, name: str, secret: str) -> None:
        event = block.event_of(ctx.params)
        if block.connector.hooks is None or event is None or event.push is None:
            raise BlockError(f"{block.connector.title} does not push this event", code="not_pushed", retryable=False)
        self.hooks: Hooks = block.connector.hooks
        self._connector, self._event, self._ctx = block.connector, event, ctx
        self._values: dict[str, Any] = {**event.push, "hook_url": url, "hook_name": name, "hook_secret": secret}
        self._taken = False

    async def all(self) -> list[Registered]:
        pages = self.hooks.pages or Pages("link", self.hooks.items)
        request: dict[str, Any] | None = await self._request(self.hooks.list, {})
        found: list[Registered] = []
        for number in range(1, PAGES_MAX + 1):
            assert request is not None
            answer = await self._send(request)
            found += map(self._read, items_of(pages, answer["body"]))
            request = after(pages, request, answer, number)
            if request is None:
                break
        return found

    async def create(self) -> Registered:
        return await self._made(self.hooks.create, {})

    async def renew(self, one: Registered) -> Registered | None:
        """Return it as it is from now on, or None if there is no such registration any more."""
        assert self.hooks.renew is not None
        try:
            made = await self._made(self.hooks.renew, {"hook_id": one.id}, one)
        except BlockError as error:
            if is_gone(error):
                return None
            raise
        return made

    async def delete(self, id: str) -> None:
        """Delete one that may be deleted already."""
        try:
            await self._send(await self._request(self.hooks.delete, {"hook_id": id}))
        except BlockError as error:
            if not is_gone(error):
                raise

    async def _made(self, call: HookCall, more: Mapping[str, Any], known: Registered | None = None) -> Registered:
        if self.hooks.lasts_s:
            until = datetime.fromtimestamp(self._ctx.now_ms // 1000 + self.hooks.lasts_s, UTC)
            more = {**more, "hook_expires": until.strftime("%Y-%m-%dT%H:%M:%SZ")}
        answer = await self._send(await self._request(call, more))
        return self._read(at(self.hooks.made, answer["body"]), known)

    async def _request(self, call: HookCall, more: Mapping[str, Any]) -> dict[str, Any]:
        if self.hooks.before is not None and not self._taken:
            self._taken = True
            answer = await self._send(await self._request(self.hooks.before, {}))
            self._values |= {name: at(pointer, answer["body"]) for name, pointer in self.hooks.take.items()}
        operation = msgspec.structs.replace(
            self._connector.operations[self._event.operation],
            method=call.method, path=call.path, base_url=call.base_url, query=call.query, headers=call.headers,
            body=call.body, pages=None,
        )  # fmt: skip
        params = {**self._ctx.params, **self._event.set}
        request = request_of(self._connector, operation, params, self._ctx.now_ms, {**self._values, **more})
        if call.method != "GET":  # one key for each: a service may remember what it answered to another request
            request["headers"] = {"Idempotency-Key": f"weft-{secrets.token_hex(16)}", **request["headers"]}
        return request

    async def _send(self, request: dict[str, Any]) -> dict[str, Any]:
        done = await http.block.run(msgspec.structs.replace(self._ctx, params=request))
        answer: dict[str, Any] = done.output
        if (refused := refused_by(self._connector, answer["body"])) is not None:
            raise refused
        return answer

    def _read(self, item: Any, known: Registered | None = None) -> Registered:
        hooks = self.hooks
        id, url = (at(hooks.id, item), at(hooks.url, item)) if known is None else (known.id, known.url)
        if id in (None, ""):
            raise invalid(f"{self._connector.title} answered with no id at {hooks.id!r}")
        expires = number_of(at(hooks.expires, item)) if hooks.expires else None
        secret = at(hooks.secret, item) if hooks.secret else None
        return Registered(str(id), str(url or ""), None if expires is None else round(expires * 1000), secret)


def is_gone(error: BlockError) -> bool:
    """Return True if what was asked about does not exist."""
    return error.extra.get("answer_status") in _GONE
