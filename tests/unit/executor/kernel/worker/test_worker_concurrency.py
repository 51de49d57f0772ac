"""How many runs a process executes at the same time, when that is set."""

from __future__ import annotations

from pathlib import Path

from tests.support.blocks import Hold
from tests.support.documents import document
from tests.support.runs import engine_on, settled, until_event

HELD = document("d", "start a", blocks={"a": {"type": "hold"}})
ASKING = document(
    "asks", "start ask", blocks={"ask": {"type": "approval", "params": {"title": "Well?", "actions": ["approve"]}}}
)


async def test_no_more_runs_than_that_are_executed_and_those_that_wait_do_not_count(tmp_path: Path) -> None:
    hold = Hold()
    async with engine_on(tmp_path / "weft.db", hold, runs_max=1) as engine:
        asking = (await engine.submit(ASKING)).run
        assert (await settled(engine, asking)).status == "waiting"
        first, second = [(await engine.submit(HELD)).run for _ in range(2)]
        await until_event(engine, first, "node.started", "a")
        assert (engine.figures.runs, (await engine.runs.row(second)).status) == (1, "queued")
        hold.free.set()
        for run in (first, second):
            await until_event(engine, run, "run.finished")
