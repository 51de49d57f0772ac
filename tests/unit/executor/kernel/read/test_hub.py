"""What the hub passes on, and that it forgets readers that have left."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from compiler.catalog import BlockSpec
from executor.kernel.handler.base import Done, StepContext
from executor.service.topics import runs
from tests.support.blocks import Hold
from tests.support.clock import ManualClock
from tests.support.documents import chain
from tests.support.runs import engine_on, until_event


async def test_waiting_for_a_run_of_another_process_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commits are not signalled here, so nothing would clear away what waits for a signal."""
    monkeypatch.setattr(runs, "WAIT_POLL_S", 0.01)
    path = tmp_path / "weft.db"
    async with engine_on(path, hold := Hold()) as engine, engine_on(path, Hold(), work=False) as front:
        run = (await engine.submit(chain("a", a={"type": "hold"}))).run
        await until_event(engine, run, "node.started", "a")
        assert (await front.wait_finished(run, 0.1)).status == "running"
        assert front.parts.owned._left.runs() == front.parts.hub.watched() == []
        hold.free.set()


class Says:
    spec = BlockSpec("says", "Says", "", "action")

    async def run(self, ctx: StepContext) -> Done:
        ctx.emit("reading caf\udce9")  # as os.listdir() names it
        return Done(None)


async def test_live_text_can_be_sent_whatever_it_holds(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", Says(), hold := Hold()) as engine:
        run = (await engine.submit(chain("a", "b", a={"type": "hold"}, b={"type": "says"}))).run
        deltas = engine.events.deltas(run)
        hold.free.set()
        await until_event(engine, run, "run.finished")
        assert deltas.read() == {"b": r"reading caf\udce9"}
        deltas.close()


async def test_who_waits_for_a_run_is_told_of_a_question_at_once(tmp_path: Path) -> None:
    """Though it expires soon: they may be the one to answer it."""
    params = {"title": "Go on?", "expires_in_s": 10, "on_expire": "continue"}
    async with engine_on(tmp_path / "weft.db", clock=ManualClock()) as engine:
        run = (await engine.submit(chain("a", a={"type": "approval", "params": params}))).run
        assert (await engine.wait_finished(run, float("inf"))).status == "waiting"


@pytest.mark.parametrize("whose", ["its own", "of its child"])
async def test_who_waits_for_a_run_sleeps_through_its_timers_with_it(tmp_path: Path, whose: str) -> None:
    """A pause that ends by itself within the time limit is waited for; any other returns at once."""
    clock = ManualClock()
    timer: Any = {"type": "wait", "params": {"seconds": 100}}
    calling: Any = {"type": "run_workflow", "params": {"definition": chain("a", a=timer)}}
    document = chain("a", a=timer) if whose == "its own" else chain("c", c=calling)
    async with engine_on(tmp_path / "weft.db", clock=clock) as engine:
        run = (await engine.submit(document)).run
        await until_event(engine, run, "run.parked")
        async with asyncio.timeout(30):
            for one in [run, *(child.id for child in await engine.store.list_children(run))]:
                await until_event(engine, one, "run.parked")
                while (await engine.runs.row(one)).lease_owner is not None:
                    await asyncio.sleep(0.01)
        waiting = asyncio.create_task(engine.wait_finished(run, 110))
        done, _ = await asyncio.wait([waiting], timeout=0.1)
        assert not done
        clock.advance(100_000)
        assert (await waiting).status == "succeeded"
        later = (await engine.submit(document)).run
        async with asyncio.timeout(60):
            assert (await engine.wait_finished(later, 90)).status == "waiting"
