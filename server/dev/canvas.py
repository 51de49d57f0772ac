"""Stores the workflows of a file in the server, with a draft of each for the canvas, and makes links to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import httpx


class Refused(Exception):
    """The server does not take a document."""


class Canvas:
    """`token`: None where the server asks for none."""

    def __init__(self, url: str, token: str | None) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._token = token
        self._url = url
        self._http = httpx.AsyncClient(base_url=url, headers=headers, timeout=60, trust_env=False)

    async def __aenter__(self) -> Canvas:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._http.aclose()

    async def deploy(self, name: str, document: Mapping[str, Any]) -> tuple[int, bool]:
        """The version that is active now, and whether it is new. Raises Refused."""
        saved = await self._send("POST", "/api/workflows", {"document": document, "name": name})
        return saved["version"], saved["created"]

    async def draft(self, name: str, version: int, document: Mapping[str, Any]) -> str:
        """The id of the draft of this workflow, made or brought up to date. Blocks stay where people have put them."""
        known = await self._find(name)
        if known is None:
            made = await self._send(
                "POST", "/api/drafts", {"document": document, "name": name, "base_version": version}
            )
            return str(made["id"])
        draft = await self._send("GET", f"/api/drafts/{known}")
        placed = with_places(document, draft["document"])
        if placed != draft["document"]:
            headers = {"If-Match": f'"{draft["rev"]}"'}
            await self._send("PUT", f"/api/drafts/{known}", {"document": placed, "name": name}, headers)
        return known

    async def link(self, draft: str) -> str:
        """To the canvas of a draft; where the server asks who it is, it signs one browser in."""
        page = f"/w/{quote(draft)}"
        if self._token is None:
            return f"{self._url}{page}"
        made = await self._send("POST", "/api/sign-in-links")
        address, _, code = str(made["url"]).partition("#")
        return f"{address}?to={quote(page)}#{code}"

    async def _find(self, name: str) -> str | None:
        query = ""
        while True:
            page = await self._send("GET", f"/api/drafts{query}")
            for draft in page["drafts"]:
                if draft["base_name"] == name or draft["name"] == name:
                    return str(draft["id"])
            if page["next"] is None:
                return None
            query = f"?before={quote(page['next'])}"

    async def _send(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        response = await self._http.request(method, path, json=body, headers=headers)
        if response.is_success:
            return response.json()
        problem = response.json() if "json" in response.headers.get("content-type", "") else {}
        lines = [str(problem.get("detail") or f"the server answered {response.status_code}")]
        lines += [f"{one['pointer']}: {one['message']}" for one in problem.get("diagnostics") or ()]
        raise Refused("\n".join(lines))


def with_places(document: Mapping[str, Any], drawn: Mapping[str, Any]) -> dict[str, Any]:
    """`document` with the places and sizes that blocks of the same id have in `drawn`, and its notes."""
    blocks = {}
    for id, block in document["blocks"].items():
        before = drawn.get("blocks", {}).get(id, {})
        blocks[id] = {**block, **{key: before[key] for key in ("at", "size") if key in before and key not in block}}
    notes = {"notes": drawn["notes"]} if "notes" in drawn and "notes" not in document else {}
    return {**document, "blocks": blocks, **notes}
