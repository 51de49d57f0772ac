"""weft as an MCP server: a real process, the client of the library `mcp` over loopback, kill -9 in between."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.support.documents import document
from tests.support.server import ServerProcess, free_port
from tests.support.until import until


async def test_a_client_of_mcp_across_a_kill(tmp_path: Path) -> None:
    """There are no sessions: a client that has seen a server end asks the next one."""
    port = free_port(random.Random())
    place = (tmp_path / "weft.db", port, tmp_path / "log")
    server = await ServerProcess.start(*place)
    await server.ready()
    try:
        async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:
            ask = {"type": "approval", "params": {"title": "Pay?"}}
            asked = document("asked", "start a", blocks={"start": {"type": "start"}, "a": ask})
            asked["input"] = {"type": "object", "properties": {"text": {"type": "string"}}}
            (await http.post(f"{server.url}/api/workflows", json={"document": asked})).raise_for_status()
            async with Client(streamable_http_client(f"{server.url}/mcp", http_client=http)) as client:
                assert "run_asked" in {tool.name for tool in (await client.list_tools()).tools}
                started = _told(await client.call_tool("run_asked", {"text": "x"}))
                assert started["status"] == "waiting"
                await server.kill()
                server = await ServerProcess.start(*place)
                await server.ready()
                [wait] = _told(await client.call_tool("waits", {"run": started["run"]}))["waits"]
                given = {"run": wait["run"], "wait": wait["wait"], "action": "approve"}
                assert _told(await client.call_tool("answer", given))["status"] == "answered"

                async def ended() -> bool:
                    found = _told(await client.call_tool("runs", {"run": started["run"]}))
                    return bool(found["status"] == "succeeded")

                await until(ended)
            # What other sites may not do with the API, they may not do here.
            elsewhere = {"origin": "https://evil.example", "content-type": "application/json"}
            assert (await http.post(f"{server.url}/mcp", content=b"{}", headers=elsewhere)).status_code == 403
            assert (await http.post(f"{server.url}/mcp", content=b"{}", headers={"host": "evil"})).status_code == 421
    finally:
        await server.kill()


def _told(result: Any) -> dict[str, Any]:
    assert not result.is_error, result
    return dict(result.structured_content)
