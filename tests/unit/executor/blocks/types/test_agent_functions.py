"""Python functions and workflows in Python as tools of an agent."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

import weft
from compiler.builder.errors import BuildError
from compiler.diagnostics import CompileError
from executor.blocks.types.agent.block import AgentBlock
from executor.blocks.types.python import Python
from executor.open.testing.engines import engine
from executor.open.testing.play import finish
from server.scripted_model import ScriptedModel

done: list[Any] = []


@dataclass
class Hit:
    title: str
    words: int


@weft.step(effect="read")
async def search(query: str, most: int = 3) -> list[Hit]:
    """Search the archive.

    Args:
        query: words to look for
    """
    done.append(("search", query, most))
    return [Hit(query.upper(), most)]


@weft.step(approve=lambda amount: amount > 50)
async def pay(to: str, amount: float = 60) -> str:
    done.append(("pay", to, amount))
    return f"{amount:g} to {to}"


@weft.step
def publish(text: str) -> None:
    done.append(("publish", text))
    if not text:
        raise KeyError("text")


@weft.step(effect="read", retries={"max_attempts": 3, "initial_ms": 1}, timeout=0.05)
async def flaky() -> str:
    done.append("flaky")
    if len(done) == 1:
        raise OSError("again")
    await asyncio.sleep(0 if len(done) == 3 else 10)
    return "at last"


@weft.workflow
async def lookup(query: str) -> Any:
    """Look a thing up."""
    return await search(query)


@weft.durable
async def refund(order: str) -> str:
    await weft.sleep(days=3)
    return f"{order} is paid back"


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


def calling(name: str, **arguments: Any) -> ScriptedModel:
    return ScriptedModel(
        {"when": {"tool": ""}, "calls": [{"name": name, "arguments": arguments}]}, {"text": "Done: {{tool}}"}
    )


def agent(*tools: Any) -> weft.draw.Workflow:
    return weft.draw.Workflow("flow", weft.draw.Agent("dev:m", "Go", tools=tools, id="a"))


async def test_a_step_is_a_tool() -> None:
    model, flow = calling("search", query="weft"), agent(search)
    [written] = flow.document()["blocks"]["a"]["params"]["tools"]
    assert written == {"name": "search", "function": "tests.unit.executor.blocks.types.test_agent_functions.search"}
    async with engine(workflows=[flow], models={"dev": model}) as opened:
        run = await opened.run(flow, timeout_s=60)
        assert run.output["content"] == 'Done: [{"title":"WEFT","words":3}]'
        [started] = [
            one async for one in opened.stream(run.id) if one.type == "step.started" and one.data["kind"] == "tool"
        ]
    assert (started.data["name"], started.data["effect"], done) == ("search", "read", [("search", "weft", 3)])
    [offered] = model.calls[0].tools
    assert (offered.name, offered.description) == ("search", "Search the archive.")
    query = {"type": "string", "title": "Query", "description": "words to look for"}
    assert offered.schema["properties"]["query"] == query, "without hints for forms"
    assert offered.schema["required"] == ["query"]


async def test_an_agent_of_a_document_hands_over() -> None:
    tools: list[Any] = [search, {"name": "shared", "workflow": "lookup"}]
    other = weft.handoff("payer", "Payments.", model="dev:payer", tools=[pay])
    flow = weft.draw.Workflow("flow", weft.draw.Agent("dev:m", "Go", tools=tools, handoffs=[other], id="a"))
    written = flow.document()["blocks"]["a"]["params"]
    assert [(tool["name"], tool["agents"]) for tool in written["tools"]] == [
        ("search", ["first"]), ("shared", ["first"]), ("pay", ["payer"]),
    ]  # fmt: skip
    assert written["handoffs"] == [{"name": "payer", "description": "Payments.", "model": "dev:payer"}]
    model = ScriptedModel(
        {"when": {"model": "m"}, "calls": [{"name": "transfer_to_payer", "arguments": {}}]},
        {"when": {"tool": "transfer_to_payer"}, "calls": [{"name": "pay", "arguments": {"to": "Ada", "amount": 4}}]},
        {"text": "Paid."},
    )
    async with engine(workflows=[flow, lookup], models={"dev": model}) as opened:
        run = await opened.run(flow, timeout_s=60)
    assert run.status == "succeeded", run.error
    assert (run.output["content"], run.output["agent"], done) == ("Paid.", "payer", [("pay", "Ada", 4)])
    assert [(one["tool"], one["agent"]) for one in run.output["tool_calls"]] == [
        ("transfer_to_payer", "first"), ("pay", "payer"),
    ]  # fmt: skip


async def test_arguments_that_do_not_fit_are_returned_to_the_model() -> None:
    async with engine(
        workflows=[flow := agent(search)], models={"dev": calling("search", query="x", most="many")}
    ) as opened:
        run = await opened.run(flow, timeout_s=60)
    assert run.output["content"].startswith("Done: Error: the arguments are not valid: /most")
    assert not done


async def test_an_error_of_the_function_is_returned_to_the_model() -> None:
    async with engine(workflows=[flow := agent(publish)], models={"dev": calling("publish", text="")}) as opened:
        run = await opened.run(flow, timeout_s=60)
    assert run.output["content"].endswith(".publish: KeyError: 'text'")


async def test_a_function_is_tried_again_as_its_policy_says() -> None:
    async with engine(workflows=[flow := agent(flaky)], models={"dev": calling("flaky")}) as opened:
        run = await opened.run(flow, timeout_s=60)
    assert (run.output["content"], len(done)) == ("Done: at last", 3)


@pytest.mark.parametrize(("amount", "asked"), [(60.0, True), (40.0, False), (None, True)])
async def test_a_function_decides_who_approves(amount: float | None, asked: bool) -> None:
    given = {"to": "Ada"} if amount is None else {"to": "Ada", "amount": amount}
    flow = agent(weft.tool(pay, approve=False))  # which does not take the condition of the function away
    async with engine(workflows=[flow], models={"dev": calling("pay", **given)}) as opened:
        run = (await opened.submit(flow)).run
        view = await finish(opened, run, {"a": {"action": "approve", "fields": {"to": "Bob"}}} if asked else None)
        waits = await opened.waits.list(run=run, status=None)
    assert (view.status, [wait.kind for wait in waits]) == ("succeeded", ["approval"] if asked else [])
    assert done == [("pay", "Bob" if asked else "Ada", amount or 60)]


async def test_a_document_asks_beside_the_function() -> None:
    flow = agent(weft.tool(publish, approve_if="args.text.length > 3", name="post", max_calls=1))
    async with engine(workflows=[flow], models={"dev": calling("post", text="long")}) as opened:
        run = (await opened.submit(flow)).run
        view = await finish(opened, run, {"a": "reject"})
    assert view.output["content"] == "Done: Error: a person rejected this call."
    assert not done


@pytest.mark.parametrize(("tool", "given", "result"), [
    (lookup, {"query": "weft"}, '[{"title":"WEFT","words":3}]'), (refund, {"order": "7"}, "7 is paid back"),
])  # fmt: skip
async def test_a_workflow_is_a_tool(tool: Any, given: dict[str, Any], result: str) -> None:
    flow, model = agent(tool), calling(tool.__name__, **given)
    async with engine(workflows=[flow], models={"dev": model}) as opened:
        view = await finish(opened, (await opened.submit(flow)).run)
    assert (view.status, view.output["content"]) == ("succeeded", f"Done: {result}")
    assert model.calls[0].tools[0].schema["required"] == list(given)


async def test_what_is_not_here_is_found() -> None:
    flow = agent(weft.tool(search, name="find"))
    document = flow.document()
    document["blocks"]["a"]["params"]["tools"][0]["function"] += "s"
    async with engine(workflows=[flow], models={"dev": ScriptedModel()}) as opened:
        with pytest.raises(CompileError, match=r"There is no Python function .*searchs") as raised:
            await opened.run(document)
    [finding] = [one for one in raised.value.diagnostics if one.severity == "error"]
    assert (finding.pointer, "Did you mean" in finding.hint) == ("/blocks/a/params/tools/0/function", True)
    async with engine() as opened:
        with pytest.raises(CompileError, match="There is no Python function"):
            await opened.run(flow)


def test_a_process_without_the_function_lacks_it() -> None:
    params = agent(search).document()["blocks"]["a"]["params"]
    assert AgentBlock().lacks(params) == f"Python function {search.name!r} (this process has no functions)"
    assert AgentBlock(Python({search.name: search})).lacks(params) is None


def test_what_cannot_be_a_tool_is_refused() -> None:
    with pytest.raises(BuildError, match="plain cannot be a tool") as raised:
        agent(plain)
    assert raised.value.hint == "Put @weft.step before plain."


def plain(query: str) -> str:
    return query
