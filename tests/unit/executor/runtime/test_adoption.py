"""Runs that the process which creates them executes at once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from executor.errors import AlreadyAnswered, DatabaseWriteFailed
from executor.store.patience import patience, patience_s
from executor.store.rows import Append, Appended, NewRun, RunRow
from tests.support.blocks import Hold
from tests.support.documents import chain, value
from tests.support.runs import engine_on, until_event
from tests.support.until import until


async def idle(engine: Any) -> None:
    """Its worker has looked for runs to claim and has found none."""
    await until(lambda: not engine._worker._others_wait)


def commits_of(engine: Any) -> int:
    return int(engine.store.stats.commits)


async def test_a_new_run_is_created_owned_and_begun_in_one_commit(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        await idle(engine)
        commits = commits_of(engine)
        submitted = await engine.submit(chain("a", a={"type": "hold"}))
        assert (submitted.created, submitted.status) == (True, "queued"), "as every new run"
        assert commits_of(engine) == commits + 1
        row = await engine.runs.row(submitted.run)
        assert (row.status, row.lease_owner, row.epoch) == ("running", engine._worker.name, 1)
        assert await until_event(engine, submitted.run, "node.started", "a") <= row.seq
        hold.free.set()
        assert (await engine.wait_finished(submitted.run, 60)).status == "succeeded"


async def test_a_repeated_key_gives_the_first_run_and_executes_nothing(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        await idle(engine)
        document = chain("a", a={"type": "hold"})
        found = await asyncio.gather(*(engine.submit(document, idempotency_key="k") for _ in range(5)))
        assert len({each.run for each in found}) == 1 and sum(each.created for each in found) == 1
        await until(lambda: len(engine._worker._tasks) == 1)
        assert list(engine.parts.owned.loops) == [found[0].run]
        hold.free.set()
        assert (await engine.wait_finished(found[0].run, 60)).status == "succeeded"


async def test_a_run_that_was_there_before_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    async with engine_on(path, Hold(), work=False) as front:
        first = (await front.submit(chain("a", a={"type": "hold"}))).run
    async with engine_on(path, hold := Hold()) as engine:
        assert engine._worker._others_wait
        second = (await engine.submit(chain("a", a={"type": "hold"}))).run
        await until_event(engine, first, "node.started", "a")
        await until_event(engine, second, "node.started", "a")
        hold.free.set()


async def test_there_is_room_for_so_many_runs(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        await idle(engine)
        engine._worker._runs_max = 1
        document = chain("a", a={"type": "hold"})
        one, two = (await engine.submit(document)).run, (await engine.submit(document)).run
        assert (await engine.runs.row(one)).status == "running"
        assert (await engine.runs.row(two)).status == "queued"
        hold.free.set()
        assert (await engine.wait_finished(two, 60)).status == "succeeded"


async def test_who_submits_may_leave(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        await idle(engine)
        submitting = asyncio.create_task(engine.submit(chain("a", a=value(1))))
        while not engine._worker._adopting:
            await asyncio.sleep(0)
        submitting.cancel()
        await until(lambda: not engine._worker._tasks)
        (run,) = await engine.runs.list()
        assert run.status == "succeeded"


async def test_a_run_that_could_not_be_written_is_refused_to_its_submitter(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        await idle(engine)
        seen: list[float | None] = []

        async def refused(run: NewRun, owner: str, lease_ms: int, first: Append) -> tuple[RunRow, bool]:
            seen.append(patience_s())
            raise DatabaseWriteFailed("the test: not written")

        engine.store.begin_run = refused  # type: ignore[method-assign]  # this engine's alone
        with patience(7), pytest.raises(DatabaseWriteFailed):
            await engine.submit(chain("a", a=value(1)))
        assert seen == [7], "it waits for a lock as long as its submitter"
        await until(lambda: not engine._worker._tasks)
        assert await engine.runs.list() == []


async def test_appends_after_the_first_wait_as_those_of_any_run(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        await idle(engine)
        hold.free.set()
        seen, append = list[float | None](), engine.store.append

        async def watched(change: Append) -> Appended:
            seen.append(patience_s())
            return await append(change)

        engine.store.append = watched  # type: ignore[method-assign]
        with patience(7):
            run = await engine.run(chain("a", a={"type": "hold"}), timeout_s=60)
        assert run.status == "succeeded" and set(seen) == {None}


async def test_a_first_turn_that_breaks_leaves_a_run_to_be_claimed(tmp_path: Path, monkeypatch: Any) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        await idle(engine)

        def broken(*args: Any) -> Any:
            raise ZeroDivisionError

        monkeypatch.setattr("executor.runtime.worker.begin", broken)
        run = await engine.run(chain("a", a=value(1)), timeout_s=60)
        assert run.status == "succeeded"


async def test_a_run_with_code_at_its_start_is_created_before_that_is_evaluated(tmp_path: Path) -> None:
    condition = {"type": "condition", "params": {"cases": [{"id": "yes", "when": "1 < 2"}, {"id": "no"}]}}
    document = chain("c", c=condition)
    async with engine_on(tmp_path / "weft.db") as engine:
        await idle(engine)
        commits = commits_of(engine)
        run = await engine.run(document, timeout_s=60)
        assert run.status == "succeeded"
        assert commits_of(engine) - commits == 2


async def test_a_process_that_stops_takes_no_new_run(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        await idle(engine)
        await engine.stop_working(grace_s=0)
        run = (await engine.submit(chain("a", a=value(1)))).run
        assert (await engine.runs.row(run)).status == "queued"


async def asked(engine: Any) -> tuple[str, str]:
    """A run that waits for an answer and is not in memory, and the link."""
    await idle(engine)
    run = (
        await engine.submit(
            chain("a", "b", a={"type": "approval", "params": {"title": "?", "actions": ["yes"]}}, b=value(1))
        )
    ).run
    view = await engine.wait_finished(run, 60)
    await until(lambda: not engine._worker._tasks)
    await idle(engine)
    return run, view.waits[0].link


async def test_an_answer_takes_its_run_into_memory_in_its_own_commit(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        run, link = await asked(engine)
        claim, claimed = engine.store.claim, list[RunRow]()

        async def watched(*args: Any, **names: Any) -> list[RunRow]:
            rows = await claim(*args, **names)
            claimed.extend(rows)
            return rows

        engine.store.claim = watched  # type: ignore[method-assign]
        await engine.answer(link, {}, "yes")
        assert (await engine.wait_finished(run, 60)).status == "succeeded"
        assert claimed == [], "it was not claimed by another commit"
        with pytest.raises(AlreadyAnswered):
            await engine.answer(link, {}, "yes")


async def test_one_of_many_answers_is_the_first(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        run, link = await asked(engine)
        found = await asyncio.gather(*(engine.answer(link, {}, "yes") for _ in range(5)), return_exceptions=True)
        assert sum(not isinstance(each, AlreadyAnswered) for each in found) == 1
        assert (await engine.wait_finished(run, 60)).status == "succeeded"
        assert not engine._worker._answering


async def test_who_answers_may_leave(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        run, link = await asked(engine)
        answering = asyncio.create_task(engine.answer(link, {}, "yes"))
        while not engine._worker._answering:
            await asyncio.sleep(0)
        answering.cancel()
        async with asyncio.timeout(60):
            while engine._worker._answering:  # until its commit the run waits, and `wait_finished` returns
                await asyncio.sleep(0)
        assert (await engine.wait_finished(run, 60)).status == "succeeded"


async def test_an_answer_of_another_process_leaves_the_run_to_the_workers(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    async with engine_on(path) as engine, engine_on(path, work=False) as front:
        run, link = await asked(engine)
        await front.answer(link, {}, "yes")
        engine.parts.owned.wake()
        assert (await engine.wait_finished(run, 60)).status == "succeeded"
