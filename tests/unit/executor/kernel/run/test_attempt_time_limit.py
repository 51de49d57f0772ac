"""The time of one attempt, and what does not count."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from executor.blocks.types.typed import block
from executor.kernel.handler.base import StepContext
from executor.kernel.journal.codec import data_of
from executor.kernel.run.attempt import within
from executor.kernel.run.time_limit import NoHeartbeat, TimeLimit
from tests.support.documents import document
from tests.support.runs import engine_on, outputs, ran

T = TypeVar("T")


def limit_of(seconds: float, heartbeat_s: float = 0.0) -> TimeLimit:
    return TimeLimit(seconds, heartbeat_s, asyncio.get_running_loop())


async def limited(limit: TimeLimit, handler: Awaitable[T]) -> T:
    return await within(lambda: limit, handler, asyncio.get_running_loop())


async def test_time_is_over() -> None:
    with pytest.raises(TimeoutError):
        await limited(limit_of(0.01), asyncio.sleep(60))


async def test_a_result_in_time() -> None:
    assert await limited(limit_of(60), asyncio.sleep(0, "done")) == "done"


@pytest.fixture
async def pass_s(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], Awaitable[None]]:
    """Lets so much time pass at once, by the clock of the event loop."""
    loop = asyncio.get_running_loop()
    time_s, passed_s = loop.time, 0.0
    monkeypatch.setattr(loop, "time", lambda: time_s() + passed_s)

    async def let(seconds: float) -> None:
        nonlocal passed_s
        passed_s += seconds
        for _ in range(3):  # what is due by now is called
            await asyncio.sleep(0)

    return let


async def test_waiting_takes_no_time(pass_s: Callable[[float], Awaitable[None]]) -> None:
    limit = limit_of(1_000)

    async def work() -> str:
        async def queue() -> None:
            with limit.waiting():
                await pass_s(2_000)

        await asyncio.gather(queue(), queue())
        return "done"

    assert await limited(limit, work()) == "done"


async def test_the_rest_of_the_time_runs_after_a_wait(pass_s: Callable[[float], Awaitable[None]]) -> None:
    limit, waited = limit_of(1_000), False

    async def work() -> None:
        nonlocal waited
        await pass_s(600)
        with limit.waiting():
            await pass_s(2_000)
        waited = True
        await pass_s(600)
        await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        await limited(limit, work())
    assert waited


async def test_a_cancelled_attempt_is_no_late_one_also_while_it_waits() -> None:
    limit = limit_of(60)

    async def work() -> None:
        with limit.waiting():
            await asyncio.sleep(60)

    task = asyncio.create_task(limited(limit, work()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_handler_that_waits_for_nothing_needs_no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_timer(*args: object) -> asyncio.TimerHandle:
        raise AssertionError("a timer was set")

    async def work() -> str:
        return "done"

    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", no_timer)
    assert await limited(limit_of(60), work()) == "done"


async def test_time_before_the_first_wait_counts() -> None:
    async def work() -> None:
        time.sleep(0.02)
        await asyncio.Event().wait()

    limit = limit_of(0.01)
    with pytest.raises(TimeoutError):
        await limited(limit, work())
    assert limit._left_s <= -0.01


async def test_errors_and_cancels_reach_a_handler_that_waits() -> None:
    seen = list[str]()

    async def work() -> str:
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 0.001)
        except TimeoutError:
            seen.append("error")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancel")
            await asyncio.sleep(0)
            raise
        return ""

    task = asyncio.create_task(limited(limit_of(60), work()))
    while not seen:
        await asyncio.sleep(0.001)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["error", "cancel"]


async def test_a_handler_without_heartbeats_is_ended() -> None:
    with pytest.raises(NoHeartbeat, match=r"no heartbeat for 0\.04 s"):
        await limited(limit_of(60, 0.04), asyncio.sleep(60))


async def test_heartbeats_keep_a_handler_alive(pass_s: Callable[[float], Awaitable[None]]) -> None:
    limit, beats = limit_of(60_000, 10), 0

    async def work() -> str:
        nonlocal beats
        for beat in range(20):
            if beat % 2:
                limit.heartbeat()
            else:
                await asyncio.to_thread(limit.heartbeat)
            await pass_s(7)
            beats += 1
        await pass_s(20)
        return "silent"

    with pytest.raises(NoHeartbeat):
        await limited(limit, work())
    assert beats == 20


async def test_a_wait_needs_no_heartbeat(pass_s: Callable[[float], Awaitable[None]]) -> None:
    limit = limit_of(60_000, 10)

    async def work() -> str:
        await asyncio.sleep(0)
        with limit.waiting():
            await pass_s(100)
        await pass_s(5)
        return "done"

    assert await limited(limit, work()) == "done"


async def test_the_time_limit_ends_a_handler_that_sends_heartbeats() -> None:
    limit = limit_of(0.05, 60)

    async def work() -> None:
        while True:
            limit.heartbeat()
            await asyncio.sleep(0.005)

    with pytest.raises(TimeoutError) as caught:
        await limited(limit, work())
    assert not isinstance(caught.value, NoHeartbeat)


async def test_the_policy_of_a_block_asks_for_heartbeats(tmp_path: Path) -> None:
    saw: list[bool] = []

    @block(type="works", heartbeat_timeout_ms=500)
    def works(ctx: StepContext) -> int:
        if ctx.attempt == 1:
            saw.append(ctx.cancelled.wait(60))
        ctx.heartbeat()
        return ctx.attempt

    policy = {"retry": {"max_attempts": 9, "initial_ms": 1}}
    async with engine_on(tmp_path / "beats.db", works) as engine:
        made = document("beats", "start a", blocks={"a": {"type": "works", "policy": policy}})
        view = await ran(engine, made)
        failed = [r for r in await engine.store.read_events(view.id) if r.type == "retry.scheduled"]
    assert outputs(view)["a"] > 1 and saw == [True]
    error = data_of(failed[0])["error"]
    assert (error["code"], error["message"]) == ("heartbeat_timeout", "the block sent no heartbeat for 0.5 s")
