"""A run that takes down every worker that claims it ends, and says why."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest

from executor.kernel.worker.worker import STALLS_MAX
from executor.open.engine import Engine
from tests.support.blocks import Step
from tests.support.documents import chain
from tests.support.runs import engine_on, settled, until_event

pytestmark = pytest.mark.usefixtures("invariants_hold")


async def claimed_in_vain(engine: Engine, run: str, times: int) -> None:
    """Workers take the run and are gone before they write anything."""
    for _ in range(times):
        [row] = await engine.store.claim("gone", engine.parts.clock.now_ms(), 0, run_id=run)
        assert row.id == run


async def held(path: Path, step: Step) -> str:
    """A run whose block was running when its process went away."""
    step.holding["a"] = asyncio.Event()
    async with engine_on(path, step) as engine:
        run = (await engine.submit(chain("a", "b"))).run
        await until_event(engine, run, "node.started", "a")
        await step.until_ran("a")
        await engine.stop_working(grace_s=0)
    step.holding.clear()
    return run


async def test_a_run_that_gets_nowhere_fails_with_the_reason(tmp_path: Path) -> None:
    step = Step()
    run = await held(tmp_path / "weft.db", step)
    async with engine_on(tmp_path / "weft.db", step, work=False) as front:
        await claimed_in_vain(front, run, STALLS_MAX)
    async with engine_on(tmp_path / "weft.db", step) as engine:
        await until_event(engine, run, "run.finished")
        row = await engine.runs.row(run)
        assert row.status == "failed"
        error = orjson.loads(row.error or b"null")
        assert error["code"] == "no_progress"
        assert f"{STALLS_MAX + 1} workers claimed this run" in error["message"]
        view = await engine.runs.view(run)
        assert [(node.key, node.status, node.lost) for node in view.nodes if node.key == "a"] == [("a", "failed", 1)]
        assert step.ran["a"] == 1


async def test_claims_below_the_limit_are_forgotten_with_the_next_append(tmp_path: Path) -> None:
    step = Step()
    run = await held(tmp_path / "weft.db", step)
    async with engine_on(tmp_path / "weft.db", step, work=False) as front:
        await claimed_in_vain(front, run, STALLS_MAX - 1)
    async with engine_on(tmp_path / "weft.db", step) as engine:
        assert (await settled(engine, run)).status == "succeeded"
        assert (await engine.runs.row(run)).stalls == 0
