"""Rewinding an agent: a fork inside its run, with another result of one step, or another prompt from there on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from executor.errors import BadRequest, Conflict
from executor.kernel.run.answers import VISITOR
from executor.open.engine import Engine
from tests.support.crashes import ends_at
from tests.support.dev_model import dev_model
from tests.support.documents import chain
from tests.support.runs import engine_on, outputs, settled, token_of
from tests.unit.executor.blocks.types.test_agent import LAST, RUN, asked, begin, calls, run, world
from tests.unit.executor.kernel.run.test_steps_crashes import until_ended

pytestmark = pytest.mark.usefixtures("invariants_hold")


async def seq_of_step(engine: Engine, run: str, n: int, type: str = "step.finished") -> int:
    records = await engine.store.read_events(run)
    return next(r.seq for r in records if r.type == type and orjson.loads(r.data or b"{}")["n"] == n)


async def test_another_result_of_a_tool_is_what_the_agent_goes_by(tmp_path: Path) -> None:
    async with world(tmp_path, calls({"id": 1}), LAST) as (engine, model, _):
        source = await run(engine, tools=[RUN])
        assert (source.status, len(await model.calls())) == ("succeeded", 2)
        found = await engine.lifecycle.preview_fork(source.id, steps={"a": {"2": {"order": 70}}})
        assert (found.calls, [(each.key, each.n, each.kind) for each in found.again]) == (2, [("a", 3, "model")])
        forked = await engine.lifecycle.fork(source.id, steps={"a": {"2": {"order": 70}}})
        assert forked.seq == found.seq == await seq_of_step(engine, source.id, 3, "step.started") - 1
        view = await settled(engine, forked.run)
        assert (view.status, len(await model.calls())) == ("succeeded", 3)
        assert "70" in outputs(view)["a"]["content"] and "70" not in outputs(source)["a"]["content"]
        # Reused work is no usage of this run, and its first difference is the result.
        finished = [r for r in await engine.store.read_events(view.id) if r.type == "step.finished"]
        payers = [orjson.loads(r.data or b"{}").get("from_run") for r in finished]
        assert payers == [source.id, source.id, None]
        [mine], [theirs] = ([n for n in each.nodes if n.key == "a"] for each in (view, source))
        assert mine.usage and theirs.usage and mine.reused_usage
        assert mine.usage["output_tokens"] < theirs.usage["output_tokens"] and theirs.reused_usage is None
        diff = await engine.history.diff(source.id, view.id)
        assert diff.diverged is not None and diff.diverged.a is not None
        assert (diff.diverged.a.type, diff.diverged.a.data["n"], diff.diverged.fields) == (
            "step.finished",
            2,
            ("output",),
        )


async def test_another_prompt_counts_from_a_turn_on(tmp_path: Path) -> None:
    async with world(tmp_path, calls({"id": 1}), LAST) as (engine, model, _):
        source = await run(engine, tools=[RUN], system="Be brief.")
        at = await seq_of_step(engine, source.id, 2)
        forked = await engine.lifecycle.fork(source.id, at, params={"a": {"system": "Be kind."}})
        view = await settled(engine, forked.run)
        sent = [call["body"]["messages"][0]["content"] for call in await model.calls()]
        assert (view.status, sent) == ("succeeded", ["Be brief.", "Be brief.", "Be kind."])
        assert (view.version, (await engine.runs.document(view.id)).document["blocks"]["a"]["params"]["system"]) == (
            None,
            "Be kind.",
        )
        with pytest.raises(BadRequest, match="no block 'x'") as refused:
            await engine.lifecycle.fork(source.id, at, params={"x": {}})
        assert refused.value.pointer == "/params/x"


async def test_a_step_that_others_depend_on_is_named_with_the_place_to_fork(tmp_path: Path) -> None:
    async with world(tmp_path, calls({"id": 1}), LAST) as (engine, _, _):
        source = await run(engine, tools=[RUN])
        at, used = await seq_of_step(engine, source.id, 3), await seq_of_step(engine, source.id, 3, "step.started")
        with pytest.raises(BadRequest, match="a later step of 'a' depends on step 2") as refused:
            await engine.lifecycle.fork(source.id, at, steps={"a": {"2": 1}})
        assert (refused.value.pointer, refused.value.hint) == (
            "/steps/a/2",
            f"fork at {used - 1}, before it began",
        )
        with pytest.raises(BadRequest, match="step 9 of 'a' has no result"):
            await engine.lifecycle.fork(source.id, at, steps={"a": {"9": 1}})
        with pytest.raises(BadRequest, match="an event, or a step"):
            await engine.lifecycle.fork(source.id)


async def test_an_answer_inside_an_agent_can_be_another_unless_it_was_for_certain_people(tmp_path: Path) -> None:
    async with world(tmp_path, calls({"id": 1}), LAST) as (engine, _, _):
        for by, is_bound in (({}, False), ({"by": ["chat"]}, True)):
            source = await begin(engine, tools=[RUN | {"approve": "always", **by}])
            wait = await asked(engine, source)
            await engine.waits.answer(token_of(wait.link), {}, "approve", who=VISITOR if is_bound else None)
            before = await settled(engine, source)
            assert before.status == "succeeded"
            other = {"a": {"2": {"action": "reject", "reason": "no"}}}
            if is_bound:
                with pytest.raises(Conflict, match="the answer to 'a' does not count"):
                    await engine.lifecycle.fork(source, steps=other)
                continue
            view = await settled(engine, (await engine.lifecycle.fork(source, steps=other)).run)
            assert (view.status, view.children) == ("succeeded", ())
            assert outputs(view)["a"]["tool_calls"] != outputs(before)["a"]["tool_calls"]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_no_call_that_was_taken_over_is_made_after_a_crash(tmp_path: Path, after: bool) -> None:
    rules: list[Any] = [{"when": {"tool": ""}, "calls": [{"name": "lookup", "arguments": {"id": 1}}]}, LAST]
    for commit in range(1, 12):
        async with dev_model(*rules) as model:
            path = tmp_path / f"{commit}.db"
            async with engine_on(path, models={"DEV": model.url}) as engine:
                await engine.workflows.save(chain(name="orders"))
                made = chain("a", a={"type": "agent", "params": {"model": "dev:m", "prompt": "?", "tools": [RUN]}})
                source = await settled(engine, (await engine.submit(made)).run)
                ended = ends_at(engine, commit, after)
                forked = await engine.lifecycle.fork(source.id, steps={"a": {"2": {"order": 70}}})
                over = await until_ended(engine, forked.run, ended)
            before = len(await model.calls())
            async with engine_on(path, models={"DEV": model.url}) as engine:
                assert await until_ended(engine, forked.run)
                assert "70" in outputs(await settled(engine, forked.run))["a"]["content"]
            assert before <= 3 and len(await model.calls()) <= 4  # the last one alone may be asked twice
        if over:
            return
    raise AssertionError("it never ended")


async def test_a_fork_of_a_fork_keeps_who_paid(tmp_path: Path) -> None:
    async with world(tmp_path, calls({"id": 1}), LAST) as (engine, _, _):
        source = await run(engine, tools=[RUN])
        one = await engine.lifecycle.fork(source.id, steps={"a": {"2": 1}})
        await settled(engine, one.run)
        two = await engine.lifecycle.fork(one.run, await seq_of_step(engine, one.run, 3))
        await settled(engine, two.run)
        finished = [r for r in await engine.store.read_events(two.run) if r.type == "step.finished"]
        assert [orjson.loads(r.data or b"{}").get("from_run") for r in finished] == [source.id, source.id, one.run]
        with pytest.raises(Conflict):
            await engine.lifecycle.fork(two.run, 10_000)
