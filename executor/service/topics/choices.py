"""Choices of a field of a connector, such as the channels of Slack: listed by an operation of its document, with the
account and the rules of a run. Nothing of a credential is in a result. Also the collections of `knowledge`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from executor.blocks.connectors.block import ConnectorBlock, refused_by, request_of
from executor.blocks.connectors.choices import Choice, Listing, listing_of, matches
from executor.blocks.connectors.document import Connector
from executor.blocks.connectors.events import EventBlock
from executor.blocks.connectors.pages import after, at_place, place_of
from executor.blocks.http.binding import using
from executor.blocks.types.client import decoded, plain, status_error
from executor.blocks.types.connected import signed_in_with
from executor.blocks.types.http import BODY_BYTES_MAX, content_of, with_query
from executor.blocks.vault.connection import Credential
from executor.errors import BadRequest, BlockError
from executor.kernel.values.payload import render
from executor.service.parts import Parts
from executor.service.topics.before_runs import filled, names_in, shown_errors

INVALID: Final = "choices_invalid"
ASK_S: Final = 15.0  # of one request: a person waits for it
ALL_S: Final = 30.0
ASKS_MAX: Final = 4  # per process at the same time
PAGES_READ: Final = 5  # for one answer
ENOUGH: Final = 20
CHOICES_MAX: Final = 1_000


class ChoiceList(Struct, frozen=True):
    """`next`: pass it as `cursor` for further ones; null at the end."""

    choices: list[Choice]
    next: str | None


class ChoiceLists:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._room = asyncio.Semaphore(ASKS_MAX)

    async def get(self, type: str, field: str, params: Mapping[str, Any], text: str, cursor: str | None) -> ChoiceList:
        """Raises BadRequest: choices_none, choices_wait, choices_invalid, or one of OF_CALLER; BlockError."""
        if (type, field) == ("knowledge", "collection"):
            rows = await self._parts.store.list_collections()
            listed = [Choice(row.name, row.name, row.description) for row in rows]
            return ChoiceList([one for one in listed if matches(one, text)], None)
        await self._parts.connectors.refresh()
        block = self._parts.registry.handler(type) if type in self._parts.registry.types() else None
        if not isinstance(block, ConnectorBlock | EventBlock):
            raise BadRequest(f"{type[:100]!r} is not the type of a connector", code="choices_none", pointer="/type")
        listing = listing_of(block.connector, field, params, text)
        wanted = "" if listing.searches else text
        vault, redactor = self._parts.vault, self._parts.redactor
        with shown_errors(self._parts, INVALID):
            async with self._room:
                texts = [value for value in listing.params.values() if isinstance(value, str)]
                rules = await vault.open(names_in(texts, {*vault.environment, *vault.names}))
                values = {
                    name: filled(value, f"/params/{name}", vault.values, INVALID) if isinstance(value, str) else value
                    for name, value in listing.params.items()
                }
                listing = replace(listing, params=values)
                with vault.bound(rules):
                    try:
                        async with asyncio.timeout(ALL_S):
                            found, following = await self._read(block.connector, listing, wanted, cursor)
                    except TimeoutError:
                        message = f"{block.connector.title} did not answer within {ALL_S:g} seconds"
                        raise BlockError(message, code="http_timeout", retryable=True) from None
        if following is not None and redactor.redact(following) != following:
            following = None  # the address of the next page has the credential in it
        choices = [Choice(*map(redactor.redact_value, (one.value, one.title, one.about))) for one in found]
        return ChoiceList(choices, following)

    async def _read(
        self, connector: Connector, listing: Listing, text: str, cursor: str | None
    ) -> tuple[list[Choice], str | None]:
        """Read pages until enough was found."""
        pages = listing.operation.pages
        request = request_of(connector, listing.operation, listing.params, self._parts.clock.now_ms())
        number, _, place = (cursor or "0 ").partition(" ")
        count = int(number) if number.isdecimal() and len(number) < 6 else 0
        if cursor and (pages is None or not place or count < 1):
            raise BadRequest("this is no cursor of a list of choices", code=INVALID, pointer="/cursor")
        following = at_place(pages, request, place) if pages is not None and cursor else request
        found: dict[str | int, Choice] = {}
        more: str | None = None
        for read in range(count + 1, count + PAGES_READ + 1):
            answer = await self._ask(connector, following)
            for choice in listing.found(answer["body"]):
                if matches(choice, text):
                    found.setdefault(choice.value, choice)
            then = after(pages, following, answer, read) if pages is not None else None
            more = f"{read} {place_of(pages, then)}" if pages is not None and then is not None else None
            if then is None or len(found) >= ENOUGH:
                break
            following = then
        return list(found.values())[:CHOICES_MAX], more

    async def _ask(self, connector: Connector, request: Mapping[str, Any]) -> dict[str, Any]:
        method = request["method"]
        headers = {name: render(value) for name, value in request["headers"].items()}
        content = content_of(request.get("body"), headers)
        url = with_query(request["url"], request["query"])

        async def ask(credential: Credential | None) -> dict[str, Any]:
            signed = dict(headers)
            answer = await self._parts.services.http.request(
                method,
                url if credential is None else credential.put(url, signed),
                headers=signed,
                content=content,
                timeout_s=ASK_S,
                max_bytes=BODY_BYTES_MAX,
            )
            answer = await plain(answer, json=True)
            if answer.status >= 400:
                raise status_error(method, answer, self._parts.clock.now_ms())
            body = decoded(answer)[0]
            if (refused := refused_by(connector, body)) is not None:
                raise refused
            return {"body": body, "headers": answer.headers}

        with using(url, headers, request.get("body")):
            return await signed_in_with(self._parts.connections, request.get("connection"), ask)
