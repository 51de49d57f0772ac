"""A look at an MCP server: a real one, over the wire."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.server.mcpserver import MCPServer

from executor.blocks.vault.connection import Connection
from executor.errors import BadRequest, BlockError, WeftError
from executor.open.embed import open_engine
from executor.open.engine import Engine
from tests.support.endpoints import answer, http
from tests.support.mcp_server import Shop, mcp_shop

KEY = "s3cret-4711"


@asynccontextmanager
async def world(path: Path, more: Any = None) -> AsyncIterator[tuple[Engine, Shop]]:
    async with (
        mcp_shop(more) as shop,
        open_engine(
            path / "weft.db", secret=b"k" * 32, allow_private=[shop.place], env={"SHOP_KEY": KEY}, secrets=["SHOP_KEY"]
        ) as engine,
    ):
        yield engine, shop


async def refused(engine: Engine, **mcp: Any) -> WeftError:
    with pytest.raises((BadRequest, BlockError)) as caught:
        await engine.tool_servers.tools(mcp)
    return caught.value


async def test_the_tools_of_a_server_with_a_secret_in_a_header(tmp_path: Path) -> None:
    async with world(tmp_path) as (engine, shop):
        headers = {"Authorization": "Bearer ${SHOP_KEY}", "X-Shape": "${notAName}"}
        found = await engine.tool_servers.tools({"url": shop.url, "headers": headers})
    assert [(tool.name, tool.description, tool.reads) for tool in found] == [
        ("find", "Finds an order.", True), ("pay", "Pays an order.", False),
    ]  # fmt: skip
    assert {each["authorization"] for each in shop.headers} == {f"Bearer {KEY}"}
    assert {each["x-shape"] for each in shop.headers} == {"${notAName}"} and not shop.called


async def test_a_secret_that_the_server_says_back_is_not_returned(tmp_path: Path) -> None:
    def more(server: MCPServer) -> None:
        server.add_tool(lambda: None, name="echo", description=f"You are {KEY}.")

    async with world(tmp_path, more) as (engine, shop):
        found = await engine.tool_servers.tools({"url": shop.url, "headers": {"X-Key": "${SHOP_KEY}"}})
        assert found[-1].description.startswith("You are [redacted")
        wrong = await refused(engine, url=f"http://127.0.0.1:1/{KEY}")
    assert KEY not in wrong.message and KEY not in found[-1].description


async def test_a_connection_is_used_and_bound_to_its_hosts(tmp_path: Path) -> None:
    async with world(tmp_path) as (engine, shop):
        shop.admits = lambda header: header == f"Bearer {KEY}"
        unknown = await refused(engine, url=shop.url, connection="crm")
        for hosts in ([f"http://{shop.place}"], ["api.example.com"]):
            await engine.connections.put("crm", Connection("bearer", KEY), hosts)
            if hosts == [f"http://{shop.place}"]:
                assert len(await engine.tool_servers.tools({"url": shop.url, "connection": "crm"})) == 2
        elsewhere = await refused(engine, url=shop.url, connection="crm")
        without = await refused(engine, url=shop.url)
    assert (unknown.code, elsewhere.code) == ("connection_unknown", "secret_host_refused")
    assert without.code == "mcp_failed" and "401" in without.message


async def test_a_stored_secret_goes_to_its_hosts_alone(tmp_path: Path) -> None:
    async with world(tmp_path) as (engine, shop):
        await engine.secrets.set("OTHER", "a value of 20 letters", ["api.example.com"])
        wrong = await refused(engine, url=shop.url, headers={"X-Key": "${OTHER}"})
    assert wrong.code == "secret_host_refused" and not shop.headers


async def test_what_cannot_be_checked_says_where_and_why(tmp_path: Path) -> None:
    with socket.socket() as bound:  # a port at which nothing listens
        bound.bind(("127.0.0.1", 0))
        closed = f"127.0.0.1:{bound.getsockname()[1]}"
        async with (
            http(lambda request: answer(200, b"<p>Hello")) as web,
            open_engine(tmp_path / "weft.db", allow_private=[closed, web.place]) as engine,
        ):
            in_a_run = await refused(engine, url="http://<start.shop>/mcp")
            not_set = await refused(engine, url=f"http://{closed}/", headers={"X-Key": "${NOT_SET}"})
            no_address = await refused(engine, url="shop.example")
            header = await refused(engine, url=f"http://{closed}/", headers={"Host": "x"})
            private = await refused(engine, url="http://127.0.0.1:1/mcp")
            silent = await refused(engine, url=f"http://{closed}/mcp")
            other = await refused(engine, url=f"http://{web.place}/")
    assert (in_a_run.code, in_a_run.pointer) == ("mcp_invalid", "/url")
    assert (not_set.code, not_set.pointer) == ("mcp_invalid", "/headers/X-Key")
    assert no_address.code == "url_invalid" and header.code == "mcp_invalid"
    assert (private.code, silent.code, other.code) == ("address_refused", "http_connection", "mcp_failed")
