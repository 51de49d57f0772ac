"""Blocks with a limit, in one process and in two."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from executor.errors import Fenced
from executor.kernel.read.peers import Peers
from executor.kernel.run.places import Places, Waiting
from executor.kernel.store.topics.places import Ask
from tests.support.blocks import Hold
from tests.support.documents import chain, value
from tests.support.model_store.store import ModelStore
from tests.support.rows import owned_run
from tests.support.runs import engine_on, until_event
from tests.support.until import until


def document(at_most: int = 2, key: str = "crm <input.k>", **policy: Any) -> dict[str, Any]:
    block = {"type": "hold", "policy": {"limit": {"key": key, "at_most": at_most}, **policy}}
    return chain("a", "b", a=block, b=value(1))


async def places_of(engine: Any, run: str) -> list[tuple[str, int]]:
    return [(row.node, row.state) for row in await engine.store.places_of(run)]


async def test_blocks_wait_for_a_place_and_say_so(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        runs = [(await engine.submit(document(timeout_s=20), input={"k": 1})).run for _ in range(5)]
        other = (await engine.submit(document(), input={"k": 2})).run
        await until(lambda: len(engine.parts.places) == 3 and len(hold.started) == 3)
        assert await places_of(engine, runs[4]) == [("a", 0)] and await places_of(engine, other) == [("a", 2)]
        (why,) = [each for each in await engine.history.why(runs[4]) if each.key == "a"]
        assert (why.state, why.reasons) == ("running", ("waits for limit crm 1 (2 of 2)",))
        (why,) = [each for each in await engine.history.why(runs[0]) if each.key == "a"]
        assert why.reasons == ("attempt 1 is running",)
        hold.free.set()
        for run in (*runs, other):
            assert (await engine.wait_finished(run, 60)).status == "succeeded"
            assert await places_of(engine, run) == []
        assert not len(engine.parts.places)


async def test_one_that_waits_can_be_cancelled_and_leaves_the_queue(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        first, second, third = [(await engine.submit(document(1), input={"k": 1})).run for _ in range(3)]
        await until(lambda: len(engine.parts.places) == 2)
        await engine.cancel(second)
        assert (await engine.wait_finished(second, 60)).status == "cancelled"
        assert await places_of(engine, second) == [] and len(engine.parts.places) == 1
        hold.free.set()
        for run in (first, third):
            assert (await engine.wait_finished(run, 60)).status == "succeeded"


async def test_the_time_limit_begins_with_the_handler(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        first = (await engine.submit(document(1, timeout_s=60), input={"k": 1})).run
        await until_event(engine, first, "node.started", "a")
        await until(lambda: len(hold.started) == 1)
        second = (await engine.submit(document(1, timeout_s=0.001), input={"k": 1})).run
        await until(lambda: len(engine.parts.places) == 1)
        assert await places_of(engine, second) == [("a", 0)]
        hold.free.set()
        assert (await engine.wait_finished(first, 60)).status == "succeeded"
        await engine.wait_finished(second, 60)
        assert len(hold.started) == 2, "it began"


async def test_a_block_that_waits_for_a_person_leaves_its_place(tmp_path: Path) -> None:
    limit = {"limit": {"key": "k", "at_most": 1}}
    asks = chain("ask", ask={"type": "approval", "params": {"title": "OK?"}, "policy": limit})
    async with engine_on(tmp_path / "weft.db") as engine:
        runs = [(await engine.submit(asks)).run for _ in range(2)]
        for run in runs:
            await until_event(engine, run, "wait.opened", "ask")
            assert await places_of(engine, run) == []


async def test_what_waited_when_its_process_stopped_had_not_begun(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        runs = [(await engine.submit(document(1, on_lost="fail"), input={"k": 1})).run for _ in range(2)]
        await until(lambda: len(engine.parts.places) == 1 and len(hold.started) == 1)
        hold.free.set()
        engine.parts.places.close()
        await engine.wait_finished(runs[0], 60)
    async with engine_on(tmp_path / "weft.db", hold) as engine:
        assert (await engine.wait_finished(runs[1], 60)).status == "succeeded"


async def test_a_place_of_another_lease_is_refused() -> None:
    store = ModelStore()
    run = await owned_run(store)
    places = Places(store, Peers(), "p")
    with pytest.raises(Fenced):
        await places.claim(Waiting(Ask(run.id, run.epoch + 1, "a", 1, "k", 1)))
    await places.stop()


async def test_others_are_told_and_hear() -> None:
    store = ModelStore()
    run = await owned_run(store)
    told: list[tuple[str, str]] = []
    buses = [Peers(), Peers()]
    for bus in buses:
        bus.connect(lambda topic, item: told.append((topic, item)))
    one, two = (Places(store, bus, f"p{n}") for n, bus in enumerate(buses))
    first, second = (Waiting(Ask(run.id, 1, node, 1, "k", 1)) for node in "ab")
    await one.claim(first)
    waits = asyncio.create_task(two.claim(second))
    await until(lambda: bool(second.number))
    assert not waits.done()
    store._leave_places(run.id, run.epoch, [first.leave()[:2]])
    one.release({"k"})
    assert ("places", "k") in told
    two.receive("k")
    await asyncio.wait_for(waits, 30)
    await one.stop()
    await two.stop()
