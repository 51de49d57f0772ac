from __future__ import annotations

import httpx
from msgspec.structs import replace

from server.app import build_engine, create_app
from server.settings import Settings
from tests.support.mcp_server import mcp_shop
from tests.unit.server.conftest import BASE


async def test_the_tools_of_a_server_are_listed(settings: Settings) -> None:
    async with mcp_shop() as shop:
        settings = replace(settings, allow_private=(shop.place,))
        engine = await build_engine(settings)
        transport = httpx.ASGITransport(app=create_app(settings, engine))
        try:
            async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
                found = await client.post("/api/mcp/check", json={"url": shop.url})
        finally:
            await engine.close()
    assert found.status_code == 200, found.text
    assert found.json() == {
        "tools": [
            {"name": "find", "description": "Finds an order.", "reads": True},
            {"name": "pay", "description": "Pays an order.", "reads": False},
        ]
    }


async def test_what_failed_is_said(client: httpx.AsyncClient) -> None:
    refused = await client.post("/api/mcp/check", json={"url": "http://127.0.0.1:9/mcp"})
    assert (refused.status_code, refused.json()["code"]) == (400, "address_refused")
    for wrong, code in (({"url": "0"}, "url_invalid"), ({"url": "http://x", "connection": "no"}, "connection_unknown")):
        answer = await client.post("/api/mcp/check", json=wrong)
        assert (answer.status_code, answer.json()["code"]) == (400, code)
    in_a_run = await client.post("/api/mcp/check", json={"url": "http://x/<start.id>"})
    assert (in_a_run.status_code, in_a_run.json()["code"], in_a_run.json()["pointer"]) == (400, "mcp_invalid", "/url")
    for body in ({}, {"url": ""}, {"url": "http://x", "tools": []}):
        assert (await client.post("/api/mcp/check", json=body)).status_code == 422
    assert "/api/mcp/check" not in (await client.get("/api/audit")).text
