"""Runs that the process which creates them executes at once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from executor.errors import AlreadyAnswered, DatabaseWriteFailed
from executor.kernel.run.adoption import Adoption
from executor.kernel.store.patience import patience, patience_s
from executor.kernel.store.run_rows import Append, Appended, NewRun, RunRow
from executor.kernel.store.sqlite.store import SQLiteStore
from tests.support.blocks import Hold, Step
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


async def test_a_run_in_memory_does_not_hold_the_document_it_was_made_from(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        await idle(engine)
        run = (await engine.submit(chain("a", a={"type": "hold"}))).run
        await until_event(engine, run, "node.started", "a")
        adoption = engine._worker._adopting[run]
        assert isinstance(adoption, Adoption)
        held = adoption.new
        assert (held.id, held.plan, held.document) == (run, b"", None)
        hold.free.set()
        assert (await engine.wait_finished(run, 60)).status == "succeeded"


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


async def test_a_run_that_is_submitted_as_soon_as_the_engine_is_open_is_created_in_one_commit(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        commits = commits_of(engine)
        run = (await engine.submit(chain("a", a={"type": "hold"}))).run
        assert commits_of(engine) == commits + 1
        assert (await engine.runs.row(run)).lease_owner == engine._worker.name
        hold.free.set()
        assert (await engine.wait_finished(run, 60)).status == "succeeded"


async def test_a_run_that_was_there_before_is_claimed_before_the_engine_is_open(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    async with engine_on(path, Hold(), work=False) as front:
        first = (await front.submit(chain("a", a={"type": "hold"}))).run
    async with engine_on(path, hold := Hold()) as engine:
        assert (await engine.runs.row(first)).lease_owner == engine._worker.name
        second = (await engine.submit(chain("a", a={"type": "hold"}))).run
        await until_event(engine, first, "node.started", "a")
        await until_event(engine, second, "node.started", "a")
        hold.free.set()


async def test_runs_that_were_there_before_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that has not looked yet claims what is submitted with what was there, in the order of their times."""
    monkeypatch.setattr("executor.open.engine.FIRST_CLAIM_S", 0.01)
    store = SQLiteStore(tmp_path / "weft.db")
    document = chain("a", a={"type": "hold"})
    async with engine_on(tmp_path / "weft.db", Hold(), work=False) as front:
        first = (await front.submit(document)).run
    claim, may_look, claimed = store.claim, asyncio.Event(), list[str]()

    async def held(*args: Any, **names: Any) -> list[RunRow]:
        await may_look.wait()
        rows = await claim(*args, **names)
        claimed.extend(row.id for row in rows)
        return rows

    store.claim = held  # this store's alone
    async with engine_on(store, hold := Hold()) as engine:
        second = (await engine.submit(document)).run
        assert (await engine.runs.row(second)).lease_owner is None
        may_look.set()
        await until_event(engine, second, "node.started", "a")
        assert claimed == [first, second]
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

        engine.store.begin_run = refused
        with patience(7), pytest.raises(DatabaseWriteFailed):
            await engine.submit(chain("a", a=value(1)))
        (waited_s,) = seen
        assert waited_s is not None and 0 < waited_s <= 7, "it waits for a lock as long as its submitter"
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

        engine.store.append = watched
        with patience(7):
            run = await engine.run(chain("a", a={"type": "hold"}), timeout_s=60)
        assert run.status == "succeeded" and set(seen) == {None}


async def test_a_first_turn_that_breaks_leaves_a_run_to_be_claimed(tmp_path: Path, monkeypatch: Any) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        await idle(engine)

        def broken(*args: Any) -> Any:
            raise ZeroDivisionError

        monkeypatch.setattr("executor.kernel.worker.worker.begin", broken)
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


ASK: Any = {"type": "approval", "params": {"title": "?", "actions": ["yes"]}}


async def asked(engine: Any, document: Any = None) -> tuple[str, str]:
    """A run that waits for an answer and is not in memory, and the link."""
    await idle(engine)
    run = (await engine.submit(document or chain("a", "b", a=ASK, b=value(1)))).run
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

        engine.store.claim = watched
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
        assert not engine._worker._adopting


async def test_who_answers_may_leave(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        run, link = await asked(engine)
        answering = asyncio.create_task(engine.answer(link, {}, "yes"))
        while not engine._worker._adopting:
            await asyncio.sleep(0)
        answering.cancel()
        await until(lambda: not engine._worker._tasks)  # until its commit the run waits, and `wait_finished` returns
        assert (await engine.wait_finished(run, 60)).status == "succeeded"


async def test_an_answer_of_another_process_leaves_the_run_to_the_workers(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    async with engine_on(path) as engine, engine_on(path, work=False) as front:
        run, link = await asked(engine)
        await front.answer(link, {}, "yes")
        engine.parts.owned.wake()
        assert (await engine.wait_finished(run, 60)).status == "succeeded"


async def test_an_answer_costs_one_read_and_one_commit_until_the_next_step(tmp_path: Path) -> None:
    step = Step()
    store = SQLiteStore(tmp_path / "weft.db")
    async with engine_on(store, step) as engine:
        run, link = await asked(engine, chain("ask", "after", ask=ASK))
        step.holding["after"] = asyncio.Event()
        reads, all_rows = list[str](), store._readers.all

        async def counted(sql: str, *values: Any) -> list[Any]:
            of_others = "FROM notifications" in sql or "FROM schedules" in sql  # by time, at any moment
            if not (step.ran["after"] or of_others):
                reads.append(sql)
            return await all_rows(sql, *values)

        store._readers.all = counted  # type: ignore[assignment]  # the test counts its calls
        commits = commits_of(engine)
        answering = asyncio.create_task(engine.answer(link, {}, "yes"))
        await step.until_ran("after")
        assert commits_of(engine) == commits + 1, "the answer with the claim, and the start of the step"
        assert ["FROM waits" in sql for sql in reads] == [True], "what the link is of"
        assert (await answering).status == "answered"
        step.holding.pop("after").set()
        assert (await engine.wait_finished(run, 60)).status == "succeeded"


async def test_a_cancel_before_an_answer_is_read_before_the_next_step(tmp_path: Path) -> None:
    """The turn was decided without it, and is dropped."""
    step = Step()
    engine: Any
    async with engine_on(tmp_path / "weft.db", step) as engine:
        run, link = await asked(engine, chain("ask", "after", ask=ASK))
        write = engine.store.answer_and_continue

        async def cancelled_before(*args: Any) -> Any:
            assert await engine.cancel(run)
            return await write(*args)

        engine.store.answer_and_continue = cancelled_before
        assert (await engine.answer(link, {}, "yes")).status == "answered"
        assert (await engine.wait_finished(run, 60)).status == "cancelled"
        assert step.ran["after"] == 0


@pytest.mark.parametrize("size", [10, 100_000])
async def test_what_was_read_with_an_answer_or_is_too_large_for_that_is_the_same(tmp_path: Path, size: int) -> None:
    step = Step()
    async with engine_on(tmp_path / "weft.db", step) as engine:
        run, link = await asked(
            engine, chain("first", "ask", "after", first={"type": "step", "params": {"value": "x" * size}}, ask=ASK)
        )
        await engine.answer(link, {}, "yes")
        view = await engine.wait_finished(run, 60)
        assert (view.status, step.ran) == ("succeeded", {"first": 1, "after": 1})
        assert [node.key for node in view.nodes] == ["start", "first", "ask", "after"]
