"""Tools of a real MCP server, over the wire and under the guard."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import orjson
import pytest

from executor.blocks.http.addresses import Resolve, resolve
from executor.blocks.http.binding import Rules, bound_to
from executor.blocks.http.client import GuardedClient
from executor.blocks.mcp.base import ServerTool, ToolServer
from executor.blocks.mcp.client import ToolClient
from executor.errors import BlockError
from executor.kernel.process.extras import install
from tests.support.endpoints import Request, answer, http
from tests.support.mcp_server import mcp_shop


@asynccontextmanager
async def client_of(*allow_private: str, resolve: Resolve = resolve) -> AsyncIterator[ToolClient]:
    client = ToolClient(GuardedClient(allow_private, resolve=resolve))
    try:
        yield client
    finally:
        await client.close()


async def failure(client: ToolClient, server: ToolServer | str, only: Sequence[str] = ()) -> BlockError:
    with pytest.raises(BlockError) as caught:
        await client.tools(server if isinstance(server, ToolServer) else ToolServer(server), only)
    return caught.value


def answering(*results: Any, status: int = 200) -> Any:
    """A server that answers requests in turn, in the protocol of 2025: the handshake, then these results."""
    left = list(results)

    def handler(request: Request) -> bytes:
        asked = orjson.loads(request.body or b"{}")
        if "id" not in asked:
            return answer(202)
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
        if asked["method"] == "server/discover":
            reply["error"] = {"code": -32601, "message": "no"}
        elif asked["method"] == "initialize":
            info = {"name": "s", "version": "1"}
            reply["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        else:
            reply["result"] = left.pop(0)
        return answer(status, orjson.dumps(reply), content_type="application/json")

    return handler


def listed(*tools: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"tools": [{"inputSchema": {"type": "object"}, **tool} for tool in tools], **more}


async def test_tools_and_calls() -> None:
    async with mcp_shop() as shop, client_of(shop.place) as client:
        server = ToolServer(shop.url, {"Authorization": "Bearer key"})
        tools = await client.tools(server)
        assert [(tool.name, tool.description, tool.reads) for tool in tools] == [
            ("find", "Finds an order.", True), ("pay", "Pays an order.", False),
        ]  # fmt: skip
        assert tools[0].schema["properties"]["id"]["type"] == "integer"
        assert [tool.name for tool in await client.tools(server, ["pay"])] == ["pay"]
        assert await client.call(server, "find", {"id": 3}, "k1") == {"tool": "find", "order": 3}
        with pytest.raises(BlockError) as failed:
            await client.call(server, "pay", {"id": -1}, "k2")
        with pytest.raises(BlockError) as unknown:
            await client.call(server, "drop", {}, "k3")
    assert (failed.value.code, failed.value.retryable) == ("mcp_tool_failed", False)
    assert "no such order" in failed.value.message
    assert not unknown.value.retryable and "drop" in unknown.value.message
    assert all(headers["authorization"] == "Bearer key" for headers in shop.headers)
    allowed = {"accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "host",
               "last-event-id", "user-agent"}  # fmt: skip
    sent = {name for headers in shop.headers for name in headers}
    assert {name for name in sent if not name.startswith("mcp-")} <= allowed


async def test_only_tools_that_are_there() -> None:
    async with mcp_shop() as shop, client_of(shop.place) as client:
        error = await failure(client, shop.url, ["find", "drop"])
    assert (error.code, error.retryable) == ("mcp_tool_missing", False) and "drop" in error.message


async def test_the_guard_is_under_the_library() -> None:
    """A private address, and a name that leads to another one later: each connection is judged when it is dialled."""
    async with mcp_shop() as shop:
        async with client_of() as client:
            assert (await failure(client, shop.url)).code == "address_refused"
        places = ["127.0.0.1", "10.1.2.3"]

        async def rebinding(host: str, port: int) -> list[str]:
            return [places.pop(0) if len(places) > 1 else places[0]]

        async with client_of(shop.place, resolve=rebinding) as client:
            # The first connection may be made, as the operator permits that very address; all others may not.
            error = await failure(client, shop.url.replace("127.0.0.1", "tools.example"))
    assert (error.code, error.retryable) == ("address_refused", False)


async def test_redirects_stay_at_the_server_of_the_author() -> None:
    async with (
        mcp_shop() as shop,
        http(lambda r: answer(307, location=shop.url)) as first,
        client_of(first.place, shop.place) as client,
    ):
        error = await failure(client, ToolServer(f"{first.url}/mcp", {"Authorization": "Bearer key"}))
    assert error.code == "mcp_failed" and not error.retryable and "edirect" in error.message
    assert shop.headers == []


async def test_stored_secrets_go_to_their_hosts_alone() -> None:
    async with mcp_shop() as shop, client_of(shop.place) as client:
        server = ToolServer(shop.url, {"Authorization": "Bearer key"})
        with bound_to({"KEY": Rules(["tools.example"])}):
            error = await failure(client, server)
        assert shop.headers == []
        with bound_to({"KEY": Rules([f"http://{shop.place}"])}):
            assert len(await client.tools(server)) == 2
    assert (error.code, error.retryable) == ("secret_host_refused", False)


async def test_what_a_server_says_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    deep: dict[str, Any] = {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}}
    hidden = "".join(chr(0xE0000 + ord(c)) for c in "obey")
    page = listed(
        {"name": "ok", "description": f"Reads{hidden}\u200b it. {'x' * 3000}", "annotations": {"readOnlyHint": "yes"}},
        {"name": "elsewhere", "inputSchema": deep},
        {"name": "large", "inputSchema": {"type": "object", "description": "x" * 40_000}},
        {"name": "n" * 200},
        {"name": "a\nb"},
    )
    page["tools"][0]["annotations"] = {"readOnlyHint": True}
    async with http(answering(page)) as server, client_of(server.place) as client:
        tools = await client.tools(ToolServer(server.url))
    assert [(tool.name, len(tool.description), tool.reads) for tool in tools] == [("ok", 2000, True)]
    assert tools[0].description.startswith("Reads it. x")
    many = [listed({"name": f"t{n}"}, nextCursor="more") for n in range(200)]
    async with http(answering(*many)) as server, client_of(server.place) as client:
        assert len(await client.tools(ToolServer(server.url))) == 20  # pages
        crowd = answering(listed(*({"name": f"t{n}"} for n in range(101))))
    async with http(crowd) as server, client_of(server.place) as client:
        error = await failure(client, server.url)
        assert error.code == "mcp_failed" and error.hint
    monkeypatch.setattr("executor.blocks.mcp.session.ANSWER_BYTES_MAX", 3000)
    async with http(answering(page)) as server, client_of(server.place) as client:
        error = await failure(client, server.url)
    assert (error.code, error.retryable) == ("response_too_large", False)


async def test_results_are_data_and_bounded() -> None:
    def result(*content: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"content": list(content), **more}

    image = {"type": "image", "mimeType": "image/png", "data": "AAAA"}
    link = {"type": "resource_link", "name": "log", "uri": "file:///log"}
    text = {"type": "text", "text": "a"}
    results = [
        result(text, image, link),
        result({"type": "text", "text": "x" * 300_000}),
        result(text, structuredContent={"n": 1}),
        result(text, structuredContent={"n": "x" * 300_000}),
    ]
    async with http(answering(*results)) as server, client_of(server.place) as client:
        place = ToolServer(server.url)
        got = [await client.call(place, "t", {}, "k") for _ in results]
    assert got[0] == "a\n[image image/png, 3 bytes]\n[link log: file:///log]"
    assert got[1].endswith("[cut: it has 300000 characters]") and len(got[1]) < 263_000
    assert got[2] == {"n": 1} and got[3].startswith('{"n":"xxx') and len(got[3]) < 263_000


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [(401, "mcp_failed", False), (503, "mcp_failed", True), (429, "mcp_failed", True)],
)
async def test_answers_that_are_errors(status: int, code: str, retryable: bool) -> None:
    async with http(lambda r: answer(status)) as server, client_of(server.place) as client:
        error = await failure(client, server.url)
    assert (error.code, error.retryable) == (code, retryable) and str(status) in error.message


def _page(kind: str, body: bytes, _: Request) -> bytes:
    return answer(200, body, content_type=kind)


async def test_servers_that_are_none() -> None:
    pages = {"text/html": b"<html>", "application/json": b"{"}
    for kind in pages:
        async with http(partial(_page, kind, pages[kind])) as server, client_of(server.place) as client:
            assert (await failure(client, server.url)).code == "mcp_failed"
    async with client_of("127.0.0.1") as client:
        gone = await failure(client, server.url)
        assert (gone.code, gone.retryable) == ("http_connection", True)
        for url in ("file:///etc/passwd", "stdio:ls", "http://user:pass@127.0.0.1/", ""):
            assert (await failure(client, url)).code == "url_invalid"


async def test_a_server_that_does_not_answer() -> None:
    async def silent(request: Request) -> bytes:
        await asyncio.sleep(30)
        return b""

    async with http(silent) as server, client_of(server.place) as client:
        error = await failure(client, ToolServer(server.url, timeout_s=0.2))
        assert (error.code, error.retryable) == ("http_timeout", True)


async def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "executor.blocks.mcp.session", raising=False)
    monkeypatch.setattr("executor.blocks.mcp.client.find_spec", lambda name: None)
    async with client_of() as client:
        error = await failure(client, "http://127.0.0.1:9/")
    assert (error.code, error.hint) == ("mcp_missing", install("mcp"))


def test_a_server_without_mcp_loads_none_of_it() -> None:
    program = (
        "import sys, server.app, server.cli, executor.open.embed, executor.blocks.types.agent\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('mcp', 'mcp_types', 'httpx2', 'pydantic')])"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_a_server_shows_no_secret() -> None:
    assert repr(ToolServer("https://tools.example/key", {"Authorization": "x"})) == "ToolServer(host='tools.example')"
    assert ServerTool("a", "", {}).reads is False
