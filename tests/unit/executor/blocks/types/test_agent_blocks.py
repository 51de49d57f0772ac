"""Tools of an agent that are operations of connectors, queries and functions, and what the model may fill in there."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from executor.blocks.connectors.stored import connectors
from executor.blocks.types.agent.block import block
from executor.blocks.types.agent.calls import effect_of, params_of
from executor.blocks.types.agent.tools import read_tools
from executor.blocks.types.registry import Registry
from executor.kernel.values.payload import Bound
from executor.open.engine import Engine
from tests.support.dev_model import dev_model
from tests.support.documents import chain
from tests.support.endpoints import Request, answer, http
from tests.support.runs import engine_on, outputs, settled, token_of, until_event

pytestmark = pytest.mark.usefixtures("invariants_hold")

Json = dict[str, Any]
LAST: Json = {"text": "Done: {{tool}}"}
NAME: Json = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def called(tool: str, **arguments: Any) -> Json:
    return {"when": {"tool": ""}, "calls": [{"name": tool, "arguments": arguments}]}


async def begun(engine: Engine, *tools: Json, input: Any = None, **params: Any) -> str:
    given = {"model": "dev:m", "prompt": "Do it.", "tools": list(tools)} | params
    return (await engine.submit(chain("a", a={"type": "agent", "params": given}), input=input)).run


async def test_a_function_has_its_arguments_as_values(tmp_path: Path) -> None:
    code = "if (args.name) { return args.name.toUpperCase() }"
    shout = {"name": "shout", "block": "function", "params": {"code": code}, "arguments": NAME}
    attack = '"); throw new Error("x"); ("'
    async with (
        dev_model(called("shout", name=attack), LAST) as model,
        engine_on(tmp_path / "weft.db", models={"DEV": model.url}) as engine,
    ):
        output = outputs(await settled(engine, await begun(engine, shout)))["a"]
        sent = (await model.calls())[1]["body"]["messages"]
    assert output["tool_calls"][0]["error"] is None
    [told] = [message["content"] for message in sent if message["role"] == "tool"]
    assert orjson.loads(told)["result"] == attack.upper()


async def test_a_query_has_its_arguments_bound(tmp_path: Path) -> None:
    place = tmp_path / "shop.db"
    with closing(sqlite3.connect(place)) as made, made:
        made.execute("CREATE TABLE orders (name TEXT, total INTEGER)")
        made.executemany("INSERT INTO orders VALUES (?, ?)", [("Ada", 5), ("Eve' OR 1=1 --", 7)])
    params = {
        "database": str(place),
        "query": "SELECT total FROM orders WHERE name = :name",
        "parameters": {"name": "{{name}}"},
    }
    find = {"name": "find", "block": "sql", "params": params, "arguments": NAME, "approve": "write"}
    async with (
        dev_model(called("find", name="Eve' OR 1=1 --"), LAST) as model,
        engine_on(tmp_path / "weft.db", models={"DEV": model.url}, sqlite_folders=[str(tmp_path)]) as engine,
    ):
        output = outputs(await settled(engine, await begun(engine, find)))["a"]
        sent = (await model.calls())[1]["body"]["messages"]
    assert output["tool_calls"][0]["error"] is None, "a query that only reads needs no approval"
    [told] = [message["content"] for message in sent if message["role"] == "tool"]
    assert orjson.loads(told)["rows"] == [{"total": 7}]


async def test_data_of_a_run_does_not_choose_the_query(tmp_path: Path) -> None:
    params = {"database": str(tmp_path / "shop.db"), "query": "SELECT 1"}
    find = {"name": "find", "block": "sql", "params": params}
    async with (
        dev_model(LAST) as model,
        engine_on(tmp_path / "weft.db", models={"DEV": model.url}, sqlite_folders=[str(tmp_path)]) as engine,
    ):
        for tools, input in (("<start.tools>", {"tools": [find]}), ([{**find, "params": "<start.p>"}], {"p": params})):
            view = await settled(engine, await begun(engine, input=input, tools=tools))
            assert view.error is not None and view.error["code"] == "params_invalid"
            assert "must have its database and its query written" in view.error["message"]


async def test_an_operation_of_a_connector_asks_and_is_sent_once(tmp_path: Path) -> None:
    seen: list[Request] = []

    def service(request: Request) -> bytes:
        seen.append(request)
        return answer(200, b'{"ok": true, "ts": "1.5", "channel": "C1"}', content_type="application/json")

    async with http(service) as server:
        params = {
            "operation": "send_message",
            "channel": "C1",
            "text": "{{text}}",
            "credential": "xoxb-1",
            "base_url": server.url,
        }
        arguments = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        tell = {"name": "tell", "block": "connector.slack", "params": params, "arguments": arguments}
        async with (
            dev_model(called("tell", text='Hi "Ada" {{channel}}'), LAST) as model,
            engine_on(
                tmp_path / "weft.db", *connectors(), models={"DEV": model.url}, allow_private=[server.place]
            ) as engine,
        ):
            run = await begun(engine, {**tell, "approve": "write"})
            await until_event(engine, run, "wait.opened", "a")
            [wait] = await engine.waits.list(run=run)
            assert seen == []
            await engine.waits.answer(token_of(wait.link), {}, "approve")
            output = outputs(await settled(engine, run))["a"]
    assert output["tool_calls"][0]["error"] is None
    [sent] = [orjson.loads(request.body) for request in seen]
    assert (sent["channel"], sent["text"]) == ("C1", 'Hi "Ada" {{channel}}')


async def test_a_connector_that_is_not_there_fails_the_agent(tmp_path: Path) -> None:
    async with (
        dev_model(LAST) as model,
        engine_on(tmp_path / "weft.db", models={"DEV": model.url}) as engine,
    ):
        tool = {"name": "tell", "block": "connector.nowhere", "params": {}}
        view = await settled(engine, await begun(engine, tool))
    assert view.error is not None and "connector.nowhere" in view.error["message"]


def test_the_model_chooses_neither_credential_nor_place_nor_query() -> None:
    params = {"database": "{{x}}", "query": "{{x}}", "parameters": {"a": "{{x}}"}, "read_only": False}
    [sql] = read_tools(
        [{"name": "a", "block": "sql", "params": params}], written=[{"params": {"query": "SELECT 1"}}]
    ).values()
    assert params_of(sql, {"x": 1}) == {**params, "parameters": {"a": 1}}
    assert effect_of(sql, params) == "write" and effect_of(sql, {**params, "read_only": True}) == "read"
    asked = dict.fromkeys(("operation", "credential", "connection", "base_url", "channel"), "{{x}}")
    [slack] = read_tools([{"name": "b", "block": "connector.slack", "params": asked}], Registry(connectors())).values()
    assert params_of(slack, {"x": "y"}) == {**asked, "channel": "y"}
    assert effect_of(slack, {"operation": "send_message"}) == "write"
    assert effect_of(slack, {"operation": "read_messages"}) == "read"
    [code] = read_tools([{"name": "c", "block": "function", "params": {"code": "return args.x"}}]).values()
    bound = params_of(code, {"x": "{{x}}"})["code"]
    assert isinstance(bound, Bound) and list(bound.values.values()) == [{"x": "{{x}}"}]
    assert effect_of(code, {}) == "none"


def test_what_is_wrong_with_the_params_of_a_tool_is_found() -> None:
    check = block.spec.check
    assert check is not None

    def found(block: str, **params: Any) -> list[tuple[str, str]]:
        tools = [{"name": "a", "block": block, "params": params}]
        return [(each.pointer, each.message) for each in check({"prompt": "?", "tools": tools})]

    assert found("sql", database="a.db", query="SELECT :x", parameters={"x": "{{x}}"}) == []
    assert found("sql", database="a.db", query="SELECT {{x}}") == [
        ("/tools/0/params/query", "The model cannot fill in this parameter.")
    ]
    assert [pointer for pointer, _ in found("sql", database="<start.db>", query="SELECT <start.x>")] == [
        "/tools/0/params/database",
        "/tools/0/params/query",
    ]
    assert found("sql", query="SELECT 1") == [("/tools/0/params/database", "Database is required.")]
    assert found("function", code="return args.a < args.b") == []
    assert [pointer for pointer, _ in found("function", code="return `${total}`")] == ["/tools/0/params/code"]
    assert [pointer for pointer, _ in found("connector.slack", connection="{{x}}")] == ["/tools/0/params/connection"]
    assert found("connector.slack", channel="{{x}}") == []
