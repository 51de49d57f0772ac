"""Background tasks: one step again and again, whatever happens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from executor.errors import StoreError
from executor.kernel.process import task as module
from executor.kernel.process.task import BackgroundTask

log = logging.getLogger("weft.test")
FOR_EVER_S = 10_000.0


class Steps:
    """Each step does the next thing of `script`: seconds to wait, or an error to raise. Then it waits for ever."""

    def __init__(self, *script: float | Exception) -> None:
        self.script = list(script)
        self.calls = 0
        self.called = asyncio.Event()

    async def __call__(self) -> float:
        self.calls += 1
        self.called.set()
        thing = self.script.pop(0) if self.script else FOR_EVER_S
        if isinstance(thing, Exception):
            raise thing
        return thing

    async def until(self, calls: int) -> None:
        async with asyncio.timeout(30):
            while self.calls < calls:
                self.called.clear()
                await self.called.wait()


def background(step: Callable[[], Awaitable[float]]) -> BackgroundTask:
    return BackgroundTask("test", step, failed="nothing could be done", log=log)


async def test_a_step_that_wants_no_pause_is_called_at_once() -> None:
    task = background(steps := Steps(0, 0, 0))
    task.start()
    await steps.until(4)
    await task.stop()
    assert steps.calls == 4


async def test_wake_ends_the_pause() -> None:
    task = background(steps := Steps())
    task.start()
    await steps.until(1)
    task.wake.set()
    await steps.until(2)
    await task.stop()


async def test_what_wakes_during_a_step_is_not_lost() -> None:
    async def step() -> float:
        calls.append(1)
        if len(calls) == 1:
            task.wake.set()
        else:
            done.set()
        return FOR_EVER_S

    calls: list[int] = []
    done = asyncio.Event()
    task = background(step)
    task.start()
    await asyncio.wait_for(done.wait(), 30)
    await task.stop()


async def test_it_begins_later_when_that_is_wanted() -> None:
    task = background(steps := Steps())
    task.start(after_s=FOR_EVER_S)
    await asyncio.sleep(0)
    assert steps.calls == 0
    await task.stop()


@pytest.mark.parametrize("error", [StoreError("the disk is full"), ZeroDivisionError("a bug")], ids=repr)
async def test_a_step_that_fails_is_called_again(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0)
    task = background(steps := Steps(error, error))
    task.start()
    await steps.until(3)
    await task.stop()
    assert "nothing could be done" in caplog.text


async def test_the_same_failure_of_the_store_is_logged_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0)
    task = background(steps := Steps(*[StoreError("the disk is full")] * 10))
    task.start()
    await steps.until(11)
    await task.stop()
    assert len(caplog.records) == 1


async def test_end_waits_for_the_step_under_way_and_stop_cancels_it() -> None:
    going, begun = asyncio.Event(), asyncio.Event()

    async def step() -> float:
        begun.set()
        await going.wait()
        return 0

    task = background(step)
    task.start()
    await begun.wait()
    await task.end(within_s=0.0)  # it does not end in this time
    going.set()
    await task.end(within_s=30)
    await task.stop()
    begun.clear()
    going.clear()
    other = background(step)
    other.start()
    await begun.wait()
    await other.stop()


async def test_a_task_that_was_not_started_can_be_ended() -> None:
    task = background(Steps())
    await task.end(within_s=1)
    await task.stop()


async def test_a_cancel_that_the_step_loses_ends_the_task_as_well() -> None:
    """As wait_for of Python 3.11 does, when its result comes at the moment of the cancel."""
    steps = Steps()
    entered = asyncio.Event()

    async def loses() -> float:
        entered.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(FOR_EVER_S)
        return await steps()

    task = background(loses)
    task.start()
    await entered.wait()
    async with asyncio.timeout(30):
        await task.stop()
    assert steps.calls == 1
    entered.clear()
    task.start()  # it may begin again
    await entered.wait()
    await task.stop()
