"""Runs that have left memory: what is kept of them, and how they continue."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from executor.errors import DatabaseWriteFailed
from executor.kernel.process.acting import Act, acting
from executor.kernel.run import owned
from executor.kernel.run.loaded import LoadedRun, replay
from executor.kernel.run.owned import ParkedRuns
from executor.kernel.run.snapshots import differs
from executor.kernel.store.sqlite.store import SQLiteStore
from tests.support.blocks import Step
from tests.support.documents import call, chain, value
from tests.support.runs import engine_on
from tests.support.snapshots import bytes_of
from tests.support.until import until

ASK: Any = {"type": "approval", "params": {"title": "?", "actions": ["yes"]}}
GO: Any = {"type": "signal", "params": {"name": "go"}}
STEP: Any = {"type": "step"}


async def parked_run(engine: Any, document: Any) -> str:
    await until(lambda: not engine._worker._others_wait)
    run: str = (await engine.submit(document)).run
    await engine.wait_finished(run, 60)
    await until(lambda: not engine._worker._tasks)
    return run


async def link_of(engine: Any, run: str) -> str:
    (wait,) = await engine.waits.list("pending", run)
    assert wait.link is not None
    link: str = wait.link
    return link


def journals_read(store: SQLiteStore) -> list[str]:
    reads, all_rows = list[str](), store._readers.all

    async def counted(sql: str, *values: Any) -> list[Any]:
        if "FROM batches" in sql:
            reads.append(sql)
        return await all_rows(sql, *values)

    store._readers.all = counted  # type: ignore[assignment]  # the test counts its calls
    return reads


async def test_a_run_that_goes_on_is_not_read_again(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "weft.db")
    step = Step()
    async with engine_on(store, step) as engine:
        run = await parked_run(engine, chain("first", "ask", "go", "last", first=STEP, ask=ASK, go=GO, last=STEP))
        reads = journals_read(store)
        await engine.answer(await link_of(engine, run), {}, "yes")
        await until(lambda: not engine._worker._tasks)
        await engine.signals.send(run, "go")
        await step.until_ran("last")
        assert reads == []
        view = await engine.wait_finished(run, 60)
        assert (view.status, step.ran) == ("succeeded", {"first": 1, "last": 1})
        assert [node.key for node in view.nodes] == ["start", "first", "ask", "go", "last"]


async def test_a_run_is_not_read_again_when_its_child_has_ended(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "weft.db")
    async with engine_on(store, step := Step()) as engine:
        await engine.workflows.save(chain("ask", name="asking", ask=ASK))
        run = await parked_run(engine, chain("call", "last", call=call("asking"), last=STEP))
        (child,) = [each for each in await engine.runs.list() if each.id != run]
        await engine.wait_finished(child.id, 60)
        await until(lambda: not engine._worker._tasks)
        link = await link_of(engine, child.id)
        reads = journals_read(store)
        await engine.answer(link, {}, "yes")
        await step.until_ran("last")
        assert reads == []
        assert (await engine.wait_finished(run, 60)).status == "succeeded"


@pytest.mark.parametrize("kept", [True, False])
async def test_an_answer_costs_one_commit_whether_its_run_was_kept_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    if not kept:
        monkeypatch.setattr(owned, "PARKED_BYTES", 0)
    async with engine_on(tmp_path / "weft.db", step := Step()) as engine:
        run = await parked_run(engine, chain("first", "ask", "last", first=STEP, ask=ASK, last=STEP))
        assert (engine.parts.owned.parked.pop(run) is not None) is kept
        link, commits = await link_of(engine, run), engine.store.stats.commits
        step.holding["last"] = asyncio.Event()
        await engine.answer(link, {}, "yes")
        await step.until_ran("last")
        assert engine.store.stats.commits == commits + 1
        step.holding.pop("last").set()
        view = await engine.wait_finished(run, 60)
        assert (view.status, step.ran) == ("succeeded", {"first": 1, "last": 1})


async def test_a_run_that_another_process_has_had_is_read_again(tmp_path: Path) -> None:
    """The first process keeps an older state of the run. Its answer is recorded all the same."""
    path, one, two = tmp_path / "weft.db", Step(), Step()
    async with engine_on(path, one) as first, engine_on(path, two) as second:
        run = await parked_run(first, chain("ask", "then", "again", "last", ask=ASK, then=STEP, again=ASK, last=STEP))
        await until(lambda: not second._worker._others_wait)
        await second.answer(await link_of(second, run), {}, "yes")
        await until(lambda: not second._worker._tasks)
        assert two.ran == {"then": 1}
        await first.answer(await link_of(first, run), {}, "yes")
        assert (await first.wait_finished(run, 60)).status == "succeeded"
        assert one.ran + two.ran == {"then": 1, "last": 1}


async def test_an_answer_that_is_not_written_leaves_its_wait_open(tmp_path: Path) -> None:
    engine: Any
    async with engine_on(tmp_path / "weft.db", step := Step()) as engine:
        run = await parked_run(engine, chain("ask", "last", ask=ASK, last=STEP))
        link, write = await link_of(engine, run), engine.store.answer_and_continue

        async def refused(*args: Any) -> Any:
            raise DatabaseWriteFailed("the test: not written")

        engine.store.answer_and_continue = refused
        with pytest.raises(DatabaseWriteFailed):
            await engine.answer(link, {}, "yes")
        engine.store.answer_and_continue = write
        await until(lambda: not engine._worker._tasks)
        assert await link_of(engine, run) == link
        await engine.answer(link, {}, "yes")
        assert (await engine.wait_finished(run, 60)).status == "succeeded" and step.ran == {"last": 1}


async def test_a_turn_that_breaks_leaves_an_answered_run_to_be_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        run = await parked_run(engine, chain("ask", "last", ask=ASK, last=value(1)))
        link = await link_of(engine, run)

        async def broken(*args: Any, **named: Any) -> Any:
            monkeypatch.undo()
            raise ZeroDivisionError

        monkeypatch.setattr("executor.kernel.worker.worker.recover", broken)
        assert (await engine.answer(link, {}, "yes")).status == "answered"
        assert (await engine.wait_finished(run, 60)).status == "succeeded"


async def test_a_run_that_is_claimed_while_it_is_answered_runs_once(tmp_path: Path) -> None:
    """The answer finds an owner, and becomes a message for it."""
    engine: Any
    async with engine_on(tmp_path / "weft.db", step := Step()) as engine:
        run = await parked_run(engine, chain("ask", "last", ask=ASK, last=STEP))
        link, write = await link_of(engine, run), engine.store.answer_and_continue

        async def late(*args: Any) -> Any:
            answering = engine._worker._tasks[run]
            await engine.signals.send(run, "for nothing")
            await until(lambda: engine._worker._tasks[run] is not answering)
            return await write(*args)

        engine.store.answer_and_continue = late
        assert (await engine.answer(link, {}, "yes")).status == "answered"
        assert (await engine.wait_finished(run, 60)).status == "succeeded" and step.ran == {"last": 1}


async def test_the_runs_that_are_kept_are_the_last_ones_and_have_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        runs = [await parked_run(engine, chain("ask", ask=ASK)) for _ in range(4)]
        of_one = engine.parts.owned.parked._runs[runs[0]].bytes
        kept, all_runs = ParkedRuns(), list(engine.parts.owned.parked._runs.values())
        monkeypatch.setattr(owned, "PARKED_BYTES", 2 * of_one)
        for each in all_runs:
            kept.keep(each.run, each.at_ms)
        assert [run for run in runs if kept.pop(run) is not None] == runs[2:]
        assert kept._bytes == 0
        large = all_runs[0].run
        large.fold.bytes = owned.RUN_BYTES_MAX
        kept.keep(large, 0)
        assert kept.pop(large.id) is None


async def test_a_kept_run_is_what_its_journal_folds_to(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", Step()) as engine:
        run = await parked_run(engine, chain("first", "ask", first=STEP, ask=ASK))
        kept, row = engine.parts.owned.parked.pop(run), await engine.runs.row(run)
        assert kept is not None
        folded = LoadedRun.empty(row, kept.run.plan, {})
        assert await replay(engine.store, folded) == kept.at_ms
        assert differs(folded, bytes_of(kept.run)) is None
        again = replace(row, epoch=row.epoch + 1)
        assert kept.claimed(again) is not None
        for other in ({"epoch": row.epoch}, {"seq": row.seq + 1}, {"plan_hash": "another"}):
            assert kept.claimed(replace(again, **other)) is None


@pytest.mark.parametrize("leaves", [True, False])
async def test_an_answer_is_attributed_to_who_gave_it_also_if_they_have_left(tmp_path: Path, leaves: bool) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        run = await parked_run(engine, chain("ask", "last", ask=ASK, last=value(1)))
        link, act = await link_of(engine, run), Act("user:ada", "session", "waits.answer", run, 1)

        async def answer() -> None:
            with acting(act):
                await engine.answer(link, {}, "yes")

        answering = asyncio.create_task(answer())
        while not engine._worker._adopting:
            await asyncio.sleep(0)
        if leaves:
            answering.cancel()
        await asyncio.wait([answering])
        await until(lambda: not engine._worker._tasks)
        assert (await engine.runs.row(run)).status == "succeeded"
        assert [row.actor for row in await engine.store.read_audit()] == ["user:ada"]
        assert act.is_recorded, "it is not recorded once more"
