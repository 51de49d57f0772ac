"""Many or large runs proceed in small steps, so that other runs and requests have their turn in between."""

from __future__ import annotations

import asyncio
import gc
import itertools
from pathlib import Path

import pytest

from executor.kernel.run.loop import INLINE_BATCH_BYTES, RunLoop
from executor.kernel.run.turns import STEPS_MAX, Turns
from executor.kernel.store.run_rows import Append, Appended
from executor.kernel.store.sqlite.store import SQLiteStore
from tests.support.documents import document
from tests.support.runs import engine_on
from tests.support.until import until

LARGE = 300_000


async def test_large_outputs_are_committed_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, up to 256 of them were gathered for one commit."""
    sizes: list[int] = []
    append = SQLiteStore.append

    async def watched(self: SQLiteStore, change: Append) -> Appended:
        sizes.append(sum(len(data) for _, data in change.blobs))
        return await append(self, change)

    monkeypatch.setattr(SQLiteStore, "append", watched)
    looped = document(
        "looped",
        "start loop",
        "loop body make",
        blocks={
            "loop": {"type": "loop", "params": {"mode": "for", "count": 20}},
            "make": {"type": "set", "params": {"value": "x" * LARGE}, "parent": "loop"},
        },
    )
    async with engine_on(tmp_path / "weft.db") as engine:
        view = await engine.run(looped)
    assert view.status == "succeeded"
    assert sum(sizes) > 20 * LARGE
    # The container's output comes in one piece with its last iteration.
    assert sorted(sizes)[-2] <= INLINE_BATCH_BYTES + LARGE + 2


class Watch:
    """A clock that stands still until it is set."""

    now = 1_000

    def now_ms(self) -> int:
        return self.now


async def test_few_steps_in_one_pass_of_the_event_loop() -> None:
    """Before, asyncio made all steps that were ready before it looked at a socket again."""
    turns, made, seen = Turns(Watch().now_ms), list[int](), list[int]()

    async def step(number: int) -> None:
        await turns.turn()
        made.append(number)

    tasks = [asyncio.create_task(step(number)) for number in range(1_000)]
    for task in tasks[40:50]:
        task.cancel()
    while not all(task.done() for task in tasks):
        seen.append(len(made))
        await asyncio.sleep(0)
    assert made == [number for number in range(1_000) if not 40 <= number < 50], "in order of arrival"
    assert max(after - before for before, after in itertools.pairwise(seen)) <= STEPS_MAX
    for _ in range(3):
        await asyncio.sleep(0)
    assert turns._next_pass is None, "without steps it costs nothing"


async def test_few_long_steps_in_one_pass_of_the_event_loop() -> None:
    """Before, 64 steps that create child runs took 25 ms. A step that begins in time ends when it ends."""
    watch, made, seen = Watch(), list[int](), list[int]()
    turns = Turns(watch.now_ms, pass_ms=5, many=100)

    async def step(number: int) -> None:
        await turns.turn()
        made.append(number)
        watch.now += 2

    tasks = [asyncio.create_task(step(number)) for number in range(100)]
    while not all(task.done() for task in tasks):
        seen.append(len(made))
        await asyncio.sleep(0)
    assert made == list(range(100)), "in order of arrival"
    passes = [after - before for before, after in itertools.pairwise(seen)]
    assert max(passes) == 2 * 3, "the time of the first is counted from when it is asked for another one"
    assert set(passes[3:-1]) == {3}
    assert turns.take()


async def test_passes_are_short_while_many_steps_wait() -> None:
    """Before, a request needed six passes of 5 ms and more while thousands of steps waited."""
    watch, made, seen = Watch(), list[int](), list[int]()
    turns = Turns(watch.now_ms, pass_ms=8, short_pass_ms=2, many=20)

    async def step(number: int) -> None:
        await turns.turn()
        made.append(number)
        watch.now += 1

    tasks = [asyncio.create_task(step(number)) for number in range(100)]
    while not all(task.done() for task in tasks):
        seen.append(len(made))
        await asyncio.sleep(0)
    assert made == list(range(100)), "in order of arrival"
    passes = {before: after - before for before, after in itertools.pairwise(seen) if after > before}
    assert {count for before, count in passes.items() if 20 <= before < 78} == {2}
    assert {count for before, count in passes.items() if 80 < before < 90} == {8}


async def test_few_steps_need_no_pass_of_their_own() -> None:
    turns = Turns(Watch().now_ms, 10)
    assert all(turns.take() for _ in range(4))
    assert turns._next_pass is None
    assert [turns.take() for _ in range(7)] == [True] * 6 + [False]
    await asyncio.sleep(0)
    assert turns.take()


async def test_no_step_waits_because_there_was_none_for_long() -> None:
    watch = Watch()
    turns = Turns(watch.now_ms, pass_ms=5)
    for set_to in (50_000, 20):  # the clock may be set, too
        watch.now = set_to
        assert turns.take() and turns.take()
        watch.now += 5
        assert not turns.take()
        await asyncio.sleep(0)
        assert turns.take()


async def test_a_turn_is_taken_in_the_pass_that_gives_it() -> None:
    watch, made = Watch(), list[int]()
    turns = Turns(watch.now_ms, 1)
    assert turns.take() and not turns.take()

    async def step(number: int) -> None:
        await turns.wait()
        made.append(number)

    tasks = [asyncio.create_task(step(number)) for number in range(2)]
    await asyncio.sleep(0)
    assert made == []
    await asyncio.sleep(0)
    assert made == [0]
    await asyncio.gather(*tasks)
    assert made == [0, 1]


async def test_a_run_that_left_memory_leaves_nothing_to_the_collector(tmp_path: Path) -> None:
    """Before, what an attempt says referred to itself, and to the whole run: half a second of collecting garbage."""
    looped = document(
        "looped",
        "start loop",
        "loop body make",
        blocks={
            "loop": {"type": "parallel", "params": {"mode": "count", "count": 20}},
            "make": {"type": "wait", "params": {"seconds": 0}, "parent": "loop"},
        },
    )
    async with engine_on(tmp_path / "weft.db") as engine:
        gc.collect()
        others = _run_loops()
        gc.disable()
        try:
            assert (await engine.run(looped)).status == "succeeded"
            await until(lambda: not (any(found not in others for found in _run_loops())))
        finally:
            gc.enable()


def _run_loops() -> list[RunLoop]:
    return [found for found in gc.get_objects() if isinstance(found, RunLoop)]
