"""The agent: real runs, the model over the wire, tools that are blocks and runs, approvals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from executor.blocks.llm.client import ModelClient
from executor.blocks.llm.endpoints import Endpoints
from executor.blocks.types.agent.block import block
from executor.blocks.types.agent.calls import filled
from executor.errors import NotYours, SignInRequired
from executor.kernel.run.answers import VISITOR, Answerer
from executor.open.engine import Engine
from executor.service.views import RunView, WaitView
from tests.support.dev_model import DevModel, dev_model
from tests.support.documents import chain, document
from tests.support.endpoints import Server, answer, http
from tests.support.runs import engine_on, outputs, settled, token_of, until_event

pytestmark = pytest.mark.usefixtures("invariants_hold")

Json = dict[str, Any]
ID = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"], "additionalProperties": False}
RUN = {"name": "lookup", "description": "Finds an order.", "workflow": "orders", "arguments": ID}


def calls(*arguments: Any, name: str = "lookup") -> Json:
    return {"when": {"tool": ""}, "calls": [{"name": name, "arguments": given} for given in arguments]}


LAST: Json = {"text": "Done: {{tool}}"}


@asynccontextmanager
async def world(path: Path, *rules: Json) -> AsyncIterator[tuple[Engine, DevModel, Server]]:
    async with (
        dev_model(*rules) as model,
        http(lambda r: answer(200, r.target.encode(), content_type="text/plain")) as server,
        engine_on(path / "weft.db", models={"DEV": model.url}, allow_private=[server.place]) as engine,
    ):
        orders = document("orders", "start a", blocks={"start": {"type": "start"}, "a": _doubled()})
        await engine.workflows.save(orders)
        yield engine, model, server


def _doubled() -> Json:
    return {"type": "function", "params": {"code": "return {order: <start.id> * 2}"}}


async def begin(engine: Engine, **params: Any) -> str:
    given = {"model": "dev:m", "prompt": "Where is it?"} | params
    return (await engine.submit(chain("a", a={"type": "agent", "params": given}))).run


async def run(engine: Engine, **params: Any) -> RunView:
    return await settled(engine, await begin(engine, **params))


async def steps(engine: Engine, run: str) -> list[Json]:
    records = await engine.store.read_events(run)
    return [orjson.loads(r.data or b"{}") for r in records if r.type == "step.started"]


async def asked(engine: Engine, run: str) -> WaitView:
    await until_event(engine, run, "wait.opened", "a")
    [wait] = await engine.waits.list(run=run)
    return wait


async def test_text_with_usage(tmp_path: Path) -> None:
    usage = {"input_tokens": 5, "output_tokens": 3}
    async with world(tmp_path, {"text": "At home.", "usage": usage}) as (engine, model, _):
        view = await run(engine, system="Be brief.", messages=[{"role": "assistant", "content": "Hello"}])
        [call] = await model.calls()
        records = await engine.store.read_events(view.id)
    assert outputs(view)["a"] == {
        "content": "At home.",
        "rounds": 1,
        "tool_calls": [],
        "model": "m",
        "usage": {"input_tokens": 5, "output_tokens": 3, "cached_tokens": 0},
        "cost": None,
    }
    [said] = [orjson.loads(r.data or b"{}") for r in records if r.type == "node.log"] or [{}]
    assert "At home." in str(said)
    assert [message["role"] for message in call["body"]["messages"]] == ["system", "assistant", "user"]
    assert call["body"]["stream"] is True
    [finished] = [orjson.loads(r.data or b"{}") for r in records if r.type == "step.finished"]
    assert finished["usage"]["input_tokens"] == 5


async def test_tools_that_are_runs_and_blocks(tmp_path: Path) -> None:
    """Two runs side by side, two requests side by side; the results in the order of the calls."""
    rule = calls({"id": 1}, {"id": 2})
    rule["calls"][1:1] = [{"name": "fetch", "arguments": {"city": c}} for c in ("a/../b", "Köln")]
    async with world(tmp_path, rule, LAST) as (engine, model, server):
        fetch = {
            "name": "fetch", "block": "http", "params": {"url": f"{server.url}/x/{{{{city}}}}"},
            "arguments": {"properties": {"city": {"type": "string"}}},
        }  # fmt: skip
        view = await run(engine, tools=[RUN, fetch])
        sent = (await model.calls())[1]["body"]["messages"]
        children = [r for r in await engine.runs.list() if r.workflow == "orders"]
        begun = await steps(engine, view.id)
    output = outputs(view)["a"]
    assert output["content"].startswith("Done: ") and output["rounds"] == 2 and len(children) == 2
    results = [message["content"] for message in sent if message["role"] == "tool"]
    assert "order" in results[0] and "2" in results[0] and "4" in results[3]
    assert "/x/a%2F..%2Fb" in results[1] and "/x/K%C3%B6ln" in results[2]
    assert [call["tool"] for call in output["tool_calls"]] == ["lookup", "fetch", "fetch", "lookup"]
    assert all(call["error"] is None for call in output["tool_calls"])
    assert [(step["kind"], step["name"]) for step in begun] == [
        ("model", "dev:m"), ("tool", "fetch"), ("tool", "fetch"), ("wait", "lookup"), ("wait", "lookup"),
        ("model", "dev:m"),
    ]  # fmt: skip


async def test_runs_of_one_reply_are_open_at_the_same_time(tmp_path: Path) -> None:
    """Each of three runs waits for an answer; they are answered backwards. One fails, and the model hears of it."""
    asking = {"type": "approval", "params": {"title": "Order <start.id>?", "fail_on": ["reject"]}}
    async with world(tmp_path, calls({"id": 1}, {"id": 2}, {"id": 3}), LAST) as (engine, model, _):
        blocks = {"start": {"type": "start"}, "a": asking}
        await engine.workflows.save(document("asked", "start a", blocks=blocks))
        id = await begin(engine, tools=[RUN | {"workflow": "asked"}])
        await until_event(engine, id, "wait.opened", "a", 3)
        view = await engine.runs.view(id)
        [node] = [node for node in view.nodes if node.key == "a"]
        assert (node.status, len(view.waits), len(view.children)) == ("waiting", 3, 3)
        while len(asked_below := (await engine.runs.view(id)).child_waits) < 3:
            await asyncio.sleep(0.01)
        by_title = {wait.request["title"]: wait for wait in asked_below}
        for n, action in ((3, "approve"), (2, "reject"), (1, "approve")):
            assert len(await model.calls()) == 1, "the model is asked when all have ended"
            await engine.waits.answer(token_of(by_title[f"Order {n}?"].link), {}, action)
        output = outputs(await settled(engine, id))["a"]
        sent = (await model.calls())[1]["body"]["messages"]
        runs = [row for row in await engine.runs.list() if row.workflow == "asked"]
    results = [message["content"] for message in sent if message["role"] == "tool"]
    assert ["approve" in result for result in results] == [True, False, True] and "child run" in results[1]
    assert [call["error"] is None for call in output["tool_calls"]] == [True, False, True] and len(runs) == 3


async def test_several_calls_are_asked_about_at_the_same_time(tmp_path: Path) -> None:
    """One is approved as it is, one with another argument, one rejected; those without a question wait for them."""
    rule = calls({"id": 1}, {"id": 2}, {"id": 3}, {"id": 10})
    async with world(tmp_path, rule, LAST) as (engine, _, server):
        tool = {"name": "lookup", "block": "http", "params": {"url": f"{server.url}/{{{{id}}}}"}, "arguments": ID}
        id = await begin(engine, tools=[tool | {"approve": "if", "approve_if": "args.id < 10"}])
        await until_event(engine, id, "wait.opened", "a", 3)
        waits = {wait.request["show"]["arguments"]["id"]: wait for wait in await engine.waits.list(run=id)}
        assert sorted(waits) == [1, 2, 3]
        await engine.waits.answer(token_of(waits[3].link), {}, "reject")
        await engine.waits.answer(token_of(waits[1].link), {}, "approve")
        await until_event(engine, id, "step.finished", "a", 7)  # the reply, four conditions, two answers
        assert server.seen == []
        await engine.waits.answer(token_of(waits[2].link), {"id": 7}, "approve")
        output = outputs(await settled(engine, id))["a"]
    assert sorted(request.target for request in server.seen) == ["/1", "/10", "/7"]
    assert [call["arguments"]["id"] for call in output["tool_calls"]] == [1, 7, 3, 10]
    assert [call["error"] is None for call in output["tool_calls"]] == [True, True, False, True]


async def test_the_approval_of_a_tool_is_for_those_whom_it_names(tmp_path: Path) -> None:
    async with world(tmp_path, calls({"id": 1}), LAST) as (engine, _, _):
        id = await begin(engine, tools=[RUN | {"approve": "always", "by": ["chat"]}])
        wait = await asked(engine, id)
        with pytest.raises(SignInRequired):
            await engine.waits.answer(token_of(wait.link), {}, "approve")
        ada = Answerer("user:ada", frozenset({"user:ada"}), "admin")
        with pytest.raises(NotYours):
            await engine.waits.answer(token_of(wait.link), {}, "approve", who=ada)
        await engine.waits.answer(token_of(wait.link), {}, "approve", who=VISITOR)
        assert (await settled(engine, id)).status == "succeeded"


async def test_approving_really_runs_the_tool_with_edited_arguments(tmp_path: Path) -> None:
    async with world(tmp_path, calls({"id": 1}), LAST) as (engine, model, _):
        id = await begin(engine, tools=[RUN | {"approve": "always"}])
        wait = await asked(engine, id)
        assert wait.kind == "approval" and wait.request["show"] == {"tool": "lookup", "arguments": {"id": 1}}
        assert len(await model.calls()) == 1
        assert not [r for r in await engine.runs.list() if r.workflow == "orders"]
        await engine.waits.answer(token_of(wait.link), {"id": 21}, "approve")
        output = outputs(await settled(engine, id))["a"]
        assert len(await model.calls()) == 2  # nothing was asked again
    assert "42" in output["content"] and output["tool_calls"][0]["arguments"] == {"id": 21}


async def test_approving_as_it_is(tmp_path: Path) -> None:
    async with world(tmp_path, calls({"id": 4}), LAST) as (engine, _, server):
        tool = {"name": "lookup", "block": "http", "params": {"url": f"{server.url}/{{{{id}}}}"}, "arguments": ID}
        id = await begin(engine, tools=[tool | {"approve": "always"}])
        wait = await asked(engine, id)
        assert server.seen == []
        await engine.waits.answer(token_of(wait.link), {}, "approve")
        output = outputs(await settled(engine, id))["a"]
        assert [request.target for request in server.seen] == ["/4"]
    assert "/4" in output["content"]


async def test_rejecting_tells_the_model_why(tmp_path: Path) -> None:
    async with world(tmp_path, calls({"id": 4}), LAST) as (engine, _, _server):
        id = await begin(engine, tools=[RUN | {"approve": "if", "approve_if": "args.id > 3"}])
        wait = await asked(engine, id)
        await engine.waits.answer(token_of(wait.link), {"reason": "Too many."}, "reject")
        output = outputs(await settled(engine, id))["a"]
        assert not [r for r in await engine.runs.list() if r.workflow == "orders"]
    assert output["content"] == "Done: Error: a person rejected this call. Too many."
    assert output["tool_calls"][0]["error"] is not None


async def test_a_condition_that_asks_no_one(tmp_path: Path) -> None:
    async with world(tmp_path, calls({"id": 2}), LAST) as (engine, _, _server):
        view = await run(engine, tools=[RUN | {"approve": "if", "approve_if": "args.id > 3"}])
    assert "4" in outputs(view)["a"]["content"]


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (calls({"id": "x"}), "the arguments are not valid: /id"),
        (calls('{"id": '), "not a JSON object"),
        (calls({"id": 1}, name="other"), "there is no tool other"),
    ],
)
async def test_calls_that_are_not_made(tmp_path: Path, rule: Json, told: str) -> None:
    async with world(tmp_path, rule, LAST) as (engine, _, _server):
        output = outputs(await run(engine, tools=[RUN]))["a"]
    assert told in output["content"] and told in output["tool_calls"][0]["error"]


async def test_a_tool_whose_workflow_does_not_exist_fails_the_agent(tmp_path: Path) -> None:
    async with world(tmp_path, calls({"id": 1}), LAST) as (engine, _, _server):
        view = await run(engine, tools=[RUN | {"workflow": "nothing"}])
    assert view.status == "failed" and view.error is not None
    assert view.error["code"] == "workflow_not_found" and "nothing" in view.error["message"]


async def test_a_tool_that_fails_is_told(tmp_path: Path) -> None:
    async with world(tmp_path, calls({"id": 1}), LAST) as (engine, _, _server):
        closed = {"name": "lookup", "block": "http", "params": {"url": "http://127.0.0.1:1/"}, "arguments": ID}
        refused = outputs(await run(engine, tools=[closed]))["a"]
    assert "private or local address" in refused["content"]


@pytest.mark.parametrize(
    ("params", "code", "asked_model"),
    [
        ({"max_rounds": 3}, "limit_rounds", 3),
        ({"max_tool_calls": 2}, "limit_tool_calls", 3),
        ({"budget_tokens": 10}, "budget_spent", 2),
        ({"budget_usd": 0.01}, "cost_unknown", 1),
    ],
)
async def test_bounds(tmp_path: Path, params: Json, code: str, asked_model: int) -> None:
    """A model that calls its tool for ever."""
    rule = {"calls": [{"name": "lookup", "arguments": {"id": 1}}], "usage": {"input_tokens": 4, "output_tokens": 1}}
    async with world(tmp_path, rule) as (engine, model, _):
        view = await run(engine, tools=[RUN], **params)
        assert len(await model.calls()) == asked_model
    assert view.status == "failed" and view.error is not None and view.error["code"] == code


@pytest.mark.parametrize(("budget", "asked_model"), [(0.3, 3), (0.300000001, 4)])
async def test_a_budget_in_dollars_is_exact(tmp_path: Path, budget: float, asked_model: int) -> None:
    """Three calls of 0.1 dollars are 0.3 dollars: as floats they are more."""
    rule = {"calls": [{"name": "lookup", "arguments": {"id": 1}}], "usage": {"input_tokens": 4, "output_tokens": 1}}
    async with world(tmp_path, rule) as (engine, model, _):
        models = engine.parts.services.models
        assert isinstance(models, ModelClient)
        models.endpoints = Endpoints({"DEV": models.endpoints.named[0].url}, {"DEV": "0/100000"})
        view = await run(engine, tools=[RUN], budget_usd=budget)
        assert len(await model.calls()) == asked_model
    assert view.error is not None and view.error["code"] == "budget_spent"
    [node] = [node for node in view.nodes if node.key == "a"]
    assert (node.cost, node.unpriced) == (asked_model / 10, 0)


async def test_calls_without_a_price_are_counted(tmp_path: Path) -> None:
    async with world(tmp_path, LAST) as (engine, _, _server):
        [node] = [node for node in (await run(engine)).nodes if node.key == "a"]
    assert (node.cost, node.unpriced) == (None, 1) and node.usage is not None


async def test_calls_of_one_tool_are_bounded(tmp_path: Path) -> None:
    async with world(tmp_path, calls({"id": 1}, {"id": 2}), LAST) as (engine, _, _server):
        output = outputs(await run(engine, tools=[RUN | {"max_calls": 1}]))["a"]
    assert [bool(call["error"]) for call in output["tool_calls"]] == [False, True]


@pytest.mark.parametrize("mode", ["auto", "tool"])
async def test_structured_output_has_one_repair(tmp_path: Path, mode: str) -> None:
    schema = {"properties": {"n": {"type": "integer", "maximum": 9}}, "required": ["n"]}
    bad: Json = {"output": {"n": 10}}
    async with world(tmp_path, {**bad, "times": 1}, {"output": {"n": 3}}) as (engine, model, _):
        view = await run(engine, output_schema=schema, output_mode=mode)
        assert outputs(view)["a"]["content"] == {"n": 3} and len(await model.calls()) == 2
    async with world(_other(tmp_path), bad) as (engine, model, _):
        view = await run(engine, output_schema=schema, output_mode=mode)
        assert len(await model.calls()) == 2
    assert view.error is not None and view.error["code"] == "output_invalid"


async def test_a_model_that_is_busy_is_asked_again_and_nothing_else(tmp_path: Path) -> None:
    busy = {"when": {"tool": "lookup"}, "error": {"status": 503}, "times": 1}
    async with world(tmp_path, calls({"id": 1}), busy, LAST) as (engine, model, _):
        view = await run(engine, tools=[RUN])
        assert view.status == "succeeded" and len(await model.calls()) == 3
        assert len([r for r in await engine.runs.list() if r.workflow == "orders"]) == 1


def test_arguments_in_params() -> None:
    params = {
        "url": "http://h/{{a}}?q={{ b }}",
        "body": {"x": "{{c}}", "y": ["a {{a}} b", 1]},
        "headers": {"A": "{{a}}"},
    }
    found = filled(params, {"a": "../x y", "b": "1&c=2", "c": {"n": [1]}})
    assert found == {
        "url": "http://h/..%2Fx%20y?q=1%26c%3D2",
        "body": {"x": {"n": [1]}, "y": ["a ../x y b", 1]},
        "headers": {"A": "../x y"},
    }
    assert filled({"url": "http://h/{{a}}/x", "b": "{{z}}"}, {"a": ".."}) == {"url": "http://h/%2E%2E/x", "b": None}


async def test_a_mail_goes_to_one_address_for_each_argument(tmp_path: Path) -> None:
    mail = {
        "name": "mail", "block": "email",
        "params": {"to": "{{to}}", "cc": ["boss@example.org"], "subject": "S", "body": "{{text}}"},
        "arguments": {"properties": {"to": {"type": "string"}, "text": {"type": "string"}}},
    }  # fmt: skip
    more = {"to": "ada@example.org, eve@example.org", "text": "x"}
    async with world(tmp_path, calls({**more, "to": "ada@example.org"}, more, name="mail"), LAST) as (engine, model, _):
        output = outputs(await run(engine, tools=[mail]))["a"]
        sent = (await model.calls())[1]["body"]["messages"]
    first, second = [message["content"] for message in sent if message["role"] == "tool"]
    assert '["ada@example.org","boss@example.org"]' in first.replace(", ", ",")
    assert second.startswith("Error") and [bool(call["error"]) for call in output["tool_calls"]] == [False, True]


async def test_a_person_is_asked_only_about_calls_that_change_something(tmp_path: Path) -> None:
    async with world(
        tmp_path,
        {"when": {"round": 0}, "calls": [{"name": "fetch", "arguments": {"method": "GET"}}]},
        {"when": {"round": 1}, "calls": [{"name": "fetch", "arguments": {"method": "POST"}}]},
        {"when": {"round": 2}, "calls": [{"name": "lookup", "arguments": {"id": 1}}]},
        LAST,
    ) as (engine, model, server):
        methods = {"type": "object", "properties": {"method": {"type": "string"}}}
        params = {"url": f"{server.url}/x", "method": "{{method}}"}
        fetch = {"name": "fetch", "block": "http", "params": params, "arguments": methods, "approve": "write"}
        begun = await begin(engine, tools=[fetch, RUN | {"approve": "write"}])
        await asked(engine, begun)
        assert len(await model.calls()) == 2, "the one that only reads was not asked about"
        titles = []
        for _ in range(2):
            async with asyncio.timeout(30):
                while not (waits := await engine.waits.list(run=begun)):
                    await asyncio.sleep(0.01)
            titles.append(waits[0].request["title"])
            await engine.waits.answer(token_of(waits[0].link), {}, "approve")
        view = await settled(engine, begun)
    assert titles == ["Call fetch?", "Call lookup?"]
    assert [call["error"] for call in outputs(view)["a"]["tool_calls"]] == [None, None, None]


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"budget_tokens": "a lot"}, "budget_tokens"),
        ({"budget_tokens": "10.5"}, "budget_tokens"),
        ({"budget_usd": "nan"}, "budget_usd"),
        ({"budget_usd": "1,50"}, "budget_usd"),
        ({"tools": [RUN | {"approve": "if"}]}, "approve_if"),
    ],
)
async def test_a_bound_that_cannot_be_read_is_not_left_out(tmp_path: Path, params: Json, problem: str) -> None:
    """As data of a run it is not seen before."""
    async with world(tmp_path, {"text": "never asked"}) as (engine, model, _):
        names = {name: f"<start.{name}>" for name in params}
        given = {"model": "dev:m", "prompt": "?"} | names
        begun = await engine.submit(chain("a", a={"type": "agent", "params": given}), input=params)
        view = await settled(engine, begun.run)
        assert await model.calls() == []
    assert view.error is not None and view.error["code"] == "params_invalid" and problem in view.error["message"]


def test_findings() -> None:
    check, output_from = block.spec.check, block.spec.output_from
    assert check is not None and output_from is not None
    tools = [
        {"name": "a"},
        {"name": "a", "workflow": "w", "block": "http", "params": {"url": "http://x"}},
        {"name": "b", "block": "http", "params": {"url": "http://x"}, "approve": "if"},
    ]
    found = [finding.pointer for finding in check({"tools": tools, "output_schema": {"type": 3}})]
    assert found == [
        "/prompt",
        "/tools/0/workflow",
        "/tools/1/block",
        "/tools/2/approve_if",
        "/tools/1/name",
        "/output_schema",
    ]
    handoffs = [{"name": "first"}, {"name": "b"}, {"name": "b"}]
    own = {"name": "transfer_to_b", "workflow": "w", "agents": ["b", "c"]}
    found = [finding.pointer for finding in check({"prompt": "x", "tools": [own], "handoffs": handoffs})]
    assert found == ["/handoffs/2/name", "/handoffs/0/name", "/tools/0/name", "/tools/0/agents/1"]
    for odd in (
        {"prompt": "x"},
        {"prompt": "x", "tools": [{"name": "a", "workflow": "w", "agents": 7}], "handoffs": [None, 3]},
        {"prompt": "x", "tools": "<a.b>"},
        {"prompt": "x", "tools": [None, {"name": 3, "block": "http", "params": "<start.p>"}]},
    ):
        assert check(odd) == () and output_from(odd) is not None


def _other(path: Path) -> Path:
    (path / "other").mkdir()
    return path / "other"
