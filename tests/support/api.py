"""Runs of a real server, over HTTP."""

from __future__ import annotations

from typing import Any

import httpx

from tests.support.until import until


async def ended(client: httpx.AsyncClient, run: str, base_url: str = "") -> dict[str, Any]:
    """The run, once it has come to its end. `base_url` is for clients that have none."""

    async def view() -> dict[str, Any] | None:
        found: dict[str, Any] = (await client.get(f"{base_url}/api/runs/{run}")).raise_for_status().json()
        return found if found["status"] in ("succeeded", "failed", "cancelled") else None

    return await until(view, within_s=90)
