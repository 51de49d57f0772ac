from __future__ import annotations

import asyncio

import pytest

from executor.kernel.process.observe import begin_task


async def test_what_waits_for_nothing_has_ended_at_once() -> None:
    async def work() -> int:
        return 7

    task = begin_task(work(), "work")
    assert task.done() and task.result() == 7
    assert task.get_name() == "work"


async def test_it_runs_in_its_own_task_from_the_first_step() -> None:
    seen: list[asyncio.Task[object] | None] = []

    async def work() -> None:
        seen.append(asyncio.current_task())
        await asyncio.sleep(0)
        seen.append(asyncio.current_task())

    task = begin_task(work(), "work")
    assert seen == [task]
    assert asyncio.current_task() is not task
    await task
    assert seen == [task, task]


async def test_a_timeout_of_its_first_step_cancels_itself_alone() -> None:
    async def work() -> str:
        try:
            async with asyncio.timeout(0.001):
                await asyncio.sleep(60)
        except TimeoutError:
            return "late"
        return "in time"

    assert await begin_task(work(), "work") == "late"


async def test_it_can_begin_others_and_an_error_stays_its_own() -> None:
    async def inner() -> None:
        raise ValueError("inner")

    async def outer() -> asyncio.Task[None]:
        return begin_task(inner(), "inner")

    failed = begin_task(outer(), "outer").result()
    with pytest.raises(ValueError, match="inner"):
        await failed


async def test_it_begins_in_a_callback_as_well_and_can_be_cancelled() -> None:
    loop = asyncio.get_running_loop()
    made: asyncio.Future[asyncio.Task[None]] = loop.create_future()
    loop.call_soon(lambda: made.set_result(begin_task(asyncio.sleep(60), "sleep")))
    task = await made
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "call_soon" not in vars(loop)
