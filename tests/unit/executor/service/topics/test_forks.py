"""Forks: a new run continues from any event of another one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from executor.errors import BadRequest, Conflict, NotFound
from executor.service.topics import lifecycle
from tests.support.blocks import Step
from tests.support.clock import ManualClock
from tests.support.documents import chain, looped
from tests.support.runs import engine_on, journal, outputs, seq_of, settled, until_event

pytestmark = pytest.mark.usefixtures("invariants_hold")

Json = dict[str, Any]


async def test_what_was_done_is_reused_and_the_rest_runs(tmp_path: Path) -> None:
    step = Step()
    async with engine_on(tmp_path / "weft.db", step) as engine:
        source = (await engine.submit(chain("a", "b", "c"), input={"x": 1})).run
        await settled(engine, source)
        before = await engine.store.read_events(source)
        at = await seq_of(engine, source, "node.succeeded", "a")
        forked = await engine.lifecycle.fork(source, at)
        view = await settled(engine, forked.run)
        assert (view.status, forked.seq, view.input) == ("succeeded", at, {"x": 1})
        assert dict(step.ran) == {"a": 1, "b": 2, "c": 2}
        assert await engine.store.read_events(source) == before
        records = await engine.store.read_events(forked.run)
        assert [(r.type, r.at_ms) for r in records[1:at]] == [(r.type, r.at_ms) for r in before[1:at]]
        assert (records[at].type, (await engine.runs.view(source)).status) == ("run.forked", "succeeded")


async def test_an_edited_output_is_what_the_rest_sees(tmp_path: Path) -> None:
    document = chain("a", "b", b={"params": {"value": "<a.value>"}})
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        source = (await engine.submit(document)).run
        await settled(engine, source)
        at = await seq_of(engine, source, "node.succeeded", "a")
        big = "x" * 300_000  # goes to a blob
        forked = await engine.lifecycle.fork(source, at, {"a": {"value": big}})
        view = await settled(engine, forked.run)
        assert outputs(view)["b"] == {"n": 2, "value": big}
        assert outputs(view)["a"] == {"value": big}
        again = await engine.lifecycle.fork(forked.run, forked.seq, {"a": {"value": "small"}})
        assert outputs(await settled(engine, again.run))["b"] == {"n": 3, "value": "small"}


@pytest.mark.parametrize("kind", ["loop", "parallel"])
async def test_results_of_a_container_follow_an_edited_output_inside_it(tmp_path: Path, kind: str) -> None:
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        source = (await engine.submit(looped(2, kind))).run
        await settled(engine, source)
        at = await seq_of(engine, source, "region.exited", "l:end")
        where = "l#0" if kind == "loop" else "l[0]"
        view = await settled(engine, (await engine.lifecycle.fork(source, at, {f"b@{where}": "edited"})).run)
        assert outputs(view)["last"]["value"] == [["edited"], [{"n": 1, "value": 1}]]
        view = await settled(engine, (await engine.lifecycle.fork(source, at, {"l": {"results": ["all"]}})).run)
        assert outputs(view)["last"]["value"] == ["all"]


async def test_a_fork_inside_a_loop_keeps_its_iterations(tmp_path: Path) -> None:
    step = Step()
    async with engine_on(tmp_path / "weft.db", step) as engine:
        source = (await engine.submit(looped(3))).run
        await settled(engine, source)
        at = await seq_of(engine, source, "node.succeeded", "a@l#1")
        view = await settled(engine, (await engine.lifecycle.fork(source, at, {"a@l#1": {"value": "new"}})).run)
        assert view.status == "succeeded"
        assert [step.ran[key] for key in ("a@l#0", "b@l#0", "a@l#1", "b@l#1", "a@l#2", "last")] == [1, 1, 1, 2, 2, 2]
        assert [value[0]["value"] for value in outputs(view)["last"]["value"]] == [0, "new", 2]


async def test_what_was_under_way_starts_anew_and_is_not_lost(tmp_path: Path) -> None:
    mail = Step("mail", careful=True)
    mail.holding["mail"] = asyncio.Event()
    async with engine_on(tmp_path / "weft.db", Step(), mail) as engine:
        source = (await engine.submit(chain("mail", mail={"type": "mail"}))).run
        at = await until_event(engine, source, "node.started", "mail")
        await mail.until_ran("mail")
        free = mail.holding.pop("mail")
        forked = await engine.lifecycle.fork(source, at)
        view = await settled(engine, forked.run)
        assert view.status == "succeeded"
        assert [(n.key, n.attempt, n.lost) for n in view.nodes if n.key == "mail"] == [("mail", 2, 0)]
        assert not (await engine.waits.list(None, forked.run))
        assert (await engine.runs.view(source)).status == "running"
        free.set()
        assert (await settled(engine, source)).status == "succeeded"


async def test_an_open_wait_is_open_again_with_a_link_of_its_own(tmp_path: Path) -> None:
    ask = {"type": "approval", "params": {"title": "OK?", "actions": ["yes", "no"]}}
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        source = (await engine.submit(chain("a", "ask", "b", ask=ask))).run
        await settled(engine, source)
        at = await seq_of(engine, source, "wait.opened", "ask")
        forked = await engine.lifecycle.fork(source, at)
        await settled(engine, forked.run)
        [theirs], [ours] = await engine.waits.list(run=source), await engine.waits.list(run=forked.run)
        assert (ours.id, ours.request, ours.opened_at_ms) == (theirs.id, theirs.request, theirs.opened_at_ms)
        assert ours.link is not None and theirs.link is not None and ours.link != theirs.link
        await engine.answer(ours.link.rpartition("/")[2], {}, "yes", by="Ada")
        assert (await settled(engine, forked.run)).status == "succeeded"
        assert (await engine.runs.view(source)).status == "waiting"
        await engine.answer(theirs.link.rpartition("/")[2], {}, "no")
        await settled(engine, source)
        # Forked before the answer, from a run that has it: the wait is open all the same.
        again = await engine.lifecycle.fork(source, at)
        assert (await settled(engine, again.run)).status == "waiting"
        # And behind it, it is answered there too.
        at = await seq_of(engine, source, "wait.closed", "ask")
        behind = await engine.lifecycle.fork(source, at)
        assert behind.seq == at + 1  # the wait's end and the node's are one step
        assert outputs(await settled(engine, behind.run))["ask"]["action"] == "no"
        assert [(w.status, w.answered_by) for w in await engine.waits.list(None, behind.run)] == [("answered", None)]


async def test_a_timer_keeps_its_time(tmp_path: Path) -> None:
    clock = ManualClock()
    nap = {"type": "wait", "params": {"seconds": 3600}}
    async with engine_on(tmp_path / "weft.db", Step(), clock=clock) as engine:
        source = (await engine.submit(chain("nap", "b", nap=nap))).run
        await settled(engine, source)
        at = await seq_of(engine, source, "wait.opened", "nap")
        clock.advance(1_800_000)
        forked = await engine.lifecycle.fork(source, at)
        assert (await settled(engine, forked.run)).status == "waiting"
        clock.advance(1_800_001)
        await until_event(engine, forked.run, "run.finished")


async def test_variables_are_as_they_were_then(tmp_path: Path) -> None:
    count = {"type": "variables", "params": {"assign": [{"name": "n", "op": "increment", "value": 1}]}}
    document = chain("one", "two", "end", one=count, two=count, end={"params": {"value": "<workflow.n>"}})
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        source = (await engine.submit(document | {"variables": {"n": 0}})).run
        await settled(engine, source)
        for at in range(1, (await engine.runs.view(source)).seq + 1):
            view = await settled(engine, (await engine.lifecycle.fork(source, at)).run)
            assert (view.status, view.variables, outputs(view)["end"]["value"]) == ("succeeded", {"n": 2}, 2), at


async def test_the_end_of_a_run_is_not_copied(tmp_path: Path) -> None:
    ask = {"type": "approval", "params": {"title": "OK?", "actions": ["yes"]}}
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        source = (await engine.submit(chain("a", "ask", ask=ask))).run
        await settled(engine, source)
        await engine.cancel(source, "enough")
        await until_event(engine, source, "run.finished")
        end = (await engine.runs.view(source)).seq
        forked = await engine.lifecycle.fork(source, end)
        assert forked.seq == await until_event(engine, source, "run.cancelling") - 1
        view = await settled(engine, forked.run)
        assert (view.status, [wait.status for wait in view.waits]) == ("waiting", ["pending"])

        stopped = (await engine.submit(chain("a", "b", "c"), stop_after="a")).run
        await settled(engine, stopped)
        view = await settled(engine, (await engine.lifecycle.fork(stopped, (await engine.runs.view(stopped)).seq)).run)
        assert set(outputs(view)) == {"start", "a", "b", "c"}  # it continues where the other one was cancelled


async def test_a_run_that_was_failing_cannot_be_continued(tmp_path: Path) -> None:
    step = Step()
    step.failing.add("b")
    async with engine_on(tmp_path / "weft.db", step) as engine:
        source = (await engine.submit(chain("a", "b", "c"))).run
        await settled(engine, source)
        failed = await seq_of(engine, source, "node.failed", "b")
        with pytest.raises(Conflict) as refused:
            await engine.lifecycle.fork(source, failed + 1)
        assert (refused.value.code, refused.value.extra["seq"], refused.value.extra["node"]) == (
            "fork_failing",
            failed - 1,
            "b",
        )
        step.failing.clear()
        assert (await settled(engine, (await engine.lifecycle.fork(source, failed - 1)).run)).status == "succeeded"


async def test_a_run_from_a_block_can_be_forked_too(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        first = (await engine.submit(chain("a", "b", "c"))).run
        await settled(engine, first)
        second = (await engine.lifecycle.run_from(first, "c")).run
        await settled(engine, second)
        for at in range(1, (await engine.runs.view(second)).seq + 1):
            view = await settled(engine, (await engine.lifecycle.fork(second, at)).run)
            assert view.status == "succeeded"
            assert outputs(view)["a"] == {"n": 1, "value": None}


async def test_a_child_run_is_the_other_runs_so_a_fork_calls_again(tmp_path: Path) -> None:
    ask = chain("ask", name="child", ask={"type": "approval", "params": {"title": "OK?", "actions": ["yes"]}})
    call = {"type": "run_workflow", "params": {"workflow": "child"}}
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        await engine.workflows.save(ask)
        source = (await engine.submit(chain("call", call=call))).run
        await settled(engine, source)
        at = await seq_of(engine, source, "wait.opened", "call")
        forked = await engine.lifecycle.fork(source, at)
        await until_event(engine, forked.run, "wait.opened", "call", count=2)
        [child] = await engine.store.list_children(forked.run)
        assert child.parent_key == "call!2"
        await until_event(engine, child.id, "wait.opened", "ask")
        [wait] = await engine.waits.list(run=child.id)
        assert wait.link is not None
        await engine.answer(wait.link.rpartition("/")[2], {}, "yes")
        await until_event(engine, forked.run, "run.finished")
        assert (await engine.runs.view(forked.run)).status == "succeeded"
        assert (await engine.runs.view(source)).status == "waiting"


async def test_an_idempotency_key_makes_one_fork(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        source = (await engine.submit(chain("a", "b"))).run
        await settled(engine, source)
        first = await engine.lifecycle.fork(source, 3, idempotency_key="k")
        again = await engine.lifecycle.fork(source, 3, idempotency_key="k")
        assert (first.created, again.created, again.run) == (True, False, first.run)
        with pytest.raises(Conflict) as refused:
            await engine.lifecycle.fork(source, 4, idempotency_key="k")
        assert refused.value.code == "idempotency_key_reused"


@pytest.mark.parametrize(
    ("given", "code", "pointer"),
    [
        ({"b": 1}, "output_not_recorded", "/outputs/b"),
        ({"unknown": 1}, "output_not_recorded", "/outputs/unknown"),
        ({"a@l#0/x": 1}, "output_not_recorded", "/outputs/a@l#0~1x"),
        ({"a": float("nan")}, "payload_invalid", "/outputs/a"),
        ({"a": "x" * (17 * 1024 * 1024)}, "payload_too_large", "/outputs/a"),
        ({"typed": 1}, "output_invalid", "/outputs/typed"),
    ],
)
async def test_outputs_are_checked_first(tmp_path: Path, given: Json, code: str, pointer: str) -> None:
    document = chain("typed", "a", "b", typed={"output_schema": {"type": "object"}})
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        source = (await engine.submit(document)).run
        await settled(engine, source)
        at = await seq_of(engine, source, "node.succeeded", "a")
        with pytest.raises(BadRequest) as refused:
            await engine.lifecycle.fork(source, at, given)
        assert (refused.value.code, refused.value.pointer) == (code, pointer)
        assert len(await engine.runs.list()) == 1


async def test_there_is_no_fork_behind_the_last_event(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        source = (await engine.submit(chain("a"))).run
        seq = (await settled(engine, source)).seq
        with pytest.raises(Conflict) as refused:
            await engine.lifecycle.fork(source, seq + 1)
        assert (refused.value.code, refused.value.extra["seq"]) == ("seq_not_found", seq)


async def test_a_fork_of_a_fork_reads_like_a_run(tmp_path: Path) -> None:
    step = Step()
    async with engine_on(tmp_path / "weft.db", step) as engine:
        source = (await engine.submit(chain("a", "b", "c"))).run
        await settled(engine, source)
        one = await engine.lifecycle.fork(source, await seq_of(engine, source, "node.started", "b"))
        await settled(engine, one.run)
        two = await engine.lifecycle.fork(one.run, await seq_of(engine, one.run, "node.started", "c"))
        assert (await settled(engine, two.run)).status == "succeeded"
        types = [type for type, _, _ in await journal(engine, two.run)]
        assert types.count("run.forked") == 2
        assert types.count("run.finished") == 1


def signalled(*between: str) -> Json:
    """start -> the steps -> go, a signal -> more, another one of the same name."""
    go: Json = {"type": "signal", "params": {"name": "go"}}
    return chain(*between, "go", "more", go=go, more=go)


async def test_signals_that_came_early_are_copied(tmp_path: Path) -> None:
    """Also those that the source took later."""
    step = Step()
    hold = step.holding["a"] = asyncio.Event()
    async with engine_on(tmp_path / "weft.db", step) as engine:
        source = (await engine.submit(signalled("a"))).run
        at = await until_event(engine, source, "node.started", "a")
        await engine.signal(source, "go", 1, dedupe_key="first")
        await engine.signal(source, "other", 2)
        early = await engine.lifecycle.fork(source, at)
        hold.set()
        assert (await settled(engine, source)).status == "waiting"  # for the second `go`
        assert [s.taken_by for s in await engine.signals.list(source)] == ["go!1", None]
        late = await engine.lifecycle.fork(source, at)
        for forked in (early, late):
            view = await settled(engine, forked.run)
            assert outputs(view)["go"]["payload"] == 1
            assert [(s.seq, s.name, s.taken_by) for s in await engine.signals.list(forked.run)] == [
                (1, "go", "go!1"),
                (2, "other", None),
            ]
            assert (await engine.signal(forked.run, "go", 3, dedupe_key="first"))[1] is False
            await engine.signal(forked.run, "go", 4)
            assert outputs(await settled(engine, forked.run))["more"]["payload"] == 4
        assert (await engine.runs.view(source)).status == "waiting"


async def test_a_wait_that_was_open_is_not_answered_by_the_signal_that_came_later(tmp_path: Path) -> None:
    clock = ManualClock()
    async with engine_on(tmp_path / "weft.db", Step(), clock=clock) as engine:
        source = (await engine.submit(signalled("a"))).run
        await settled(engine, source)
        opened = await seq_of(engine, source, "wait.opened", "go")
        clock.advance(1_000)
        await engine.signal(source, "go", "answers go")
        await until_event(engine, source, "wait.opened", "more")
        clock.advance(1_000)
        await engine.signal(source, "later", "has no receiver")
        before = await engine.lifecycle.fork(source, opened)
        view = await settled(engine, before.run)
        assert [wait.key for wait in view.waits] == ["go"]
        assert await engine.signals.list(before.run) == []
        behind = await engine.lifecycle.fork(source, (await engine.runs.view(source)).seq)
        assert [wait.key for wait in (await settled(engine, behind.run)).waits] == ["more"]
        assert [(s.name, s.taken_by) for s in await engine.signals.list(behind.run)] == [
            ("go", "go!1"),
            ("later", None),
        ]


async def test_a_fork_needs_a_third_run_only_for_what_it_has_not_recorded(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        first = (await engine.submit(chain("a", "b"))).run
        await settled(engine, first)
        second = (await engine.lifecycle.run_from(first, "b")).run
        seq = (await settled(engine, second)).seq
        recorded = await seq_of(engine, second, "node.succeeded", "a")
        assert await engine.store.delete_runs([first]) == [first]
        for at in range(1, seq + 1):
            if at < recorded:
                with pytest.raises(NotFound, match=first):
                    await engine.lifecycle.fork(second, at)
            else:
                view = await settled(engine, (await engine.lifecycle.fork(second, at)).run)
                assert outputs(view)["a"] == {"n": 1, "value": None}


async def test_a_run_from_a_block_is_not_made_when_its_source_goes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        source = (await engine.submit(chain("a", "b"))).run
        await settled(engine, source)
        reusable = lifecycle.reusable

        async def collected(*args: Any, **more: Any) -> Any:
            found = await reusable(*args, **more)
            assert await engine.store.delete_runs([source]) == [source]
            return found

        monkeypatch.setattr(lifecycle, "reusable", collected)
        with pytest.raises(NotFound, match=source):
            await engine.lifecycle.run_from(source, "b")
        assert await engine.runs.list() == []
