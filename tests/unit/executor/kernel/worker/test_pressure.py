"""The cap on runs that wait for a worker, and when to come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from executor.errors import QueueFull
from executor.kernel.worker.pressure import RETRY_MAX_S, RETRY_UNKNOWN_S, Pressure
from tests.support.clock import ManualClock
from tests.support.documents import chain, value
from tests.support.runs import engine_on


class Counts:
    def __init__(self) -> None:
        self.waiting = 0
        self.asked = 0

    async def count_queued(self, pool: str, upto: int) -> int:
        self.asked += 1
        return min(self.waiting, upto)


def pressure(most: int | None) -> tuple[Pressure, Counts, ManualClock]:
    counts, clock = Counts(), ManualClock()
    store: Any = counts
    return Pressure(store, clock, most), counts, clock


async def refused(of: Pressure) -> int:
    with pytest.raises(QueueFull) as found:
        await of.admit("default")
    return int(found.value.extra["retry_after_s"])


async def test_without_a_cap_nothing_is_counted() -> None:
    of, counts, _ = pressure(None)
    await of.admit("default")
    assert counts.asked == 0


async def test_what_is_added_counts_until_the_next_count() -> None:
    of, counts, clock = pressure(10)
    counts.waiting = 7
    for _ in range(3):
        await of.admit("default")
    assert await refused(of) == RETRY_UNKNOWN_S and counts.asked == 1
    counts.waiting = 9
    clock.advance(1_000)
    await of.admit("default")
    assert counts.asked == 2


async def test_the_rate_at_which_runs_leave_says_when_to_come_back() -> None:
    of, counts, clock = pressure(1_000)
    counts.waiting = 990
    for _ in range(10):
        await of.admit("default")
    counts.waiting = 1_000  # fifty have left, and another process has added as many
    clock.advance(1_000)
    assert await refused(of) == RETRY_UNKNOWN_S
    counts.waiting = 980
    clock.advance(2_000)
    for _ in range(20):
        await of.admit("default")  # 10 a second
    assert await refused(of) == 10, "for room of a tenth of the cap"
    counts.waiting = 2_000
    clock.advance(1_000)
    assert await refused(of) == RETRY_MAX_S


async def test_an_engine_refuses_runs_over_its_cap(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        engine.runs._pressure._most = 2
        other = {**chain("a", a=value(1)), "settings": {"pool": "other"}}
        for _ in range(2):
            await engine.submit(other)
        with pytest.raises(QueueFull, match="2 runs of pool 'other' wait for a worker, and 2 may"):
            await engine.submit(other)
        run = (await engine.submit(chain("a", a=value(1)))).run
        assert (await engine.wait_finished(run, 60)).status == "succeeded"
