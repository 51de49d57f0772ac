"""Tools of MCP servers of an agent: real runs, the model and the server over the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from mcp.server.mcpserver import MCPServer

from executor.blocks.types.agent.block import block
from executor.blocks.types.agent.tools import read_tools
from executor.errors import BlockError
from executor.open.engine import Engine
from executor.service.views import RunView
from tests.support.dev_model import DevModel, dev_model
from tests.support.documents import chain
from tests.support.mcp_server import Shop, mcp_shop
from tests.support.runs import engine_on, outputs, settled, token_of, until_event

pytestmark = pytest.mark.usefixtures("invariants_hold")

Json = dict[str, Any]
LAST: Json = {"text": "Done: {{tool}}"}


def calls(*named: tuple[str, Json]) -> Json:
    return {"when": {"tool": ""}, "calls": [{"name": name, "arguments": given} for name, given in named]}


@asynccontextmanager
async def world(path: Path, *rules: Json, more: Any = None) -> AsyncIterator[tuple[Engine, DevModel, Shop]]:
    async with (
        dev_model(*rules) as model,
        mcp_shop(more) as shop,
        engine_on(
            path / "weft.db", models={"DEV": model.url}, allow_private=[shop.place], env={"SHOP_KEY": "s3cret-4711"}
        ) as engine,
    ):
        yield engine, model, shop


def of_shop(shop: Shop, **more: Any) -> Json:
    return {"name": "shop", "mcp": {"url": shop.url, "headers": {"Authorization": "Bearer ${SHOP_KEY}"}}} | more


async def begin(engine: Engine, *tools: Json) -> str:
    params = {"model": "dev:m", "prompt": "Pay it.", "tools": list(tools)}
    return (await engine.submit(chain("a", a={"type": "agent", "params": params}))).run


async def steps(engine: Engine, run: str) -> list[Json]:
    records = await engine.store.read_events(run)
    return [orjson.loads(r.data or b"{}") for r in records if r.type == "step.started"]


def lists(shop: Shop) -> int:
    return sum(headers.get("mcp-method") == "tools/list" for headers in shop.headers)


async def test_tools_of_a_server(tmp_path: Path) -> None:
    rule = calls(
        ("shop_find", {"id": 3}), ("shop_pay", {"id": 4}), ("shop_pay", {"id": -1}), ("shop_find", {"id": "x"})
    )
    async with world(tmp_path, rule, LAST) as (engine, model, shop):
        view: RunView = await settled(engine, await begin(engine, of_shop(shop)))
        [first, second] = await model.calls()
        begun = await steps(engine, view.id)
        records = await engine.store.read_events(view.id)
    output = outputs(view)["a"]
    offered = {tool["function"]["name"]: tool["function"] for tool in first["body"]["tools"]}
    assert set(offered) == {"shop_find", "shop_pay"} and offered["shop_find"]["description"] == "Finds an order."
    results = [message["content"] for message in second["body"]["messages"] if message["role"] == "tool"]
    assert [orjson.loads(result) for result in results[:2]] == [
        {"tool": "find", "order": 3}, {"tool": "pay", "order": 4},
    ]  # fmt: skip
    assert "no such order" in results[2] and "the arguments are not valid" in results[3]
    assert [bool(call["error"]) for call in output["tool_calls"]] == [False, False, True, True]
    assert [(step["kind"], step["name"], step["effect"]) for step in begun] == [
        ("tool", "tools of shop", "read"), ("model", "dev:m", "read"), ("tool", "shop_find", "read"),
        ("tool", "shop_pay", "write"), ("tool", "shop_pay", "write"), ("model", "dev:m", "read"),
    ]  # fmt: skip
    assert {headers["authorization"] for headers in shop.headers} == {"Bearer s3cret-4711"}
    assert not any(b"s3cret-4711" in (record.data or b"") for record in records)


async def test_approving_runs_the_tool_and_lists_nothing_again(tmp_path: Path) -> None:
    """The server has another tool in the meantime: the model is offered those of the first list."""
    async with world(tmp_path, calls(("shop_pay", {"id": 7})), LAST) as (engine, model, shop):
        id = await begin(engine, of_shop(shop, approve="always"))
        await until_event(engine, id, "wait.opened", "a")
        [wait] = await engine.waits.list(run=id)
        shown = {"tool": "shop_pay", "server": "127.0.0.1", "arguments": {"id": 7}}
        assert wait.kind == "approval" and wait.request["show"] == shown and not shop.called
        shop.server.remove_tool("find")
        await engine.waits.answer(token_of(wait.link), {"id": 8}, "approve")
        output = outputs(await settled(engine, id))["a"]
        offered = [[tool["function"]["name"] for tool in call["body"]["tools"]] for call in await model.calls()]
    assert output["tool_calls"] == [{"tool": "shop_pay", "arguments": {"id": 8}, "error": None}]
    assert shop.called == {("pay", 8): 1} and lists(shop) == 1
    assert offered == [["shop_find", "shop_pay"]] * 2


async def test_names_of_the_author_come_first_and_lists_are_kept(tmp_path: Path) -> None:
    """Tools whose names no model takes, and that would take the name of another tool."""

    def more(server: MCPServer) -> None:
        for name in ("find it!", "find/it!", "action"):
            server.add_tool(lambda action: action, name=name, description="")

    only = ["find it!", "find/it!", "find"]
    own = {"name": "shop_find", "block": "http", "params": {"url": "http://127.0.0.1:1/"}}
    async with world(tmp_path, LAST, more=more) as (engine, model, shop):
        tool = of_shop(shop, description="The shop.")
        tool["mcp"]["tools"] = only
        view = await settled(engine, await begin(engine, tool, own))
        [asked] = await model.calls()
    assert view.status == "succeeded"
    offered = {tool["function"]["name"]: tool["function"]["description"] for tool in asked["body"]["tools"]}
    assert offered == {
        "shop_find_2": "Finds an order.", "shop_find_it_": "The shop.", "shop_find_it__2": "The shop.",
        "shop_find": "Calls http.",
    }  # fmt: skip


async def test_an_argument_that_is_called_as_a_part_of_an_answer(tmp_path: Path) -> None:
    """And what the server says that it reads is not asked about."""
    got: list[str] = []

    def more(server: MCPServer) -> None:
        def move(action: str, to: str) -> str:
            got.append(f"{action} {to}")
            return "moved"

        server.add_tool(move, name="move")

    rule = calls(("shop_find", {"id": 1}), ("shop_move", {"action": "drop", "to": "a"}))
    async with world(tmp_path, rule, LAST, more=more) as (engine, _, shop):
        id = await begin(engine, of_shop(shop, approve="write", max_calls=2))
        await until_event(engine, id, "wait.opened", "a")
        [wait] = await engine.waits.list(run=id)
        await engine.waits.answer(token_of(wait.link), {"to": "b"}, "approve")
        await settled(engine, id)
    assert got == ["drop b"]


async def test_a_server_that_cannot_be_asked_fails_the_block(tmp_path: Path) -> None:
    async with world(tmp_path, LAST) as (engine, model, _):
        closed = {"name": "shop", "mcp": {"url": "http://127.0.0.1:1/mcp"}}
        view = await settled(engine, await begin(engine, closed))
        assert await model.calls() == []
    assert view.status == "failed" and view.error is not None and view.error["code"] == "address_refused"


@pytest.mark.parametrize(
    ("tool", "pointer"),
    [
        ({"name": "a"}, "/tools/0/workflow"),
        ({"name": "a", "mcp": {"url": "http://x/"}, "block": "http"}, "/tools/0/mcp"),
    ],
)
def test_a_tool_is_one_thing(tool: Json, pointer: str) -> None:
    check = block.spec.check
    assert check is not None
    assert [finding.pointer for finding in check({"prompt": "x", "tools": [tool]})] == [pointer]


@pytest.mark.parametrize(
    "mcp",
    [
        {"url": ""},
        {"url": "http://x/", "headers": {"Host": "y"}},
        {"url": "http://x/", "headers": {"Mcp-Session-Id": "y"}},
        {"url": "http://x/", "tools": "find"},
    ],
)
def test_servers_that_cannot_be_used(mcp: Json) -> None:

    with pytest.raises(BlockError, match=r"is required|is set by weft|must be a list"):
        read_tools([{"name": "a", "mcp": mcp}])
