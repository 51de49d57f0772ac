"""Moving open runs to another version of their workflow."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from compiler.diagnostics import CompileError
from executor.errors import Conflict, NotFound
from executor.kernel.journal import codec
from executor.open.engine import Engine
from executor.service.upkeep.gc import collect
from tests.support.blocks import Step
from tests.support.documents import chain, looped
from tests.support.runs import engine_on, outputs, settled, until_event

pytestmark = pytest.mark.usefixtures("invariants_hold")

Json = dict[str, Any]
ASK = {"type": "approval", "params": {"title": "OK?", "actions": ["yes", "no"]}}
LONG_S = 60


async def waiting(engine: Engine, document: Json) -> str:
    """A run of version 1 that waits at `ask`."""
    await engine.workflows.save(document)
    run = (await engine.submit(document["name"])).run
    assert (await settled(engine, run)).status == "waiting"
    return run


async def say_yes(engine: Engine, run: str) -> None:
    [wait] = await engine.waits.list(run=run)
    assert wait.link is not None
    await engine.answer(wait.link.rpartition("/")[2], {}, "yes")
    await until_event(engine, run, "run.finished")


async def test_a_waiting_run_goes_on_with_the_new_version(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        run = await waiting(engine, chain("a", "ask", "b", ask=ASK))
        await engine.workflows.save(chain("a", "ask", "b", "c", ask=ASK, b={"params": {"value": "new"}}))
        moved = await engine.lifecycle.migrate(run, 2, LONG_S)
        assert (moved.moved, moved.version) == (True, 2)
        view = await settled(engine, run)
        assert (view.version, view.status) == (2, "waiting")
        assert (await engine.runs.plan(run)).hash == moved.plan_hash
        await say_yes(engine, run)
        view = await engine.runs.view(run)
        assert view.status == "succeeded"
        assert outputs(view)["b"]["value"] == "new"
        assert "c" in outputs(view)
        [event] = [r for r in await engine.store.read_events(run) if r.type == "run.migrated"]
        assert event.data is not None and moved.plan_hash.encode() in event.data


async def test_the_new_version_survives_a_restart(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        run = await waiting(engine, chain("a", "ask", "b", ask=ASK))
        await engine.workflows.save(
            chain("a", "x", "ask", "b", ask=ASK)
            | {
                "edges": [
                    {"source": "start", "target": "a"},
                    {"source": "start", "target": "x"},
                    {"source": "a", "target": "ask"},
                    {"source": "ask", "target": "b"},
                    {"source": "x", "target": "b"},
                ]
            }
        )
        assert (await engine.lifecycle.migrate(run, 2, LONG_S)).moved
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        await say_yes(engine, run)
        view = await engine.runs.view(run)
        assert view.status == "succeeded"
        assert set(outputs(view)) == {"start", "a", "x", "ask", "b"}  # what was added beside ran, though late


async def test_attempts_under_way_are_not_lost(tmp_path: Path) -> None:
    mail, step = Step("mail", careful=True), Step()
    mail.holding["mail"] = asyncio.Event()
    old = chain("mail", "b", mail={"type": "mail"})
    new = chain("mail", "b", mail={"type": "mail"})
    new["blocks"] = {"extra": {"type": "step"}} | new["blocks"]  # other numbers for all nodes
    new["edges"].append({"source": "start", "target": "extra"})
    async with engine_on(tmp_path / "weft.db", mail, step) as engine:
        await engine.workflows.save(old)
        await engine.workflows.save(new)
        run = (await engine.submit("chain", version=1)).run
        await until_event(engine, run, "node.started", "mail")
        assert (await engine.lifecycle.migrate(run, 2, LONG_S)).moved
        await until_event(engine, run, "node.succeeded", "extra")
        mail.holding["mail"].set()
        await until_event(engine, run, "run.finished")
        view = await engine.runs.view(run)
        assert (view.status, mail.ran["mail"], step.ran["b"]) == ("succeeded", 1, 1)
        assert [(n.attempt, n.lost) for n in view.nodes if n.key == "mail"] == [(1, 0)]


async def test_a_move_while_an_attempt_runs_can_be_followed_by_a_cancel(tmp_path: Path) -> None:
    step = Step()
    step.holding["a"] = asyncio.Event()
    async with engine_on(tmp_path / "weft.db", step) as engine:
        await engine.workflows.save(chain("a", "b"))
        await engine.workflows.save(chain("a", "b", "c"))
        run = (await engine.submit("chain", version=1)).run
        await until_event(engine, run, "node.started", "a")
        assert (await engine.lifecycle.migrate(run, 2, LONG_S)).moved
        assert (await engine.lifecycle.migrate(run, 1, LONG_S)).moved
        await engine.cancel(run)
        await until_event(engine, run, "run.finished")
        assert (await engine.runs.view(run)).status == "cancelled"


async def test_a_loop_goes_on_where_it_was(tmp_path: Path) -> None:
    old = looped(3, b=ASK)
    new = looped(3, b=ASK, a={"params": {"value": "new"}})
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        run = await waiting(engine, old)
        await engine.workflows.save(new)
        assert (await engine.lifecycle.migrate(run, 2, LONG_S)).moved
        for iteration in range(3):
            await until_event(engine, run, "wait.opened", "b", count=iteration + 1)
            [wait] = await engine.waits.list(run=run)
            assert wait.link is not None
            await engine.answer(wait.link.rpartition("/")[2], {}, "yes")
        await until_event(engine, run, "run.finished")
        view = outputs(await engine.runs.view(run))
        assert [view[f"a@l#{n}"]["value"] for n in range(3)] == [0, "new", "new"]


def _retyped(document: Json) -> Json:
    document["blocks"]["a"] = {"type": "set", "params": {"value": 1}}
    return document


def _without(document: Json) -> Json:
    del document["blocks"]["a"]
    document["edges"] = [{"source": "start", "target": "ask"}, {"source": "ask", "target": "b"}]
    return document


def _swapped(document: Json) -> Json:
    """`a` behind `ask`, though it has run before it."""
    document["edges"] = [
        {"source": "start", "target": "ask"},
        {"source": "ask", "target": "a"},
        {"source": "a", "target": "b"},
    ]
    return document


def _inside(document: Json) -> Json:
    document["blocks"]["l"] = {"type": "loop", "params": {"mode": "for", "count": 1}}
    document["blocks"]["a"]["parent"] = "l"
    document["edges"] = [
        {"source": "start", "target": "l"},
        {"source": "l", "handle": "body", "target": "a"},
        {"source": "l", "target": "ask"},
        {"source": "ask", "target": "b"},
    ]
    return document


@pytest.mark.parametrize(
    ("change", "node", "why"),
    [
        (_retyped, "a", "its block type has changed from step to set"),
        (_without, "a", "it has run but was removed"),
        (_swapped, "a", "it has already started, but would be pending now"),
        (_inside, "a", "it was moved into or out of a loop or parallel"),
    ],
)
async def test_what_has_run_must_still_be_there(tmp_path: Path, change: Any, node: str, why: str) -> None:
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        run = await waiting(engine, chain("a", "ask", "b", ask=ASK))
        await engine.workflows.save(change(chain("a", "ask", "b", ask=ASK)))
        before = await engine.runs.row(run)
        with pytest.raises(Conflict) as refused:
            await engine.lifecycle.migrate(run, 2)
        assert refused.value.code == "migration_conflict"
        [conflict] = refused.value.extra["conflicts"]
        assert conflict["node"] == node
        assert conflict["why"].startswith(why)
        assert await engine.runs.row(run) == before
        await say_yes(engine, run)
        assert (await engine.runs.view(run)).version == 1


async def test_what_was_skipped_must_stay_skipped(tmp_path: Path) -> None:
    choice = {"type": "condition", "params": {"cases": [{"id": "yes", "when": "true"}, {"id": "no"}]}}

    def branching(*edges: Json) -> Json:
        document = chain("pick", "b", "ask", pick=choice, ask=ASK)
        document["edges"] = [
            {"source": "start", "target": "pick"},
            {"source": "pick", "handle": "yes", "target": "ask"},
            *edges,
        ]
        return document

    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        run = await waiting(engine, branching({"source": "pick", "handle": "no", "target": "b"}))
        await engine.workflows.save(
            branching(
                {"source": "pick", "handle": "no", "target": "b"}, {"source": "pick", "handle": "yes", "target": "b"}
            )
        )
        with pytest.raises(Conflict) as refused:
            await engine.lifecycle.migrate(run, 2)
        assert refused.value.extra["conflicts"] == [{"node": "b", "why": "it was skipped, but would run now"}]


async def test_what_the_new_version_has_skipped_by_now_is_told(tmp_path: Path) -> None:
    choice = {"type": "condition", "params": {"cases": [{"id": "yes", "when": "true"}, {"id": "no"}]}}
    old = chain("pick", "ask", pick=choice, ask=ASK)
    old["edges"] = [{"source": "start", "target": "pick"}, {"source": "pick", "handle": "yes", "target": "ask"}]
    new = chain("pick", "ask", "never", pick=choice, ask=ASK)
    new["edges"] = [*old["edges"], {"source": "pick", "handle": "no", "target": "never"}]
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        run = await waiting(engine, old)
        await engine.workflows.save(new)
        assert (await engine.lifecycle.migrate(run, 2, LONG_S)).moved
        view = await engine.runs.view(run)
        assert [(n.key, n.status, n.reason) for n in view.nodes if n.key == "never"] == [("never", "skipped", "pruned")]


async def test_refusals_that_are_not_about_blocks(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        run = await waiting(engine, chain("a", "ask", ask=ASK))
        with pytest.raises(NotFound):
            await engine.lifecycle.migrate(run, 9)
        with pytest.raises(Conflict) as refused:
            await engine.lifecycle.migrate(run, 1)
        assert refused.value.code == "migration_same_version"
        await say_yes(engine, run)
        await engine.workflows.save(chain("a", "ask", "b", ask=ASK))
        with pytest.raises(Conflict) as refused:
            await engine.lifecycle.migrate(run, 2)
        assert refused.value.code == "run_ended"
        loose = (await engine.submit(chain("ask", ask=ASK))).run
        with pytest.raises(Conflict) as refused:
            await engine.lifecycle.migrate(loose, 1)
        assert refused.value.code == "run_has_no_version"


async def test_the_trigger_of_the_run_must_be_there(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        run = await waiting(engine, chain("a", "ask", ask=ASK))
        other = chain("a", "ask", ask=ASK)
        other["blocks"]["begin"] = other["blocks"].pop("start")
        other["edges"][0]["source"] = "begin"
        await engine.workflows.save(other)
        with pytest.raises(CompileError):
            await engine.lifecycle.migrate(run, 2)


async def test_a_rerun_keeps_what_it_takes_over(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        first = await waiting(engine, chain("a", "ask", "b", ask=ASK))
        await say_yes(engine, first)
        run = (await engine.lifecycle.run_from(first, "ask")).run
        await settled(engine, run)
        await engine.workflows.save(chain("a", "ask", "b", "c", ask=ASK))
        assert (await engine.lifecycle.migrate(run, 2, LONG_S)).moved
        await say_yes(engine, run)
        assert outputs(await engine.runs.view(run))["a"] == {"n": 1, "value": None}


async def test_nobody_works_and_the_answer_says_so(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        run = await waiting(engine, chain("a", "ask", ask=ASK))
        await engine.workflows.save(chain("a", "ask", "b", ask=ASK))
    async with engine_on(tmp_path / "weft.db", Step(), work=False) as front:
        assert not (await front.lifecycle.migrate(run, 2, wait_s=0.3)).moved
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        await until_event(engine, run, "run.migrated")
        assert (await engine.runs.view(run)).version == 2


async def test_a_run_that_moves_while_it_is_forked_is_forked_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fork knows the plan of version 1; the blocks that only version 2 has come after what it takes over."""
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        run = await waiting(engine, chain("a", "ask", ask=ASK))
        await engine.workflows.save(chain("a", "ask", "b", ask=ASK))
        seq = (await engine.runs.row(run)).seq
        read_events = engine.store.read_events

        async def moved(*args: Any) -> Any:
            monkeypatch.undo()
            assert (await engine.lifecycle.migrate(run, 2, LONG_S)).moved
            await say_yes(engine, run)
            return await read_events(*args)

        monkeypatch.setattr(engine.store, "read_events", moved)
        forked = await engine.lifecycle.fork(run, seq)
        assert (forked.version, forked.seq) == (1, seq)
        assert [wait.key for wait in (await settled(engine, forked.run)).waits] == ["ask"]
        assert "b" in outputs(await engine.runs.view(run))


async def test_a_version_that_a_run_is_to_move_to_is_not_collected(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        run = await waiting(engine, chain("a", "ask", ask=ASK))
        await engine.workflows.save(chain("a", "ask", "b", ask=ASK))
    async with engine_on(tmp_path / "weft.db", Step(), work=False) as front:
        assert not (await front.lifecycle.migrate(run, 2, wait_s=0)).moved
        await collect(front.store, front.parts.clock.now_ms(), 0)
    codec.plans_at_hand.clear()  # as in a process that has not seen the run
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        async with asyncio.timeout(30):
            while await engine.store.read_inbox(run):
                await asyncio.sleep(0.01)
        assert (await engine.runs.view(run)).version == 2
