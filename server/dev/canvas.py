"""Stores the workflows of a file in the server, with a draft of each for the canvas, and makes links to them."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Self, TypeVar
from urllib.parse import quote

from executor.service.replay.journals import Journal
from server.client import ApiError, AsyncClient, ClientError
from server.dev.journals import open_journals

T = TypeVar("T")


class Refused(Exception):
    """The server does not take a document, or does not answer."""


class Canvas:
    """`token`: None where the server asks for none."""

    def __init__(self, url: str, token: str | None) -> None:
        self._token = token
        self._client = AsyncClient(url, token or "")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._client.close()

    async def deploy(self, name: str, document: Mapping[str, Any]) -> tuple[int, bool]:
        """The version that is active now, and whether it is new. Raises Refused."""
        saved = await _taken(self._client.deploy(document, name))
        return saved["version"], saved["created"]

    async def draft(self, name: str, version: int, document: Mapping[str, Any]) -> str:
        """The id of the draft of this workflow, made or brought up to date. Blocks stay where people have put them.
        Raises Refused."""
        known = await self._find(name)
        if known is None:
            return (await _taken(self._client.create_draft(document, name, version)))["id"]
        draft = await _taken(self._client.draft(known))
        placed = with_places(document, draft["document"])
        if placed != draft["document"]:
            await _taken(self._client.save_draft(known, draft["rev"], placed, name))
        return known

    async def open_journals(self, name: str) -> list[Journal]:
        """The journals of the open runs of a durable function. Raises Refused."""
        return await _taken(open_journals(self._client, name))

    async def link(self, draft: str) -> str:
        """Return the address of a draft's canvas; if the server requires signing in, it signs one browser in. Raises
        Refused."""
        page = f"/w/{quote(draft)}"
        if self._token is None:
            return f"{self._client.url}{page}"
        address, _, code = (await _taken(self._client.sign_in_link()))["url"].partition("#")
        return f"{address}?to={quote(page)}#{code}"

    async def _find(self, name: str) -> str | None:
        before: str | None = None
        while True:
            page = await _taken(self._client.drafts(before))
            for draft in page["drafts"]:
                if draft["base_name"] == name or draft["name"] == name:
                    return draft["id"]
            before = page["next"]
            if before is None:
                return None


async def _taken(answer: Awaitable[T]) -> T:
    """Raises Refused, with a line for each error."""
    try:
        return await answer
    except ClientError as error:
        found = error.diagnostics if isinstance(error, ApiError) else []
        raise Refused("\n".join([error.message, *(f"{one['pointer']}: {one['message']}" for one in found)])) from None


def with_places(document: Mapping[str, Any], drawn: Mapping[str, Any]) -> dict[str, Any]:
    """`document` with the places and sizes that blocks of the same id have in `drawn`, and its notes."""
    blocks = {}
    for id, block in document["blocks"].items():
        before = drawn.get("blocks", {}).get(id, {})
        blocks[id] = {**block, **{key: before[key] for key in ("at", "size") if key in before and key not in block}}
    notes = {"notes": drawn["notes"]} if "notes" in drawn and "notes" not in document else {}
    return {**document, "blocks": blocks, **notes}
