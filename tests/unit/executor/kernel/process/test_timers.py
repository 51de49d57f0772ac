"""Timers on a wall clock that is set without a word, as a machine's is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextvars import Context
from typing import TypeVarTuple

import pytest
import uvloop

from executor.kernel.process.timers import Timers

HOUR_MS = 3_600_000
Ts = TypeVarTuple("Ts")


class Wall:
    """Follows the event loop's clock, and jumps when asked. Calls nothing back."""

    def __init__(self) -> None:
        self._ahead_ms = 1_800_000_000_000

    def now_ms(self) -> int:
        return self._ahead_ms + round(asyncio.get_running_loop().time() * 1000)

    def on_jump(self, callback: Callable[[], None]) -> None:
        pass

    def step(self, ms: int) -> None:
        self._ahead_ms += ms


@pytest.mark.parametrize("step_ms", [HOUR_MS, -HOUR_MS])
async def test_a_short_timer_is_on_time_after_the_clock_was_set(step_ms: int) -> None:
    """Though a longer one was set before: when to look again for that was reckoned by the clock as it was."""
    wall = Wall()
    timers = Timers(wall)
    timers.set(wall.now_ms() + HOUR_MS // 2, lambda: None)
    wall.step(step_ms)
    fired: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    due_ms = wall.now_ms() + 50
    timers.set(due_ms, lambda: fired.set_result(wall.now_ms()))
    async with asyncio.timeout(30):
        assert due_ms <= await fired
    timers.close()


async def test_one_that_came_due_by_a_step_fires_with_the_next_that_is_set() -> None:
    wall = Wall()
    timers = Timers(wall)
    fired = asyncio.Event()
    timers.set(wall.now_ms() + HOUR_MS // 2, fired.set)
    wall.step(HOUR_MS)
    timers.set(wall.now_ms() + HOUR_MS, lambda: None)
    async with asyncio.timeout(30):
        await fired.wait()
    timers.close()


async def test_a_step_back_fires_nothing_early() -> None:
    wall = Wall()
    timers = Timers(wall)
    fired = asyncio.Event()
    timers.set(wall.now_ms() + 50, fired.set)
    wall.step(-HOUR_MS)
    await asyncio.sleep(0.15)
    assert not fired.is_set()
    wall.step(HOUR_MS)
    timers.set(wall.now_ms(), lambda: None)
    async with asyncio.timeout(30):
        await fired.wait()
    timers.close()


class Interrupted(uvloop.Loop):
    """The process gets no time between reckoning when to look and asking for it, so what it asks for is due already."""

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        time.sleep(max(0.0, when - self.time()) + 0.001)
        return super().call_at(when, callback, *args, context=context)


def test_a_second_timer_beside_one_that_the_loop_calls_at_once() -> None:
    """uvloop hands out a handle that knows no time then."""

    async def both_fire() -> list[str]:
        wall, fired = Wall(), list[str]()
        timers = Timers(wall)
        timers.set(wall.now_ms(), lambda: fired.append("one"))
        timers.set(wall.now_ms(), lambda: fired.append("other"))
        for _ in range(1000):
            if len(fired) == 2:
                break
            await asyncio.sleep(0.001)
        timers.close()
        return fired

    loop = Interrupted()
    try:
        assert loop.run_until_complete(both_fire()) == ["one", "other"]
    finally:
        loop.close()
