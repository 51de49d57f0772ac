"""One node again: a new run from one that has ended, or the next attempt of an open one at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from executor.errors import Conflict, NotFound
from tests.support.blocks import Step
from tests.support.clock import ManualClock
from tests.support.documents import chain, looped
from tests.support.runs import engine_on, outputs, settled, until_event

pytestmark = pytest.mark.usefixtures("invariants_hold")

Json = dict[str, Any]


async def test_a_block_of_a_failed_run_and_what_follows_it_run_again(tmp_path: Path) -> None:
    step = Step()
    step.failing.add("b")
    async with engine_on(tmp_path / "weft.db", step) as engine:
        source = (await engine.submit(chain("a", "b", "c"))).run
        assert (await settled(engine, source)).status == "failed"
        step.failing.clear()
        retried = await engine.lifecycle.retry(source, "b")
        assert (retried.how, retried.block, retried.created) == ("from_block", "b", True)
        assert (await settled(engine, retried.run)).status == "succeeded"
        assert dict(step.ran) == {"a": 1, "b": 2, "c": 1}
        assert (await engine.runs.view(source)).status == "failed"


async def test_a_node_inside_a_loop_runs_again_and_all_before_it_is_reused(tmp_path: Path) -> None:
    step = Step()
    step.failing.add("b@l#1")
    async with engine_on(tmp_path / "weft.db", step) as engine:
        source = (await engine.submit(looped(3))).run
        assert (await settled(engine, source)).status == "failed"
        step.failing.clear()
        retried = await engine.lifecycle.retry(source, "b@l#1")
        assert (retried.how, retried.block) == ("from_node", "b")
        view = await settled(engine, retried.run)
        assert view.status == "succeeded"
        assert [step.ran[key] for key in ("a@l#0", "b@l#0", "a@l#1", "b@l#1", "a@l#2", "last")] == [1, 1, 1, 2, 1, 1]
        assert [value[0]["value"] for value in outputs(view)["last"]["value"]] == [0, 1, 2]


async def test_the_whole_container_runs_again_when_more_than_the_node_had_gone_on(tmp_path: Path) -> None:
    step = Step()
    async with engine_on(tmp_path / "weft.db", step) as engine:
        source = (await engine.submit(looped(3, "parallel"))).run
        await settled(engine, source)
        retried = await engine.lifecycle.retry(source, "a@l[0]")
        assert (retried.how, retried.block) == ("whole_container", "l")
        assert (await settled(engine, retried.run)).status == "succeeded"
        assert [step.ran[key] for key in ("a@l[0]", "a@l[2]", "b@l[2]", "last")] == [2, 2, 2, 2]


async def test_a_branch_that_ran_last_by_itself_is_retried_by_itself(tmp_path: Path) -> None:
    step = Step()
    step.failing.add("b@l[2]")
    document = looped(3, "parallel")
    document["blocks"]["l"]["params"]["concurrency"] = 1
    async with engine_on(tmp_path / "weft.db", step) as engine:
        source = (await engine.submit(document)).run
        await settled(engine, source)
        step.failing.clear()
        retried = await engine.lifecycle.retry(source, "b@l[2]")
        assert retried.how == "from_node"
        assert (await settled(engine, retried.run)).status == "succeeded"
        assert [step.ran[key] for key in ("a@l[0]", "b@l[0]", "a@l[2]", "b@l[2]")] == [1, 1, 1, 2]


async def test_a_container_inside_a_container_may_be_retried(tmp_path: Path) -> None:
    step = Step()
    document = looped(2)
    document["blocks"] |= {
        "in": {"type": "loop", "parent": "l", "params": {"mode": "for", "count": 2}},
        "c": {"type": "step", "parent": "in"},
    }
    document["edges"] += [{"source": "b", "target": "in"}, {"source": "in", "handle": "body", "target": "c"}]
    async with engine_on(tmp_path / "weft.db", step) as engine:
        source = (await engine.submit(document)).run
        assert (await settled(engine, source)).status == "succeeded"
        retried = await engine.lifecycle.retry(source, "in@l#1")
        assert retried.how == "from_node"
        assert (await settled(engine, retried.run)).status == "succeeded"
        ran = [step.ran[key] for key in ("b@l#0", "c@l#0/in#1", "b@l#1", "c@l#1/in#0", "c@l#1/in#1", "last")]
        assert ran == [1, 1, 1, 2, 2, 2]


async def test_the_next_attempt_of_an_open_run_is_due_now(tmp_path: Path) -> None:
    step = Step()
    step.failing.add("a")
    slow = {"policy": {"retry": {"max_attempts": 2, "initial_ms": 3_600_000, "max_ms": 3_600_000}}}
    async with engine_on(tmp_path / "weft.db", step, clock=ManualClock()) as engine:
        run = (await engine.submit(chain("a", "b", a=slow))).run
        await until_event(engine, run, "run.parked")
        step.failing.clear()
        retried = await engine.lifecycle.retry(run, "a")
        assert (retried.how, retried.run, retried.created) == ("now", run, False)
        await until_event(engine, run, "run.finished")
        types = [record.type for record in await engine.store.read_events(run) if record.node == "a"]
        assert types == ["node.started", "retry.scheduled", "retry.hastened", "node.started", "node.succeeded"]
        assert (await engine.runs.view(run)).status == "succeeded"


async def test_a_run_that_ends_before_it_hears_of_a_retry_is_not_said_to_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Step()
    step.failing.add("a")
    slow = {"policy": {"retry": {"max_attempts": 2, "initial_ms": 3_600_000, "max_ms": 3_600_000}}}
    async with engine_on(tmp_path / "weft.db", step, clock=ManualClock()) as engine:
        run = (await engine.submit(chain("a", a=slow))).run
        await until_event(engine, run, "run.parked")
        post_message = engine.store.post_message

        async def too_late(*args: Any) -> bool:
            monkeypatch.undo()
            await engine.cancel(run)
            await until_event(engine, run, "run.finished")
            return await post_message(*args)

        monkeypatch.setattr(engine.store, "post_message", too_late)
        with pytest.raises(Conflict) as refused:
            await engine.lifecycle.retry(run, "a")
        assert refused.value.code == "run_ended"


async def test_what_does_not_wait_for_its_next_attempt_is_left_alone(tmp_path: Path) -> None:
    ask = {"type": "approval", "params": {"title": "OK?", "actions": ["yes"]}}
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        run = (await engine.submit(chain("a", "ask", "b", ask=ask))).run
        await settled(engine, run)
        for node, hint in (("a", "succeeded"), ("ask", "waiting"), ("b", "not started")):
            with pytest.raises(Conflict) as refused:
                await engine.lifecycle.retry(run, node)
            assert refused.value.code == "node_not_retrying"
            assert hint in refused.value.hint


async def test_what_never_started_cannot_be_retried(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        run = (await engine.submit(looped(1))).run
        await settled(engine, run)
        with pytest.raises(Conflict) as refused:
            await engine.lifecycle.retry(run, "a@l#7")
        assert refused.value.code == "node_not_started"
        with pytest.raises(NotFound):
            await engine.lifecycle.retry(run, "unknown")


async def test_a_key_that_no_node_can_have_is_refused(tmp_path: Path) -> None:
    """Of an open run, of one that has ended, and when a client asks why."""
    ask = {"type": "approval", "params": {"title": "OK?", "actions": ["yes"]}}
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        for document in (looped(last=ask), looped()):
            run = (await engine.submit(document)).run
            await settled(engine, run)
            for key, where in (("a", "inside loop 'l'"), ("start@l#0", "in no loop"), ("l@l#0", "in no loop")):
                with pytest.raises(NotFound, match=f"is {where}") as refused:
                    await engine.lifecycle.retry(run, key)
                assert refused.value.code == "node_not_found"
            with pytest.raises(NotFound, match="in no loop"):
                await engine.history.why(run, "start@l#0")
