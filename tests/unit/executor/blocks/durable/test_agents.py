"""`weft.agent` in durable functions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

import weft
from executor.open.testing.crashes import crash_everywhere
from executor.open.testing.engines import engine
from executor.open.testing.outside import Outside
from executor.open.testing.play import finish
from server.scripted_model import ScriptedModel
from tests.support.endpoints import answer, http
from tests.support.mcp_server import mcp_shop
from tests.support.postgres_crashes import crash_after_each_commit

done: list[Any] = []


@dataclass
class Report:
    title: str
    sources: list[str]


@weft.step(effect="read")
async def search(query: str) -> list[str]:
    """Search the archive."""
    done.append(("search", query))
    return [f"{query} 1", f"{query} 2"]


@weft.step(approve=True)
async def publish(text: str) -> str:
    done.append(("publish", text))
    return "published"


@weft.durable
async def lookup(query: str) -> str:
    await weft.sleep(days=1)
    return f"found {query}"


@weft.durable
async def research(topic: str) -> Report:
    found = await weft.agent("dev:m", f"Write about {topic}", tools=[search, publish], output=Report)
    done.append(type(found))
    return found


@weft.durable
async def briefly(topic: str) -> str:
    return await weft.agent("dev:m", topic, tools=[search, publish, lookup], max_rounds=3, memory="ada")


@weft.durable
async def grade(text: str) -> int:
    kind = await weft.agent("dev:m", text, output=Literal["good", "bad"])
    marks = await weft.agent("dev:m", text, output=list[int])
    return sum(marks) if kind == "good" else 0


@weft.durable
async def both(topics: list[str]) -> list[str]:
    return await weft.gather(topics, lambda topic: weft.agent("dev:m", topic, tools=[weft.tool(publish, name="post")]))


@weft.durable
async def with_options(url: str) -> str:
    tools: list[Any] = [
        weft.tool(search, approve_if="args.query.length > 3", max_calls=1),
        {"name": "page", "block": "http", "params": {"url": url + "/{{id}}"}, "arguments": {"properties": {"id": {}}}},
    ]
    return await weft.agent("dev:m", "Go", tools=tools)


@weft.durable
async def handed_over(question: str) -> str:
    await weft.agent("dev:first", question, memory="case 7")
    return await weft.agent("dev:second", "Go on.", memory="case 7")


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


REPORT = {"title": "Lanes", "sources": ["lanes 1"]}
RESEARCHING = (
    {"when": {"tool": ""}, "calls": [call("search", query="lanes")]},
    {"when": {"tool": "search"}, "calls": [call("publish", text="Lanes"), call("search", query="more")]},
    {"when": {"tool": "search", "round": 2}, "output": REPORT},
)


async def steps(opened: weft.Engine, run: str) -> list[tuple[str, str]]:
    events = [one async for one in opened.stream(run) if one.type == "step.started"]
    return [(one.data["kind"], one.data["name"]) for one in events]


async def test_calls_are_steps_of_the_run_and_the_answer_has_its_type() -> None:
    model = ScriptedModel(*RESEARCHING[:1], RESEARCHING[2], RESEARCHING[1])
    async with engine(workflows=[research], models={"dev": model}) as opened:
        run = (await opened.submit(research, topic="lanes")).run
        view = await finish(opened, run, {"Call publish?": {"action": "approve", "fields": {"text": "Edited"}}})
        assert (view.status, view.output) == ("succeeded", REPORT)
        assert await steps(opened, run) == [
            ("model", "dev:m"), ("tool", "search"), ("model", "dev:m"), ("wait", "approve publish"),
            ("tool", "publish"), ("tool", "search"), ("model", "dev:m"),
        ]  # fmt: skip
        assert view.usage is not None and view.usage.total.calls == 3
    assert done == [("search", "lanes"), ("publish", "Edited"), ("search", "more"), Report]
    assert len(model.calls) == 3, "the entry after the approval asked nothing again"


async def test_a_bad_answer_is_asked_for_again() -> None:
    bad, good = {"title": "Lanes", "sources": "none"}, REPORT
    model = ScriptedModel({"when": {"round": 0}, "output": bad}, {"output": good})
    async with engine(workflows=[research], models={"dev": model}) as opened:
        view = await finish(opened, (await opened.submit(research, topic="lanes")).run)
        assert view.output == good
    assert "/sources" in model.calls[1].messages[-1].text
    async with engine(workflows=[research], models={"dev": ScriptedModel({"output": bad})}) as opened:
        view = await finish(opened, (await opened.submit(research, topic="lanes")).run)
    assert view.error is not None and view.error["code"] == "output_invalid"


async def test_types_that_are_no_objects() -> None:
    model = ScriptedModel(
        {"when": {"last": "x"}, "output": {"answer": "good"}, "times": 1}, {"output": {"answer": [2, 3]}}
    )
    async with engine(workflows=[grade], models={"dev": model}) as opened:
        view = await finish(opened, (await opened.submit(grade, text="x")).run)
    assert (view.status, view.output) == ("succeeded", 5)


async def test_a_durable_function_is_a_tool_and_memory_holds_between_runs() -> None:
    model = ScriptedModel(
        {"when": {"tool": "", "last": "lanes"}, "calls": [call("lookup", query="lanes")]}, {"text": "{{tool}}!"}
    )
    async with engine(workflows=[briefly], models={"dev": model}) as opened:
        view = await finish(opened, (await opened.submit(briefly, topic="lanes")).run)
        assert (view.status, view.output) == ("succeeded", "found lanes!")
        await finish(opened, (await opened.submit(briefly, topic="more")).run)
    assert [one.text for one in model.calls[-1].messages] == ["lanes", "found lanes!", "more"]


async def test_agents_side_by_side_wait_for_their_own_approvals() -> None:
    model = ScriptedModel(
        {"when": {"tool": "", "last": "a"}, "calls": [call("post", text="A")]},
        {"when": {"tool": "", "last": "b"}, "calls": [call("post", text="B")]},
        {"text": "{{last}}: {{tool}}"},
    )
    async with engine(workflows=[both], models={"dev": model}) as opened:
        run = (await opened.submit(both, topics=["a", "b"])).run
        view = await finish(
            opened, run, {"Call post?": lambda wait: "approve" if "A" in str(wait.request) else "reject"}
        )
    assert view.status == "succeeded", view.error
    assert view.output == ["a: published", "b: Error: a person rejected this call."]
    assert done == [("publish", "A")]


@pytest.mark.proof
@pytest.mark.timeout(300)
async def test_a_crash_at_each_commit_loses_nothing(tmp_path: Path) -> None:
    report = await crash_everywhere(
        research,
        {"topic": "lanes"},
        models={"dev": ScriptedModel(RESEARCHING[0], RESEARCHING[2], RESEARCHING[1])},
        answers={"Call publish?": "approve"},
        outside=Outside(tmp_path),
    )
    assert (report.output, report.ok) == (REPORT, True)
    assert report.crashes > 20, report


async def test_a_model_that_fails_for_now_is_asked_again() -> None:
    model = ScriptedModel({"error": {"status": 503}, "times": 2}, {"text": "Here."})
    async with engine(workflows=[briefly], models={"dev": model}) as opened:
        view = await finish(opened, (await opened.submit(briefly, topic="lanes")).run)
    assert (view.output, len(model.calls)) == ("Here.", 3)


async def test_tools_have_options_and_may_be_those_of_documents() -> None:
    model = ScriptedModel(
        {"when": {"tool": ""}, "calls": [call("search", query="abc"), call("page", id="7/8")]},
        {"when": {"round": 1}, "calls": [call("search", query="again")]},
        {"text": "{{tool}}"},
    )
    async with (
        http(lambda request: answer(200, request.target.encode(), content_type="text/plain")) as server,
        engine(workflows=[with_options], models={"dev": model}, allow_private=[server.place]) as opened,
    ):
        view = await finish(opened, (await opened.submit(with_options, url=server.url)).run)
    assert view.output == "Error: search cannot be called more than 1 times."
    assert done == [("search", "abc")]
    page = next(one.text for one in model.calls[1].messages if one.tool == "page")
    assert page.count("/7%2F8") == 2, "body and url"


async def test_a_condition_in_javascript_asks_a_person() -> None:
    model = ScriptedModel({"when": {"tool": ""}, "calls": [call("search", query="lanes")]}, {"text": "{{tool}}"})
    async with engine(workflows=[with_options], models={"dev": model}) as opened:
        run = (await opened.submit(with_options, url="http://127.0.0.1:9")).run
        view = await finish(opened, run, {"Call search?": "reject"})
    assert view.output == "Error: a person rejected this call."


@weft.durable
async def shopping(url: str) -> str:
    shop = {"name": "shop", "mcp": {"url": url}, "approve": "write"}
    return await weft.agent("dev:m", "Go", tools=[shop])


async def test_the_tools_of_a_server_of_tools() -> None:
    model = ScriptedModel(
        {"when": {"tool": ""}, "calls": [call("shop_find", id=3), call("shop_pay", id=4)]}, {"text": "{{tool}}"}
    )
    async with (
        mcp_shop() as shop,
        engine(workflows=[shopping], models={"dev": model}, allow_private=[shop.place]) as opened,
    ):
        run = (await opened.submit(shopping, url=shop.url)).run
        view = await finish(opened, run, {"Call shop_pay?": "approve"})
        assert view.status == "succeeded", view.error
        kinds = [name for kind, name in await steps(opened, run) if kind != "model"]
    assert kinds == ["tools of shop", "approve shop_pay", "shop_find", "shop_pay"]


@weft.step(approve=True)
async def refund(invoice: str) -> str:
    done.append(("refund", invoice))
    return f"{invoice} is paid back"


BILLING = weft.handoff(
    "billing", "Invoices and refunds.", model="dev:billing", system="You pay.", tools=[refund, search]
)


@weft.durable
async def support(question: str, rounds: int = 6) -> str:
    return await weft.agent(
        "dev:m", question, system="You sort.", tools=[search], handoffs=[BILLING], max_rounds=rounds
    )


SUPPORTING = (
    {"when": {"model": "m", "round": 0}, "calls": [call("search", query="R-7")]},
    {"when": {"model": "m", "round": 1}, "calls": [call("transfer_to_billing", reason="a refund")]},
    {"when": {"model": "billing", "round": 2}, "calls": [call("refund", invoice="R-7"), call("search", query="more")]},
    {"when": {"model": "billing", "round": 3}, "calls": [call("transfer_to_first")]},
    {"text": "All done."},
)


async def test_an_agent_hands_the_conversation_over_with_its_calls() -> None:
    model = ScriptedModel(*SUPPORTING[:3], {"text": "Paid back."})
    async with engine(workflows=[support], models={"dev": model}) as opened:
        run = (await opened.submit(support, question="Pay R-7 back")).run
        view = await finish(opened, run, {"Call refund?": "approve"})
        assert (view.status, view.output) == ("succeeded", "Paid back."), view.error
        started = [one.data for one in [e async for e in opened.stream(run)] if one.type == "step.started"]
    assert [(one["name"], one.get("group")) for one in started] == [
        ("dev:m", "agent"), ("search", "agent"), ("dev:m", "agent"), ("transfer_to_billing", "agent"),
        ("dev:billing", "agent/billing"), ("approve refund", "agent/billing"), ("refund", "agent/billing"),
        ("search", "agent/billing"), ("dev:billing", "agent/billing"),
    ]  # fmt: skip
    first, second = model.calls[0], model.calls[2]
    assert [tool.name for tool in first.tools] == ["search", "transfer_to_billing"]
    assert [tool.name for tool in second.tools] == ["search", "refund", "transfer_to_first"]
    assert [(one.role, one.text, [c.name for c in one.calls]) for one in second.messages] == [
        ("system", "You pay.", []),
        ("user", "Pay R-7 back", []),
        ("assistant", "", ["search"]),
        ("tool", '["R-7 1","R-7 2"]', []),
        ("assistant", "", ["transfer_to_billing"]),
        ("tool", "The conversation is handed over to billing.", []),
    ]


async def test_it_comes_back_and_the_bounds_are_shared() -> None:
    model = ScriptedModel(*SUPPORTING)
    async with engine(workflows=[support], models={"dev": model}) as opened:
        view = await finish(opened, (await opened.submit(support, question="Q")).run, {"Call refund?": "approve"})
        assert (view.status, view.output) == ("succeeded", "All done.")
        assert model.calls[-1].messages[0].text == "You sort."
        view = await finish(
            opened, (await opened.submit(support, question="Q", rounds=3)).run, {"Call refund?": "reject"}
        )
        assert view.error is not None and view.error["code"] == "limit_rounds"


async def test_one_handoff_in_a_reply_and_only_the_tools_of_the_agent() -> None:
    twice = [call("transfer_to_billing"), call("transfer_to_billing"), call("refund", invoice="R-7")]
    model = ScriptedModel({"when": {"model": "m"}, "calls": twice}, {"text": "Here."})
    async with engine(workflows=[support], models={"dev": model}) as opened:
        view = await finish(opened, (await opened.submit(support, question="Q")).run)
    assert view.output == "Here."
    assert [one.text for one in model.calls[1].messages if one.role == "tool"] == [
        "The conversation is handed over to billing.",
        "Error: it is handed over to billing already.",
        "Error: there is no tool refund.",
    ]


@pytest.mark.proof
@pytest.mark.timeout(300)
async def test_a_crash_at_each_commit_of_a_handoff_loses_nothing(tmp_path: Path) -> None:
    report = await crash_everywhere(
        support,
        {"question": "Pay R-7 back"},
        models={"dev": ScriptedModel(*SUPPORTING)},
        answers={"Call refund?": "approve"},
        outside=Outside(tmp_path),
    )
    assert (report.output, report.ok) == ("All done.", True)
    assert report.crashes > 20, report


@pytest.mark.proof
@pytest.mark.timeout(300)
async def test_a_crash_after_each_commit_of_a_handoff_on_postgresql(postgres_server: str, tmp_path: Path) -> None:
    model = ScriptedModel({"when": {"model": "m"}, "calls": [call("transfer_to_billing")]}, {"text": "Paid."})
    outside = Outside(tmp_path / "outside")
    commits, end = await crash_after_each_commit(
        support, {"question": "Pay R-7 back"}, {}, outside, postgres_server, tmp_path, {"dev": model}
    )
    assert (end.status, end.output) == ("succeeded", "Paid.")
    assert commits > 4


@weft.durable
async def within_a_budget(topic: str) -> str:
    return await weft.agent("dev:m", topic, tools=[search], budget_usd=0.001)


@pytest.mark.parametrize(
    ("price", "error"),
    [("0/0", None), ("1000/1000", "budget_spent"), ("", "cost_unknown"), ("other=1/1", "cost_unknown")],
)
async def test_a_budget_in_dollars_holds_for_models_of_the_program(price: str, error: str | None) -> None:
    model = ScriptedModel({"when": {"tool": ""}, "calls": [call("search", query="lanes")]}, {"text": "Here."})
    prices = {"dev": price} if price else None
    async with engine(workflows=[within_a_budget], models={"dev": model}, prices=prices) as opened:
        view = await finish(opened, (await opened.submit(within_a_budget, topic="lanes")).run)
    assert (view.error or {}).get("code") == error
    assert len(model.calls) == (1 if error else 2)
    assert view.usage is not None and (view.usage.total.unpriced == 0) == (error != "cost_unknown")


async def test_an_agent_continues_the_conversation_of_the_one_before() -> None:
    model = ScriptedModel({"when": {"model": "first"}, "text": "I cannot."}, {"text": "I can."})
    async with engine(workflows=[handed_over], models={"dev": model}) as opened:
        view = await finish(opened, (await opened.submit(handed_over, question="Pay it back?")).run)
        assert view.output == "I can."
        await finish(opened, (await opened.submit(handed_over, question="Really?")).run)
    assert [one.text for one in model.calls[1].messages] == ["Pay it back?", "I cannot.", "Go on."]
    assert [one.text for one in model.calls[2].messages][-3:] == ["Go on.", "I can.", "Really?"]
