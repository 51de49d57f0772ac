"""`weft.testing.replays`: a durable function in another process, with another clock and another order of sets."""

from __future__ import annotations

import random
import time
from datetime import date, datetime

import pytest

import weft
from executor.open.testing.elsewhere import LATER
from executor.open.testing.replay import replays

PERIOD = LATER.total_seconds()


@weft.step(effect="none")
async def charge(order: str, amount: float, day: date | None = None) -> datetime:
    return datetime(2026, 1, 2)


@weft.durable
async def steady(names: list[str]) -> int:
    """All of what may differ, and does not."""
    drawn = weft.random().random()
    for name in sorted(set(names)):
        paid = await charge(name, drawn, weft.now().date())
        assert isinstance(paid, datetime)
    print(time.time(), datetime.now(), random.random(), paid.year)
    return len(await weft.gather(names, lambda name: charge(name, 1)))


@weft.durable
async def unsteady(what: str) -> None:
    match what:
        case "clock":
            await charge("a", 1 if time.time() // PERIOD % 2 else 2)
        case "day":
            await charge("a", 1, date.today())
        case "datetime":
            await charge("a", 1 if datetime.now().timestamp() // PERIOD % 2 else 2)
        case "random":
            await charge("a", random.random())
        case "set":
            for name in {f"{n}" for n in range(20)}:
                await charge(name, 1)


async def test_a_steady_function_makes_the_same_calls_in_another_process() -> None:
    await replays(steady, {"names": ["b", "a", "c", "a"]})


@pytest.mark.parametrize("what", ["clock", "day", "datetime", "random", "set"])
async def test_an_unsteady_one_is_found_with_the_call(what: str) -> None:
    with pytest.raises(AssertionError, match=r"(?s)test_replays\.py:\d+: call \d+ is `.*charge\(.*another clock"):
        await replays(unsteady, {"what": what})
