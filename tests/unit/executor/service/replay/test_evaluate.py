"""Models called in a replay: what it costs, where it stops, what is never called; rows of data; scores and judges."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from executor.blocks.llm.client import ModelClient
from executor.blocks.llm.endpoints import Endpoints
from executor.errors import BadRequest, NotFound
from executor.open.engine import Engine
from executor.service.replay.compare import RunReplay
from executor.service.replay.evaluate import CallModels, DataRow, Evaluation, Judge, Scorer, compared, verdict
from executor.service.topics import backtests
from executor.service.topics.backtests import Backtest
from tests.support.dev_model import DevModel, dev_model
from tests.support.runs import engine_on, settled, token_of

Json = dict[str, Any]
USAGE: Json = {"input_tokens": 1000, "output_tokens": 100}
COST = 0.002  # 1000 * 1 + 100 * 10, of a million
TOOLS: list[Json] = [
    {
        "name": "look",
        "block": "http",
        "params": {"url": "http://127.0.0.1:1/{{what}}"},
        "arguments": {"type": "object", "properties": {"what": {"type": "string"}}},
    },
    {
        "name": "double",
        "block": "function",
        "params": {"code": "return args.n * 2"},
        "arguments": {"type": "object", "properties": {"n": {"type": "number"}}},
    },
]
DESK: Json = {
    "format": "weft/1",
    "name": "desk",
    "blocks": {
        "start": {"type": "start"},
        "answer": {"type": "agent", "params": {"model": "dev:a", "prompt": "Hello <start.text>"}},
    },
    "edges": [{"source": "start", "target": "answer"}],
}
RULES: tuple[Json, ...] = (
    {
        "when": {"last": "Output: ", "model": "judge"},
        "output": {"score": {"reason": "It is short.", "score": 0.25}},
        "usage": USAGE,
    },
    {"when": {"last": "look at", "tool": ""}, "calls": [{"name": "look", "arguments": {"what": "it"}}], "usage": USAGE},
    {
        "when": {"last": "look elsewhere", "tool": ""},
        "calls": [{"name": "look", "arguments": {"what": "b"}}],
        "usage": USAGE,
    },
    {"when": {"last": "double", "tool": ""}, "calls": [{"name": "double", "arguments": {"n": 21}}], "usage": USAGE},
    {"when": {"tool": "double"}, "text": "It is {{tool}}", "usage": USAGE},
    {"when": {"tool": "look"}, "text": "I looked", "usage": USAGE},
    {"when": {"last": "slow"}, "text": "late", "pause_ms": 60_000},
    {"when": {"model": "b"}, "text": "Good evening", "usage": USAGE},
    {"text": "Good day", "usage": USAGE},
)


@asynccontextmanager
async def desk(path: Path, price: str | None = "1/1/10", **options: Any) -> AsyncIterator[tuple[Engine, DevModel]]:
    async with dev_model(*RULES) as model, engine_on(path / "weft.db", models={"DEV": model.url}, **options) as engine:
        models = engine.parts.services.models
        assert isinstance(models, ModelClient)
        if price is not None:
            models.endpoints = Endpoints({"DEV": models.endpoints.named[0].url}, {"DEV": price})
        yield engine, model


async def said(model: DevModel) -> list[str]:
    """The messages of the last request."""
    return [message["content"] for message in (await model.calls())[-1]["body"]["messages"]]


async def recorded(engine: Engine, text: str, document: Json = DESK) -> str:
    view = await settled(engine, (await engine.submit(document, input={"text": text})).run)
    assert view.status in ("succeeded", "failed"), view
    return view.id


def asking(prompt: str, **params: Any) -> Json:
    new = copy.deepcopy(DESK)
    new["blocks"]["answer"]["params"] |= {"prompt": prompt, **params}
    return new


async def played(engine: Engine, document: Json, budget: float | None = 1.0, **what: Any) -> Backtest:
    calls = None if budget is None else CallModels(budget)
    return await engine.backtests.play("desk", document=document, evaluation=Evaluation(call_models=calls, **what))


def one(page: Backtest) -> RunReplay:
    (run,) = page.runs
    return run


async def test_a_changed_prompt_is_asked_within_a_budget(tmp_path: Path) -> None:
    async with desk(tmp_path) as (engine, model):
        runs = [await recorded(engine, text) for text in ("a", "b", "c")]
        same = await played(engine, DESK)
        assert [(run.result, run.used.calls, run.used.cost_usd, run.used.tokens) for run in same.runs] == [
            ("same", 0, COST, 1100)
        ] * 3, "what stands in the recording is not paid again, and counts as what the document costs"
        assert same.spent_usd == 0
        assert len(await model.calls()) == 3
        assert (
            one(await engine.backtests.play("desk", document=asking("Hi <start.text>"), last=1)).result == "would_call"
        )

        page = await played(engine, asking("Hi <start.text>", model="dev:b"), budget=1.5 * COST)
        first, second, third = page.runs
        assert (first.result, first.now, first.used.calls, first.used.cost_usd) == ("changed", "succeeded", 1, COST)
        assert first.differences[0].value is not None
        assert (first.differences[0].value.a, first.differences[0].value.b) == ('"Good day"', '"Good evening"')
        assert first.recorded is not None and first.recorded.cost_usd == COST
        assert second.result == "changed", "the budget was not spent when it began"
        assert (third.result, third.reason, third.now) == ("not_called", "the budget is spent", None)
        assert page.spent_usd == 2 * COST
        assert [run.run for run in page.runs] == runs[::-1]
        assert len(await model.calls()) == 5
        assert len(await engine.runs.list()) == 3, "no run is stored"
        _, _, used = await engine.usage.between(by="model", workflow="desk")
        assert {each.key: each.calls for each in used.items} == {"dev:a": 3, "dev:b": 2}, "what was paid is"


async def test_a_model_without_a_price_is_not_called(tmp_path: Path) -> None:
    async with desk(tmp_path, price=None) as (engine, model):
        await recorded(engine, "a")
        run = one(await played(engine, asking("Hi")))
        assert run.result == "not_called"
        assert run.reason == "the price of dev:a is not known, so the budget cannot be kept: set WEFT_PRICE_DEV"
        assert len(await model.calls()) == 1


async def test_tools_are_those_of_the_recording(tmp_path: Path) -> None:
    async with desk(tmp_path) as (engine, _):
        await recorded(engine, "", asking("Please look at it", tools=TOOLS))
        run = one(await played(engine, asking("You must look at it", tools=TOOLS)))
        assert (run.result, run.used.calls) == ("same", 2), run
        run = one(await played(engine, asking("Please look elsewhere", tools=TOOLS)))
        assert (run.result, run.reason, run.used.calls) == ("would_call", "would call the tool look", 1)
        run = one(await played(engine, asking("Please double it", tools=TOOLS)))
        assert (run.now, run.used.calls) == ("succeeded", 2), "a tool that only computes is executed"


@pytest.mark.parametrize("asks_for", ["look at", "look elsewhere"])
async def test_an_approval_counts_for_the_recorded_call(tmp_path: Path, asks_for: str) -> None:
    tools = [{**TOOLS[0], "approve": "always"}]
    async with desk(tmp_path) as (engine, _):
        submitted = await engine.submit(asking("Please look at it", tools=tools), input={"text": ""})
        await settled(engine, submitted.run)
        (wait,) = await engine.waits.list(run=submitted.run)
        await engine.waits.answer(token_of(wait.link), {}, "approve")
        assert (await settled(engine, submitted.run)).status == "succeeded"
        run = one(await played(engine, asking(f"You must {asks_for} it", tools=tools)))
        if asks_for == "look at":
            assert run.result == "same", run
        else:
            assert run.reason == "would call the tool look"
        row = one(await played(engine, asking("look at", tools=tools), rows=[DataRow({})]))
        assert (row.result, row.reason) == ("would_call", "would ask a person")


async def test_memory_is_not_written(tmp_path: Path) -> None:
    document = asking("Hello <start.text>", memory="ada")
    async with desk(tmp_path) as (engine, model):
        await recorded(engine, "a", document)
        row = one(await played(engine, document, rows=[DataRow({"text": "b"})]))
        assert row.result == "played"
        assert await said(model) == ["Hello b"], "it remembers nothing"
        await recorded(engine, "c", document)
        assert await said(model) == ["Hello a", "Good day", "Hello c"]


async def test_a_key_in_a_secret_is_used_and_not_shown(tmp_path: Path) -> None:
    document = asking("Hello", api_key="${MODEL_KEY}")
    async with desk(tmp_path, env={"MODEL_KEY": "k-hunter2-hunter2"}) as (engine, model):
        await recorded(engine, "a", document)
        run = one(await played(engine, asking("Hi", api_key="${MODEL_KEY}")))
        assert (run.result, run.now) == ("same", "succeeded"), run
        assert len({call["headers"]["authorization"] for call in await model.calls()}) == 1
        assert "hunter2" not in repr(run)


# --- rows of data


async def test_rows_have_no_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = asking("Hello <page.text> <start.text>")
    document["blocks"]["page"] = {"type": "http", "params": {"url": "http://127.0.0.1:1/a"}}
    document["edges"] = [{"source": "start", "target": "page"}, {"source": "page", "target": "answer"}]
    async with desk(tmp_path) as (engine, model):
        rows = [DataRow({"text": "a"}), DataRow({"text": "b"}, "Good day", {"page": {"text": "here"}})]
        page = await played(engine, document, rows=rows, score=Scorer())
        first, second = page.runs
        assert (first.run, first.result, first.reason) == ("1", "would_call", "would send a request")
        assert first.score is not None and (first.score.value, first.score.reason) == (None, "would send a request")
        assert (second.run, second.result, second.used.calls) == ("2", "played", 1)
        assert second.score is not None and second.score.value == 1.0
        assert await said(model) == ["Hello here b"]
        assert (page.total, page.next) == (2, None)
        uncalled = one(await played(engine, DESK, budget=None, rows=[DataRow({"text": "a"})]))
        assert (uncalled.result, uncalled.reason) == ("would_call", "would call Agent")
        monkeypatch.setattr(backtests, "PAGE", 2)
        many = await engine.backtests.play("desk", document=DESK, last=1, evaluation=Evaluation(rows=[DataRow({})] * 3))
        assert ([run.run for run in many.runs], many.total, many.next) == (["1", "2"], 3, "2")
        with pytest.raises(BadRequest, match="pins block 'pag'"):
            await played(engine, document, rows=[DataRow({}, pins={"pag": 1})])
        assert await engine.runs.list() == []


async def test_another_model_in_all_blocks(tmp_path: Path) -> None:
    async with desk(tmp_path) as (engine, _):
        await recorded(engine, "a")
        run = one(await played(engine, DESK, model="dev:b", score=Scorer()))
        assert run.score is not None
        assert (run.score.value, run.score.output) == (0.0, '"Good evening"')
        assert run.score.difference is not None and run.score.difference.a == '"Good day"'
        without = {"format": "weft/1", "blocks": {"start": {"type": "start"}}, "edges": []}
        with pytest.raises(BadRequest, match="no block asks a model"):
            await played(engine, without, model="dev:b")


# --- scores


@pytest.mark.parametrize(
    ("by", "value", "expected", "score"),
    [
        ("same", {"a": [1, 2], "b": 0}, {"b": 0, "a": [1, 2]}, 1.0),
        ("same", {"a": 1}, {"a": 2}, 0.0),
        ("same", 12, "12", 1.0),  # a cell of a CSV file
        ("contains", "Good day", "day", 1.0),
        ("contains", {"a": "Good day"}, "Good day", 1.0),
        ("contains", "Good day", "night", 0.0),
        ("regex", "Order 17", r"\d+$", 1.0),
        ("regex", "Order", r"\d+$", 0.0),
        ("regex", "Order", "(", None),
        ("same", "x", None, None),
    ],
)
async def test_scores(tmp_path: Path, by: Any, value: Any, expected: Any, score: float | None) -> None:
    async with desk(tmp_path) as (engine, _):
        found = await compared(Scorer(by), value, expected, engine.parts.services.sandbox)
    assert found.value == score
    assert bool(found.reason) == (score is None)


@pytest.mark.parametrize(
    ("output", "score", "reason"),
    [
        (0.5, 0.5, ""),
        (True, 1.0, ""),
        ({"score": 0, "reason": "No."}, 0.0, "No."),
        ({"scores": {"a": 1, "b": 0.5}, "reasons": {"a": "Yes.", "b": "Half."}}, 0.75, "Yes.; Half."),
        (7, None, "the judge returned 7: a score is a number from 0 to 1, true or false"),
        ({"scores": {}}, None, None),
        ("good", None, None),
    ],
)
def test_verdicts(output: Any, score: float | None, reason: str | None) -> None:
    value, why = verdict(output)
    assert value == score
    assert reason is None or why == reason


async def test_judges_are_paid_from_the_budget(tmp_path: Path) -> None:
    judge: Json = {
        "format": "weft/1",
        "name": "strict",
        "blocks": {
            "start": {"type": "start"},
            "score": {"type": "function", "params": {"code": "return <start.output> === <start.expected> ? 1 : 0.5"}},
        },
        "edges": [{"source": "start", "target": "score"}],
    }
    by_model = Scorer("judge", judge=Judge(model="dev:judge", criteria="Is it short?"))
    async with desk(tmp_path) as (engine, model):
        await engine.workflows.save(judge)
        await recorded(engine, "a")
        page = await played(engine, asking("Hi"), score=by_model)
        run = one(page)
        assert run.score is not None and (run.score.value, run.score.reason) == (0.25, "It is short.")
        assert (run.used.cost_usd, page.spent_usd) == (COST, 2 * COST), "the judge is no part of what a run costs"
        told = (await said(model))[-1]
        assert "Output: Good day" in told and "Expected: Good day" in told

        unpaid = one(await played(engine, asking("Hi"), budget=COST / 2, score=by_model))
        assert unpaid.score is not None and unpaid.score.value is None
        assert unpaid.score.reason == "the judge: the budget is spent"

        strict = Scorer("judge", judge=Judge("strict"))
        rows = [DataRow({"text": "a"}, "Good day"), DataRow({"text": "b"}, "Good night")]
        scores = [run.score for run in (await played(engine, DESK, rows=rows, score=strict)).runs]
        assert [score and score.value for score in scores] == [1.0, 0.5], scores
        for scorer, budget, error in (
            (Scorer("judge", judge=Judge("none")), 1.0, NotFound),
            (Scorer("judge"), 1.0, BadRequest),
            (strict, None, BadRequest),
        ):
            with pytest.raises(error):
                await played(engine, DESK, budget, score=scorer)


async def test_nothing_more_is_paid_when_the_caller_leaves(tmp_path: Path) -> None:
    async with desk(tmp_path) as (engine, model):
        rows = [DataRow({"text": "slow"}), DataRow({"text": "b"})]
        playing = asyncio.create_task(played(engine, DESK, rows=rows))
        async with asyncio.timeout(30):
            while not await model.calls():
                await asyncio.sleep(0.01)
            playing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await playing
        assert len(await model.calls()) == 1
