"""Runs whose workflow has limits, or takes turns with others, in one process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.worker import worker
from executor.open.engine import Engine
from tests.support.blocks import Hold
from tests.support.documents import chain, value
from tests.support.runs import engine_on, until_event
from tests.support.until import until


def document(**settings: Any) -> dict[str, Any]:
    return {**chain("a", a={"type": "hold"}), "settings": settings}


LIMIT = [{"key": "key <input.k>", "at_most": 2}]


async def submitted(engine: Engine, document: dict[str, Any], input: Any = None) -> str:
    """The run, in a millisecond of its own: those of the same one have no order."""
    now_ms = engine.parts.clock.now_ms
    run = (await engine.submit(document, input=input)).run
    before_ms = now_ms()
    await until(lambda: now_ms() > before_ms)
    return run


async def test_runs_wait_for_a_place_and_say_so(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        runs = [await submitted(engine, document(limits=LIMIT), {"k": 1}) for _ in range(5)]
        other = await submitted(engine, document(limits=LIMIT), {"k": 2})
        for run in (*runs[:2], other):
            await until_event(engine, run, "node.started", "a")

        async def blocked() -> list[str]:
            return [run for run in runs if await engine.store.waits_for(run) is not None]

        async with asyncio.timeout(60):
            while len(await blocked()) < 3:
                await asyncio.sleep(0.01)
        assert await blocked() == runs[2:] and len(engine.parts.owned) == 3
        why = await engine.history.why(runs[4])
        assert any("the run waits for limit key 1 (2 of 2)" in each.reasons for each in why)
        hold.free.set()
        for run in (*runs, other):
            assert (await engine.wait_finished(run, 60)).status == "succeeded"


async def test_a_run_that_waits_for_a_place_can_be_cancelled(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        first, second = [await submitted(engine, document(limits=[{"key": "k", "at_most": 1}])) for _ in range(2)]
        await until_event(engine, first, "node.started", "a")
        await engine.cancel(second)
        assert (await engine.wait_finished(second, 60)).status == "cancelled"
        hold.free.set()
        assert (await engine.wait_finished(first, 60)).status == "succeeded"


async def test_a_run_that_waits_for_an_answer_gives_its_place_to_others(tmp_path: Path) -> None:
    asks = chain("ask", ask={"type": "approval", "params": {"title": "OK?"}})
    asks["settings"] = {"limits": [{"key": "k", "at_most": 1}]}
    async with engine_on(tmp_path / "weft.db") as engine:
        runs = [(await engine.submit(asks)).run for _ in range(3)]
        await until(lambda: not engine.parts.owned.loops)
        for run in runs:
            await until_event(engine, run, "wait.opened", "ask")
            (wait,) = await engine.waits.list("pending", run)
            assert wait.link is not None
            await engine.answer(wait.link, {}, action="approve", by="Ada")
        for run in runs:
            assert (await engine.wait_finished(run, 60)).status == "succeeded"


async def test_runs_of_another_pool_are_left_alone(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        other = (await engine.submit({**chain("a", a=value(1)), "settings": {"pool": "gpu"}})).run
        mine = (await engine.submit(chain("a", a=value(1)))).run
        assert (await engine.wait_finished(mine, 60)).status == "succeeded"
        assert (await engine.runs.row(other)).status == "queued"


async def test_the_next_claim_begins_behind_the_key_whose_turn_was_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed: list[str] = []

    class Store(SQLiteStore):
        async def claim(self, *args: Any, **kwargs: Any) -> list[RunRow]:
            rows: list[RunRow] = await super().claim(*args, **kwargs)
            claimed.extend(row.fair for row in rows)
            return rows

    monkeypatch.setattr(worker, "CLAIM_BATCH", 1)
    async with engine_on(tmp_path / "weft.db", work=False) as front:
        for fair in "aaabc":
            await front.submit({**chain("a", a=value(1)), "settings": {"fair": fair}})
    async with engine_on(Store(tmp_path / "weft.db")):
        await until(lambda: len(claimed) == 5)
    assert claimed == ["a", "b", "c", "a", "a"]
