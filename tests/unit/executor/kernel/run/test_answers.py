"""What an answer, a signal or a child brings is checked when it comes in; a little later there is more around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from executor.kernel.values.payload import DEPTH_MAX, SIZE_MAX_BYTES
from tests.support.blocks import Hold, Probe
from tests.support.documents import caller, document
from tests.support.runs import engine_on, token_of, until_event


async def test_a_child_may_put_out_more_than_a_block(tmp_path: Path) -> None:
    """Two ends that are as deep as may be: together they are one level deeper."""
    deep: Any = 1
    for _ in range(DEPTH_MAX):
        deep = [deep]
    probe = Probe()
    probe.outputs = [deep]
    child = document("child", "start a", "start b", blocks={"a": {"type": "probe"}, "b": {"type": "probe"}})
    async with engine_on(tmp_path / "weft.db", probe) as engine:
        await engine.workflows.save(child)
        run = (await engine.submit(caller(workflow="child"))).run
        await until_event(engine, run, "run.finished")
        view = await engine.runs.view(run)
        assert view.error is not None
        assert (view.error["code"], view.error["block"]) == ("payload_invalid", "call")


async def test_an_answer_that_just_fits_does_not_with_the_name_of_who_gave_it(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        asks = {"ask": {"type": "approval", "params": {"fields": {"properties": {"text": {"type": "string"}}}}}}
        run = (await engine.submit(document("asks", "start ask", blocks=asks))).run
        await until_event(engine, run, "wait.opened")
        [wait] = await engine.waits.list(run=run)
        just = "x" * (SIZE_MAX_BYTES - len('{"text":""}'))
        await engine.answer(token_of(wait.link), {"text": just}, action="approve", by="Ada")
        await until_event(engine, run, "run.finished")
        view = await engine.runs.view(run)
        assert view.error is not None
        assert (view.error["code"], view.error["block"]) == ("payload_too_large", "ask")


async def test_a_signal_that_came_early_is_taken_while_other_blocks_run(tmp_path: Path) -> None:
    """Nothing else wakes the run: no lease is renewed within the hour."""
    blocks = {
        "first": {"type": "wait", "params": {"seconds": 0}},
        "go": {"type": "signal", "params": {"name": "go"}},
        "held": {"type": "hold"},
    }
    async with engine_on(tmp_path / "weft.db", hold := Hold(), lease_ms=3_600_000) as engine:
        row = document("early", "start held", "start first", "first go", blocks=blocks)
        run = (await engine.submit(row)).run
        await engine.signal(run, "go", 5)
        await until_event(engine, run, "wait.closed", "go")
        hold.free.set()
        await until_event(engine, run, "run.finished")
        assert (await engine.runs.view(run)).status == "succeeded"
