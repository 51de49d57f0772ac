"""The time of one attempt, and what does not count."""

import asyncio

import pytest

from executor.runtime.time_limit import TimeLimit


async def test_time_is_over() -> None:
    with pytest.raises(TimeoutError):
        await TimeLimit(0.01).around(asyncio.sleep(60))


async def test_a_result_in_time() -> None:
    assert await TimeLimit(60).around(asyncio.sleep(0, "done")) == "done"


async def test_waiting_takes_no_time() -> None:
    limit = TimeLimit(0.2)

    async def work() -> str:
        async def queue() -> None:
            with limit.waiting():
                await asyncio.sleep(0.3)

        await asyncio.gather(queue(), queue())
        return "done"

    assert await limit.around(work()) == "done"


async def test_the_rest_of_the_time_runs_after_a_wait() -> None:
    limit = TimeLimit(0.2)

    async def work() -> None:
        with limit.waiting():
            await asyncio.sleep(0.3)
        await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        await limit.around(work())


async def test_a_cancelled_attempt_is_no_late_one_also_while_it_waits() -> None:
    limit = TimeLimit(60)

    async def work() -> None:
        with limit.waiting():
            await asyncio.sleep(60)

    task = asyncio.create_task(limit.around(work()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
