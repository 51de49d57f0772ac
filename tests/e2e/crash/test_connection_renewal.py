"""Two servers on a database and a provider whose refresh tokens count once: one of them renews. When it is killed
before it has stored what the provider gave, the connection says that people have to sign in again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.documents import chain
from tests.support.oauth_provider import CLIENT_SECRET, Provider, oauth_provider
from tests.support.server import SyncServerProcess

pytestmark = pytest.mark.proof

ENDED_S = 1.2  # a token of one second has ended


async def test_one_of_two_servers_renews_and_a_kill_is_said(tmp_path: Path) -> None:
    async with oauth_provider(expires_in=1) as provider:
        servers = [SyncServerProcess(tmp_path, {"WEFT_ALLOW_PRIVATE": provider.place}) for _ in range(2)]
        try:
            async with (
                httpx.AsyncClient(base_url=servers[0].url, timeout=120) as one,
                httpx.AsyncClient(base_url=servers[1].url, timeout=120) as two,
            ):
                (await one.put("/api/connections/crm", json=provider.spec())).raise_for_status()
                await sign_in(one, provider)
                await asyncio.sleep(ENDED_S)

                provider.gate.clear()
                runs = [asyncio.create_task(run(client, provider)) for client in (one, two, one, two)]
                await until_asked(provider, 2)
                await asyncio.sleep(1)  # the other server looks some times meanwhile
                provider.expires_in = 3600
                provider.gate.set()
                assert [each["status"] for each in await asyncio.gather(*runs)] == ["succeeded"] * 4
                assert [each["grant_type"] for each in provider.asked] == ["authorization_code", "refresh_token"]
                shown = (await one.get("/api/connections")).text + "".join(map(repr, [task.result() for task in runs]))

                provider.expires_in = 1
                await sign_in(one, provider)
                await asyncio.sleep(ENDED_S)
                provider.gate.clear()
                asked = len(provider.asked)
                lost = asyncio.create_task(run(one, provider))
                await until_asked(provider, asked + 1)
                servers[0].kill()
                provider.gate.set()  # the provider counts the refresh token as used
                with pytest.raises(httpx.HTTPError):
                    await lost
                failed = await run(two, provider)
                assert failed["error"]["code"] == "connection_needs_sign_in", failed
                [view] = (await two.get("/api/connections")).json()["connections"]
                assert view["state"] == "sign_in_again" and "invalid_grant" in view["problem"]

                provider.expires_in = 3600
                await sign_in(two, provider)
                assert (await run(two, provider))["status"] == "succeeded"
                shown += (await two.get("/api/connections")).text
        finally:
            for server in servers:
                server.kill()
    data = b"".join(path.read_bytes() for path in tmp_path.glob("weft.db*"))
    for value in (CLIENT_SECRET, *provider.access, *provider.refresh, *provider.used):
        assert value not in shown and value.encode() not in data


async def sign_in(client: httpx.AsyncClient, provider: Provider) -> None:
    begun = (await client.post("/api/connections/crm/connect")).raise_for_status().json()
    made = await client.post("/api/oauth/code", json=provider.sign_in(begun["url"]))
    assert made.status_code == 200 and made.json()["state"] == "ready", made.text


async def run(client: httpx.AsyncClient, provider: Provider) -> dict[str, Any]:
    block = {"type": "http", "params": {"url": f"{provider.url}/me", "connection": "crm"}}
    document = chain("a", a=block | {"policy": {"retry": {"max_attempts": 1}}})
    found: dict[str, Any] = (await client.post("/api/runs?wait=90", json={"document": document})).json()
    return found


async def until_asked(provider: Provider, times: int) -> None:
    async with asyncio.timeout(60):
        while len(provider.asked) < times:
            await asyncio.sleep(0.01)
