"""What the simulated world found: things that are each well by themselves and meet at a bad time."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from compiler.catalog import BlockSpec
from executor.errors import BlockError, CorruptJournal, DatabaseUnavailable, Fenced
from executor.kernel.handler.base import Done, StepContext, Suspend
from executor.kernel.run.recover import recover
from executor.kernel.store import patience
from executor.kernel.store.run_rows import RunRow
from executor.kernel.worker import clock_repair, worker
from tests.support.blocks import Hold
from tests.support.clock import ManualClock
from tests.support.documents import chain
from tests.support.runs import engine_on, until_event
from tests.support.until import until

HOUR_MS = 3_600_000


class Ask:
    """Fails once, then asks a person; the question stays open for an hour."""

    spec = BlockSpec("ask", "Ask", "", "people", effect="read", pauses=True)

    async def run(self, ctx: StepContext) -> Suspend:
        if ctx.attempt == 1:
            raise BlockError("not yet", code="scripted", retryable=True)
        return Suspend("approval", actions=("yes",), due_ms=ctx.now_ms + HOUR_MS, on_expire="fail")


async def test_the_time_of_a_retry_that_was_hastened_does_not_expire_what_came_of_it(tmp_path: Path) -> None:
    clock = ManualClock()
    retry = {"max_attempts": 2, "initial_ms": 60_000, "jitter": 0}
    blocks = {"start": {"type": "start"}, "a": {"type": "ask", "policy": {"retry": retry}}, "b": {"type": "hold"}}
    edges = [{"source": "start", "target": "a"}, {"source": "start", "target": "b"}]
    document = {"format": "weft/1", "name": "two", "blocks": blocks, "edges": edges}
    async with engine_on(tmp_path / "weft.db", Ask(), hold := Hold(), clock=clock) as engine:
        run = (await engine.submit(document)).run
        await until_event(engine, run, "retry.scheduled")
        await engine.lifecycle.retry(run, "a")
        await until_event(engine, run, "wait.opened")
        clock.advance(61_000)  # `b` keeps the run in memory, and its timers
        hold.free.set()
        await until_event(engine, run, "run.parked")
        [wait] = await engine.store.list_waits(None, run)
        assert wait.status == "pending"


async def test_a_run_that_was_written_while_the_clock_was_ahead_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock went forward and back unseen; only the time in the run's row shows it."""
    monkeypatch.setattr(clock_repair, "REPAIR_EVERY_S", 0.1)
    monkeypatch.setattr(worker, "IDLE_MAX_S", 0.05)
    now_ms = ManualClock().now_ms()
    async with (
        engine_on(tmp_path / "weft.db", clock=ManualClock(now_ms)) as engine,
        engine_on(tmp_path / "weft.db", clock=ManualClock(now_ms + 2 * HOUR_MS), work=False) as front,
    ):
        run = (await front.submit({"format": "weft/1", "blocks": {"start": {"type": "start"}}, "edges": []})).run
        await until_event(engine, run, "run.finished")


async def test_runs_whose_claim_was_told_late_are_not_claimed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their lease has lapsed by then; a renewal that comes meanwhile waits for it."""
    clock = ManualClock()
    async with engine_on(tmp_path / "weft.db", hold := Hold(), clock=clock) as engine:
        engine.parts.owned.adopt = None
        told_late: list[str] = []
        renewals: list[asyncio.Task[None]] = []
        claim = engine.store.claim

        async def late(owner: str, now_ms: int, lease_ms: int, *args: Any, **names: Any) -> list[RunRow]:
            rows = await claim(owner, now_ms, lease_ms, *args, **names)
            if rows and not told_late:
                told_late.extend(row.id for row in rows)
                clock.advance(lease_ms + 1)
                renewals.append(asyncio.create_task(engine._worker._renew()))
                await asyncio.sleep(0)
            return rows

        monkeypatch.setattr(engine.store, "claim", late)
        run = (await engine.submit(chain("a", a={"type": "hold"}))).run
        await until_event(engine, run, "node.started", "a")
        hold.free.set()
        await until_event(engine, run, "run.finished")
        assert told_late == [run]
        assert (await engine.runs.row(run)).epoch == 1
        await asyncio.gather(*renewals)


async def test_a_run_that_begins_before_a_renewal_under_way_keeps_its_lease(tmp_path: Path) -> None:
    """Requests of clients are committed first: a renewal that was submitted earlier comes after the new run."""
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        other = (await engine.submit(chain("a", a={"type": "hold"}))).run
        await until_event(engine, other, "node.started", "a")
        writer: Any = engine.store._writer
        may_commit = threading.Event()

        def busy(tx: Any) -> None:
            may_commit.wait(30)

        before = writer.submit(busy)
        await until(lambda: writer._under_way == 1)
        renewal = asyncio.create_task(engine._worker._renew())
        await until(lambda: writer._under_way == 2)
        with patience.patience(30):
            submitted = asyncio.create_task(engine.submit(chain("a", a={"type": "hold"})))
        await until(lambda: writer._request_waits)
        may_commit.set()
        run = (await submitted).run
        await asyncio.gather(before, renewal)
        assert (await engine.runs.row(run)).lease_owner == engine._worker.name
        hold.free.set()
        for each in (other, run):
            assert (await engine.wait_finished(each, 30)).status == "succeeded"
            assert (await engine.runs.row(each)).epoch == 1


async def test_a_run_with_facts_in_its_inbox_is_let_go_at_once(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        run = (await engine.submit(chain("a", a={"type": "hold"}))).run
        await until_event(engine, run, "node.started", "a")
        await engine.store.post_message(
            run, b'{"type": "signal", "name": "of another process"}', engine.parts.clock.now_ms()
        )
        await engine.stop_working(grace_s=0)
        row = await engine.runs.row(run)
        assert (row.status, row.lease_owner) == ("running", None)
        hold.free.set()


async def test_a_run_that_went_on_elsewhere_while_it_was_read_is_not_called_damaged(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        run = (await engine.submit(chain("a", a={"type": "hold"}))).run
        await until_event(engine, run, "node.started", "a")
        row = await engine.runs.row(run)
        with pytest.raises(Fenced):
            await recover(engine.parts, replace(row, epoch=row.epoch - 1, seq=1))
        with pytest.raises(CorruptJournal, match="the run row has 1 events"):
            await recover(engine.parts, replace(row, seq=1))
        hold.free.set()


class Think:
    """Part of the turn of its run, and takes its time."""

    spec = BlockSpec("think", "Think", "", "flow", inline=True)

    def __init__(self) -> None:
        self.began = asyncio.Event()

    async def run(self, ctx: StepContext) -> Done:
        self.began.set()
        await asyncio.sleep(60)
        return Done(None)


async def test_a_run_in_the_middle_of_a_turn_is_let_go_at_once(tmp_path: Path) -> None:
    """What the turn has decided by then is written nowhere."""
    async with engine_on(tmp_path / "weft.db", think := Think()) as engine:
        engine.parts.owned.adopt = None  # an adopted run is created by this turn; this one was claimed
        run = (await engine.submit(chain("a", a={"type": "think"}))).run
        await think.began.wait()
        await engine.stop_working(grace_s=0)
        row = await engine.runs.row(run)
        assert (row.status, row.lease_owner) == ("running", None)


@pytest.mark.parametrize(("failures", "status"), [(3, "succeeded"), (4, "failed")])
async def test_a_child_is_prepared_though_the_database_can_not_be_read_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int, status: str
) -> None:
    monkeypatch.setattr(patience, "PAUSES_S", (0, 0, 0))
    child = {"format": "weft/1", "name": "child", "blocks": {"start": {"type": "start"}}, "edges": []}
    document = chain("a", a={"type": "run_workflow", "params": {"definition": child}})
    async with engine_on(tmp_path / "weft.db") as engine:
        list_ancestors, left = engine.store.list_ancestors, [failures]

        async def now_and_then(*args: Any) -> list[str]:
            left[0] -= 1
            if left[0] >= 0:
                raise DatabaseUnavailable("the test says so")
            return await list_ancestors(*args)

        monkeypatch.setattr(engine.store, "list_ancestors", now_and_then)
        run = (await engine.submit(document)).run
        await until_event(engine, run, "run.finished")
        view = await engine.runs.view(run)
        assert view.status == status
        if status == "failed":
            assert view.error is not None
            assert view.error["code"] == "db_unavailable"


async def test_a_run_that_ends_while_it_is_read_is_shown_as_of_one_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        run = (await engine.submit(chain("a", a={"type": "hold"}))).run
        await until_event(engine, run, "node.started", "a")
        list_waits = engine.store.list_waits

        async def ended(*args: Any) -> Any:  # read behind the run's row, before its events
            hold.free.set()
            await until_event(engine, run, "run.finished")
            return await list_waits(*args)

        monkeypatch.setattr(engine.store, "list_waits", ended)
        view = await engine.runs.view(run)
        assert view.status == "running"
        assert {node.key: node.status for node in view.nodes} == {"start": "succeeded", "a": "running"}


async def test_a_run_that_goes_on_while_it_is_compared_is_compared_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        one, two = [(await engine.submit(chain("a", a={"type": "hold"}))).run for _ in range(2)]
        for run in (one, two):
            await until_event(engine, run, "node.started", "a")
        read_events = engine.store.read_events

        async def ended(*args: Any) -> Any:
            monkeypatch.undo()
            await engine.cancel(two)
            await until_event(engine, two, "run.finished")
            return await read_events(*args)

        monkeypatch.setattr(engine.store, "read_events", ended)
        found = await engine.history.diff(one, two)
        assert (found.a.status, found.b.status, found.a.seq) == ("running", "running", found.b.seq)
        assert found.same
        hold.free.set()


async def test_who_waits_for_a_run_does_so_though_the_clock_is_set_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pause of half a minute that begins after that does not outlast the patience of a minute."""
    monkeypatch.setattr("executor.service.topics.runs.WAIT_POLL_S", 0.01)
    clock = ManualClock()
    document = chain("a", "pause", a={"type": "hold"}, pause={"type": "wait", "params": {"seconds": 30}})
    async with engine_on(tmp_path / "weft.db", hold := Hold(), clock=clock, lease_ms=10 * HOUR_MS) as engine:
        run = (await engine.submit(document)).run
        await until_event(engine, run, "node.started", "a")
        looks, get_run = 0, engine.store.get_run

        async def looked(id: str) -> RunRow | None:
            nonlocal looks
            looks += 1
            row = await get_run(id)
            if looks == 1:
                clock.advance(HOUR_MS)
                hold.free.set()
                await until_event(engine, run, "run.parked")
            return row

        monkeypatch.setattr(engine.store, "get_run", looked)
        waiter = asyncio.create_task(engine.wait_finished(run, 60))
        await until(lambda: not (looks < 10 and not waiter.done()))
        assert not waiter.done()
        clock.advance(30_000)
        assert (await waiter).status == "succeeded"
