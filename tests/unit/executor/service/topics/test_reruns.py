"""Edit, then continue: a run is continued with another definition, and what is unchanged is not run again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from executor.errors import BadRequest, Conflict, NotFound
from executor.kernel.store.postgres.store import PostgresStore
from executor.open.engine import Engine
from executor.service.topics.reruns import Target
from executor.service.views import RunView
from tests.support.blocks import Step
from tests.support.documents import chain, document, in_a_row, looped, value
from tests.support.runs import engine_on, journal, outputs, settled, until_event

pytestmark = pytest.mark.usefixtures("invariants_hold")

Json = dict[str, Any]


async def gone_on(engine: Engine, run: str, new: Json, **more: Any) -> RunView:
    made = await engine.lifecycle.go_on(run, Target(document=new), **more)
    return await settled(engine, made.run)


async def failed(engine: Engine, made: Json, **more: Any) -> str:
    run = (await engine.submit(made, **more)).run
    assert (await settled(engine, run)).status == "failed"
    return run


async def test_a_repaired_block_runs_and_what_is_before_it_does_not(tmp_path: Path) -> None:
    step = Step()
    step.failing.add("b")
    async with engine_on(tmp_path / "weft.db", step) as engine:
        source = await failed(engine, chain("a", "b", "c", b={"params": {"value": "wrong <a.n>"}}))
        step.failing.clear()
        view = await gone_on(engine, source, chain("a", "b", "c", b={"params": {"value": "right <a.n>"}}))
        assert view.status == "succeeded"
        assert outputs(view)["b"] == {"n": 2, "value": "right 1"}
        assert dict(step.ran) == {"a": 1, "b": 2, "c": 1}
        ended = [r for r in await engine.store.read_events(view.id) if (r.type, r.node) == ("node.succeeded", "a")]
        assert source.encode() in (ended[0].data or b"")


async def test_a_block_whose_input_comes_out_the_same_is_taken_over_behind_one_that_ran(tmp_path: Path) -> None:
    step = Step()
    wrap = {"type": "set", "params": {"value": "x"}}
    first = in_a_row("w", {"wrap": wrap, "a": {"type": "step", "params": {"value": "<wrap>"}}})
    other = in_a_row("w", {"new": {"type": "step"}, "wrap": {**wrap, "name": "Wrap"}, "a": first["blocks"]["a"]})
    async with engine_on(tmp_path / "weft.db", step) as engine:
        source = (await engine.submit(first)).run
        await settled(engine, source)
        view = await gone_on(engine, source, other)
        assert (view.status, dict(step.ran)) == ("succeeded", {"a": 1, "new": 1})
        other["blocks"]["wrap"]["params"]["value"] = "y"
        view = await gone_on(engine, source, other)
        assert outputs(view)["a"] == {"n": 2, "value": "y"}


@pytest.mark.parametrize("kind", ["loop", "parallel"])
async def test_each_iteration_and_branch_is_compared_alone(tmp_path: Path, kind: str) -> None:
    step = Step()
    first, other = looped(3, kind), looped(5, kind)
    other["blocks"]["b"]["params"]["value"] = "new <a.value>"
    async with engine_on(tmp_path / "weft.db", step) as engine:
        source = (await engine.submit(first)).run
        await settled(engine, source)
        view = await gone_on(engine, source, other)
        mark = "l#{}" if kind == "loop" else "l[{}]"
        ran = {block: [step.ran[f"{block}@{mark.format(n)}"] for n in range(5)] for block in "ab"}
        assert ran == {"a": [1, 1, 1, 1, 1], "b": [2, 2, 2, 1, 1]}
        assert [each[0]["value"] for each in outputs(view)["last"]["value"]] == [f"new {n}" for n in range(5)]
        assert view.status == "succeeded"


async def test_branches_that_failed_run_again_alone(tmp_path: Path) -> None:
    step = Step()
    made = looped(4, "parallel")
    made["blocks"]["l"]["params"]["on_branch_error"] = "collect"
    step.failing.add("a@l[2]")
    async with engine_on(tmp_path / "weft.db", step) as engine:
        source = (await engine.submit(made)).run
        await settled(engine, source)
        step.failing.clear()
        tried = step.ran["a@l[2]"]
        await gone_on(engine, source, made)
        assert [step.ran[f"a@l[{n}]"] for n in range(4)] == [1, 1, tried + 1, 1]
        assert [step.ran[f"b@l[{n}]"] for n in range(4)] == [1, 1, 1, 1]


async def test_a_variable_counts_as_it_is_when_the_block_starts(tmp_path: Path) -> None:
    step = Step()
    put = {"type": "variables", "params": {"assign": [{"name": "v", "value": 1}]}}
    row: Json = {"put": put, "a": {"type": "step", "params": {"value": "<variable.v>"}}}
    made = in_a_row("w", {**row, "b": {"type": "step", "params": {"value": "b"}}}, variables={"v": 0})
    async with engine_on(tmp_path / "weft.db", step) as engine:
        source = (await engine.submit(made)).run
        await settled(engine, source)
        other = in_a_row("w", {**made["blocks"]}, variables={"v": 0})
        other["blocks"].pop("start")
        other["blocks"]["b"] = {"type": "step", "params": {"value": "c"}}
        await gone_on(engine, source, in_a_row("w", other["blocks"], variables={"v": 0}))
        assert dict(step.ran) == {"a": 1, "b": 2}
        other["blocks"]["put"] = {"type": "variables", "params": {"assign": [{"name": "v", "value": 2}]}}
        view = await gone_on(engine, source, in_a_row("w", other["blocks"], variables={"v": 0}))
        assert outputs(view)["a"] == {"n": 2, "value": 2}


async def test_the_run_before_may_have_taken_over_itself(tmp_path: Path) -> None:
    """Work that it did not reach again is found in the run before it."""
    step = Step()
    async with engine_on(tmp_path / "weft.db", step) as engine:
        one = (await engine.submit(chain("a", "b", "c"))).run
        await settled(engine, one)
        step.failing.add("a")
        wrong = chain("a", "b", "c", a={"params": {"value": "wrong"}})
        two = await gone_on(engine, one, wrong)
        assert two.status == "failed"
        step.failing.clear()
        three = await gone_on(engine, two.id, chain("a", "b", "c"))
        assert (three.status, step.ran["b"], step.ran["c"]) == ("succeeded", 1, 1)
        assert step.ran["a"] >= 2 and outputs(three)["a"]["n"] == 1  # the first one's, whose block is the same


async def test_blocks_can_be_chosen_to_run_again(tmp_path: Path) -> None:
    step = Step()
    async with engine_on(tmp_path / "weft.db", step) as engine:
        source = (await engine.submit(chain("a", "b", "c"))).run
        await settled(engine, source)
        await gone_on(engine, source, chain("a", "b", "c"), again=["b"])
        assert dict(step.ran) == {"a": 1, "b": 2, "c": 1}
        await gone_on(engine, source, chain("a", "b", "c"), block="b")
        assert dict(step.ran) == {"a": 1, "b": 3, "c": 2}
        with pytest.raises(BadRequest, match="no block 'x'"):
            await gone_on(engine, source, chain("a"), again=["x"])


async def test_an_answer_is_kept_as_long_as_what_was_shown_is(tmp_path: Path) -> None:
    step = Step()

    def made(a: str = "A", c: str = "C") -> Json:
        ask = {"type": "approval", "params": {"title": "Pay <a.value>?", "actions": ["yes", "no"]}}
        blocks: Json = {"a": {"params": {"value": a}}, "c": {"params": {"value": c}}}
        return chain("a", "ask", "c", ask=ask, **blocks)

    async with engine_on(tmp_path / "weft.db", step) as engine:
        source = (await engine.submit(made())).run
        await settled(engine, source)
        [wait] = await engine.waits.list(run=source)
        assert wait.link is not None
        await engine.answer(wait.link.rpartition("/")[2], {}, "yes", by="Ada")
        assert (await settled(engine, source)).status == "succeeded"
        view = await gone_on(engine, source, made(c="D"))
        assert (view.status, outputs(view)["ask"]["answered_by"]) == ("succeeded", "Ada")
        # The answer that was taken over does not count for a fork that changes what was shown.
        at = next(
            r.seq for r in await engine.store.read_events(view.id) if (r.type, r.node) == ("node.succeeded", "ask")
        )
        forked = await engine.lifecycle.fork(view.id, at, {"a": {"value": "other", "n": 1}})
        assert (await settled(engine, forked.run)).status == "waiting"
        assert (await gone_on(engine, source, made(a="B"))).status == "waiting"


async def test_a_cleanup_runs_again(tmp_path: Path) -> None:
    step = Step()
    made = document("w", "start a", "start finally tidy", blocks={"a": {"type": "step"}, "tidy": {"type": "step"}})
    async with engine_on(tmp_path / "weft.db", step) as engine:
        source = (await engine.submit(made)).run
        await settled(engine, source)
        await gone_on(engine, source, made)
        assert {key.partition("@")[0]: n for key, n in step.ran.items()} == {"a": 1, "tidy": 2}


async def test_only_runs_that_have_ended_and_targets_that_are_there(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        ask = {"type": "approval", "params": {"title": "OK?"}}
        run = (await engine.submit(chain("ask", ask=ask))).run
        await settled(engine, run)
        with pytest.raises(Conflict, match="has not ended"):
            await gone_on(engine, run, chain("a"))
        await engine.cancel(run)
        await settled(engine, run)
        with pytest.raises(BadRequest, match="one of version, draft and document"):
            await engine.lifecycle.go_on(run, Target())
        with pytest.raises(NotFound):
            await engine.lifecycle.go_on(run, Target(version=7))
        with pytest.raises(NotFound):
            await engine.lifecycle.go_on(run, Target(version="draft"))
        view = await gone_on(engine, run, chain("ask", ask=value("now")))
        assert (view.status, outputs(view)["ask"]) == ("succeeded", "now")


async def test_a_preview_names_what_is_kept_and_what_is_not(tmp_path: Path) -> None:
    step, mail = Step(), Step("mail", careful=True)
    step.failing.add("d")
    async with engine_on(tmp_path / "weft.db", step, mail) as engine:
        blocks: Json = {
            "b": {"type": "step", "params": {"value": "one"}},
            "c": {"type": "mail", "params": {"value": "<b.value>"}},
        }
        source = await failed(engine, chain("a", "b", "c", "d", **blocks))
        other = {**blocks, "b": {"type": "step", "params": {"value": "two"}}, "e": {"type": "mail"}}
        found = await engine.lifecycle.preview_go_on(source, Target(document=chain("a", "b", "c", "d", "e", **other)))
        told = [(each.block, each.fate, each.why, each.effect, each.kept) for each in found.blocks]
        assert told == [
            ("start", "kept", "", "none", 1),
            ("a", "kept", "", "read", 1),
            ("b", "again", "changed", "read", 0),
            ("c", "maybe", "input", "write", 1),
            ("d", "again", "failed", "read", 0),
            ("e", "new", "new", "write", 0),
        ]
        before = await journal(engine, source)
        assert await journal(engine, source) == before


async def test_it_is_the_same_on_postgresql(postgres: str) -> None:
    step = Step()
    first, other = looped(3), looped(3)
    other["blocks"]["b"]["params"]["value"] = "new <a.value>"
    async with engine_on(PostgresStore(postgres), step) as engine:
        source = (await engine.submit(first)).run
        await settled(engine, source)
        view = await gone_on(engine, source, other)
        assert (view.status, [step.ran[f"a@l#{n}"] for n in range(3)]) == ("succeeded", [1, 1, 1])
        assert outputs(view)["last"]["value"][2] == [{"n": 2, "value": "new 2"}]


async def test_what_is_taken_over_is_bounded_for_each_append(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that becomes ready after that starts once it is on disk."""
    monkeypatch.setattr("executor.kernel.run.loop.INLINE_BATCH_MAX", 2)
    step = Step()
    async with engine_on(tmp_path / "weft.db", step) as engine:
        made = chain(*"abcdefgh")
        source = (await engine.submit(made)).run
        await settled(engine, source)
        appended: list[int] = []
        append = engine.store.append

        async def counting(change: Any) -> Any:
            appended.append(len(change.records))
            return await append(change)

        monkeypatch.setattr(engine.store, "append", counting)
        view = await gone_on(engine, source, made)
        assert (view.status, set(step.ran.values())) == ("succeeded", {1})
        assert len(appended) >= 3 and max(appended) < 8


async def test_a_block_runs_again_if_what_it_reads_changed_while_it_ran(tmp_path: Path) -> None:
    """It may have read either value: the journal does not record when it did."""
    step = Step()
    put = {"type": "variables", "params": {"assign": [{"name": "v", "value": 1}]}}
    blocks: Json = {"slow": {"type": "step", "params": {"value": "<variable.v>"}}, "a": {"type": "step"}, "put": put}
    made = document("w", "start slow", "start a", "a put", blocks=blocks, variables={"v": 0})
    step.holding["slow"] = asyncio.Event()
    async with engine_on(tmp_path / "weft.db", step) as engine:
        source = (await engine.submit(made)).run
        await until_event(engine, source, "node.succeeded", "put")
        step.holding.pop("slow").set()
        assert (await settled(engine, source)).status == "succeeded"
        view = await gone_on(engine, source, made)
        assert (view.status, step.ran["slow"], step.ran["a"]) == ("succeeded", 2, 1)
