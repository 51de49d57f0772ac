"""weft as an MCP server: each tool with each kind of caller, and the client of the library `mcp` against the real
application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from msgspec.structs import replace
from starlette.applications import Starlette

from executor.kernel.process.acting import ROLES, Role, includes
from executor.open.engine import Engine
from server.api.mcp_tools import tool_name
from server.app import create_app
from server.settings import Settings
from tests.unit.server.conftest import BASE

Json = dict[str, Any]
SERVER = {"authorization": "Bearer the-server-token"}


@pytest.fixture
def closed(settings: Settings, engine: Engine) -> Starlette:
    return create_app(replace(settings, token="the-server-token"), engine)


@pytest.fixture
async def http(closed: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=closed), base_url=BASE, headers=SERVER) as client:
        yield client


async def token(http: httpx.AsyncClient, role: str, **more: object) -> Json:
    made = await http.post("/api/tokens", json={"name": "test", "role": role, **more})
    return {"authorization": f"Bearer {made.json()['token']}"}


async def ask(http: httpx.AsyncClient, method: str, headers: Json | None = None, **params: Any) -> Json:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = await http.post("/mcp", json=body, headers=headers or {})
    assert answer.status_code == 200, answer.text
    assert answer.json()["id"] == 1
    return dict(answer.json())


async def call(http: httpx.AsyncClient, tool: str, given: Json, headers: Json | None = None, **more: Any) -> Json:
    """The result, with `failed`."""
    result = (await ask(http, "tools/call", headers, name=tool, arguments=given, **more))["result"]
    return {**result["structuredContent"], "failed": result["isError"]}


async def names(http: httpx.AsyncClient, headers: Json | None = None) -> list[str]:
    return [tool["name"] for tool in (await ask(http, "tools/list", headers))["result"]["tools"]]


@pytest.fixture
async def stored(http: httpx.AsyncClient, hello: Json, asking: Json) -> None:
    fields = [
        {"name": "text", "type": "string", "required": True, "description": "What is paid."},
        {"name": "n", "type": "any", "default": 2},
        {"name": "bill", "type": "file", "title": "Bill"},
    ]
    asking["blocks"]["start"]["params"] = {"fields": fields}
    bare = {**hello, "name": "bare"}
    del bare["input"]
    for document in (hello, asking, bare):
        assert (await http.post("/api/workflows", json=document)).status_code == 201


@asynccontextmanager
async def client_of(app: Starlette, headers: Json) -> AsyncIterator[Client]:
    transport = httpx2.ASGITransport(app=app)
    async with (
        httpx2.AsyncClient(transport=transport, headers=headers) as http,
        Client(streamable_http_client(f"{BASE}/mcp", http_client=http)) as client,
    ):
        yield client


async def test_the_client_of_the_library(closed: Starlette, http: httpx.AsyncClient, stored: None, hello: Json) -> None:
    """Lists, starts, asks, answers; and a workflow that is stored meanwhile is a tool."""
    async with client_of(closed, SERVER) as client:
        assert client.server_info is not None and client.server_info.name == "weft"
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"runs", "waits", "answer", "run_hello", "run_asking"}
        assert tools["run_hello"].input_schema == hello["input"]
        assert tools["run_asking"].input_schema == {
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "What is paid."},
                "n": {"default": 2},
                "bill": {"type": "object", "format": "file", "title": "Bill"},
            },
            "required": ["text"],
        }
        done = await client.call_tool("run_hello", {"name": "Ada"})
        assert not done.is_error and done.structured_content["output"] == {"greeting": "hello Ada"}
        assert done.structured_content["status"] == "succeeded"
        asked = await client.call_tool("run_asking", {"text": "rent"})
        [wait] = asked.structured_content["waits"]
        assert asked.structured_content["status"] == "waiting" and wait["request"]["show"]["text"] == "rent"
        [listed] = (await client.call_tool("waits", {})).structured_content["waits"]
        assert (listed["run"], listed["wait"]) == (wait["run"], wait["wait"])
        which = {"run": wait["run"], "wait": wait["wait"]}
        wrong = await client.call_tool("answer", {**which, "action": "approve", "fields": {"amount": 0}})
        assert wrong.is_error and "/amount" in str(wrong.structured_content)
        right = await client.call_tool("answer", {**which, "action": "approve", "fields": {"amount": 3}})
        assert not right.is_error and right.structured_content["status"] == "answered"
        again = await client.call_tool("answer", {**which, "action": "approve", "fields": {"amount": 3}})
        assert again.is_error
        await http.post("/api/workflows", json={**hello, "name": "bye"})
        assert "run_bye" in {tool.name for tool in (await client.list_tools()).tools}
        await http.delete("/api/workflows/bye")
        assert "run_bye" not in {tool.name for tool in (await client.list_tools()).tools}


async def test_the_answer_is_in_the_name_of_the_caller(http: httpx.AsyncClient, stored: None, engine: Engine) -> None:
    approver = await token(http, "approver")
    started = await call(http, "run_asking", {"text": "rent"})
    [wait] = started["waits"]
    given = {"run": started["run"], "wait": wait["wait"], "action": "approve", "fields": {"amount": 1}}
    answered = await call(http, "answer", given, approver)
    assert not answered["failed"]
    found = await engine.waits.get(started["run"], wait["wait"])
    assert found.answered_by is not None and found.answered_by.startswith("token:")
    row = (await engine.store.read_audit())[-1]
    assert (row.actor, row.action, row.detail) == (found.answered_by, "POST /mcp", "approve")
    assert row.object == f"/api/runs/{started['run']}/waits/ask"
    [begun] = await engine.store.read_events(started["run"], limit=1)
    assert b'"by":"server-token"' in (begun.data or b"")


async def test_every_tool_with_every_role(http: httpx.AsyncClient, stored: None) -> None:
    needs: dict[str, Role] = {"runs": "viewer", "waits": "viewer", "answer": "approver"}
    needs |= {"run_hello": "editor", "run_asking": "editor"}
    started = await call(http, "run_asking", {"text": "rent"})
    unanswerable = {"run": started["run"], "wait": "none"}
    given = {"answer": unanswerable, "run_hello": {"name": "x"}, "run_asking": {"text": "x"}}
    for role in ROLES:
        headers = await token(http, role)
        may = {tool for tool, needed in needs.items() if includes(role, needed)}
        if not may:
            asked = await http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=headers)
            assert (asked.status_code, asked.json()["needs"]) == (403, "viewer"), role
            continue
        assert set(await names(http, headers)) == may
        for tool in needs:
            result = await call(http, tool, given.get(tool, {}), headers)
            refused = result.get("error", {}).get("code") == "forbidden"
            assert refused == (tool not in may), (role, tool)
    viewer = await token(http, "viewer")
    [wait] = (await call(http, "waits", {"run": started["run"]}, viewer))["waits"]
    assert "link" not in wait
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    refused = await http.post("/mcp", json=body, headers={"authorization": "Bearer wrong"})
    assert refused.status_code == 401


async def test_a_wait_that_is_for_other_people(http: httpx.AsyncClient, stored: None, asking: Json) -> None:
    asking["blocks"]["ask"]["params"]["by"] = ["user:ada"]
    await http.post("/api/workflows", json=asking)
    started = await call(http, "run_asking", {"text": "rent"})
    given = {"run": started["run"], "wait": "ask", "action": "approve", "fields": {"amount": 1}}
    for role in ("approver", "editor"):
        answered = await call(http, "answer", given, await token(http, role))
        assert answered["failed"] and answered["error"]["code"] == "not_yours", role


async def test_a_token_for_some_workflows(http: httpx.AsyncClient, stored: None) -> None:
    narrow = await token(http, "admin", workflows=["hello"])
    other = await call(http, "run_asking", {"text": "rent"})
    assert await names(http, narrow) == ["runs", "waits", "answer", "run_hello"]
    assert not (await call(http, "run_hello", {}, narrow))["failed"]
    unknown = await ask(http, "tools/call", narrow, name="run_asking", arguments={"text": "x"})
    assert unknown["error"]["code"] == -32602
    [wait] = other["waits"]
    for tool, given in (
        ("runs", {}), ("runs", {"run": other["run"]}), ("runs", {"workflow": "asking"}), ("waits", {}),
        ("waits", {"run": other["run"]}), ("answer", {"run": other["run"], "wait": wait["wait"]}),
    ):  # fmt: skip
        refused = await call(http, tool, given, narrow)
        assert refused["failed"] and refused["error"]["code"] == "forbidden", (tool, given)
    listed = await call(http, "runs", {"workflow": "hello"}, narrow)
    assert [run["workflow"] for run in listed["runs"]] == ["hello"]


async def test_the_same_key_is_the_same_run(http: httpx.AsyncClient, stored: None) -> None:
    meta = {"weft/idempotencyKey": "k1"}
    first = await call(http, "run_hello", {"name": "a"}, _meta=meta)
    assert (await call(http, "run_hello", {"name": "a"}, _meta=meta))["run"] == first["run"]
    assert (await call(http, "run_hello", {"name": "a"}, {"idempotency-key": "k1"}))["run"] == first["run"]
    other = await call(http, "run_hello", {"name": "b"}, _meta=meta)
    assert other["failed"] and other["error"]["code"] == "idempotency_key_reused"
    assert (await call(http, "run_hello", {"name": "b"}, _meta={"weft/idempotencyKey": ""}))["failed"]


async def test_a_run_that_takes_longer(
    http: httpx.AsyncClient, stored: None, hello: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.api.mcp_tools.WAIT_S", 0.0)
    hello["blocks"]["greet"] = {"type": "wait", "params": {"seconds": 3600}}
    await http.post("/api/workflows", json=hello)
    started = await call(http, "run_hello", {})
    assert not started["failed"] and started["run"] in started["next"] and "output" not in started
    assert (await call(http, "runs", {"run": started["run"]}))["run"] == started["run"]


async def test_what_is_wrong_is_told(http: httpx.AsyncClient, stored: None) -> None:
    missing = await call(http, "run_asking", {})
    assert missing["failed"] and "text" in str(missing["error"])
    for tool, given in (("runs", {"limit": 51}), ("runs", {"x": 1}), ("answer", {}), ("runs", {"run": "unknown"})):
        assert (await call(http, tool, given))["failed"], (tool, given)
    assert (await ask(http, "tools/call", name="run_bare", arguments={}))["error"]["code"] == -32602
    assert (await ask(http, "tools/call", name=1))["error"]["code"] == -32602
    assert (await ask(http, "tools/list", cursor=1))["error"]["code"] == -32602
    assert (await ask(http, "resources/list"))["error"]["code"] == -32601
    assert (await ask(http, "ping"))["result"] == {}
    for wanted, spoken in (("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25")):
        result = (await ask(http, "initialize", protocolVersion=wanted))["result"]
        assert result["protocolVersion"] == spoken
    notified = await http.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (notified.status_code, notified.content) == (202, b"")
    assert (await http.get("/mcp")).status_code == 405
    assert (await http.post("/mcp", json=[])).status_code == 422
    elsewhere = {"origin": "https://evil.example"}
    assert (await http.post("/mcp", json={"jsonrpc": "2.0"}, headers=elsewhere)).status_code == 403


async def test_pages_of_tools(http: httpx.AsyncClient, stored: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.api.mcp_tools.PAGE", 2)
    first = (await ask(http, "tools/list"))["result"]
    second = (await ask(http, "tools/list", cursor=first["nextCursor"]))["result"]
    assert [tool["name"] for tool in first["tools"]] == ["runs", "waits", "answer", "run_asking"]
    assert [tool["name"] for tool in second["tools"]] == ["run_hello"] and "nextCursor" not in second


def test_names_of_tools() -> None:
    assert tool_name("daily-report_2") == "run_daily-report_2"
    odd = [tool_name(name) for name in ("Täglich", "T glich", "a b", "a/b", "x" * 51, "")]
    assert len(set(odd)) == len(odd) and all(len(name) <= 64 and name.isascii() for name in odd)
