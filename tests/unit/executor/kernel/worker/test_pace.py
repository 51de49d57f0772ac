"""How many runs a worker claims, beside others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from executor.kernel.read.peers import Peers
from executor.kernel.worker import pace
from executor.kernel.worker.pace import ATTEMPTS_MAX, BEHIND_MAX, FEW, LAG_MAX_S, LEAST, Load, Pace

WAITING = 200  # runs in memory whose blocks wait for something else


class Still:
    """The event loop's clock: a machine that is busy with something else makes no worker busy."""

    def __init__(self, now_s: float) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s

    def let_pass(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture(autouse=True)
async def still(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "time", Still(loop.time()))


def of_a_fleet(runs: int = WAITING, behind: int = 0, attempts: int = WAITING) -> Pace:
    elsewhere = Peers()
    elsewhere.connect(lambda topic, item: None)
    return Pace(elsewhere, lambda: Load(runs, behind, attempts))


def keep_busy() -> None:
    """The event loop, for one pass."""
    loop: Any = asyncio.get_running_loop()
    loop.call_soon(loop.time.let_pass, 2 * LAG_MAX_S)


async def test_a_worker_whose_runs_wait_claims_all_that_it_has_room_for() -> None:
    assert [await of_a_fleet().room(room) for room in (0, 1, 64)] == [0, 1, 64]


async def test_an_idle_worker_leaves_something_to_the_others() -> None:
    assert [await of_a_fleet(runs).room(64) for runs in (0, LEAST, 2 * LEAST, 64)] == [LEAST, LEAST, 2 * LEAST, 64]


async def test_a_worker_claims_few_runs_that_would_wait_for_it_or_for_the_database() -> None:
    assert await of_a_fleet(behind=BEHIND_MAX - LEAST).room(64) == LEAST
    behind = of_a_fleet(behind=BEHIND_MAX - LEAST + 1)
    behind._claimed_s = asyncio.get_running_loop().time()
    assert await behind.room(64) == 0
    behind._claimed_s -= pace.BUSY_MAX_S
    assert [await behind.room(64) for _ in range(2)] == [FEW, 0], "the others may be as busy, or gone"


async def test_a_busy_worker_claims_none_and_after_a_while_a_few() -> None:
    busy = of_a_fleet()
    assert await busy.room(64) == 64
    keep_busy()
    assert await busy.room(64) == 0
    busy._claimed_s -= pace.BUSY_MAX_S
    keep_busy()
    assert await busy.room(64) == FEW
    keep_busy()
    assert await busy.room(64) == 0
    assert await busy.room(64) == 64, "it is idle again"


async def test_attempts_under_way_are_bounded() -> None:
    assert await of_a_fleet(attempts=ATTEMPTS_MAX).room(64) == 0
    assert await of_a_fleet(attempts=ATTEMPTS_MAX - 1).room(64) == 64


async def test_a_worker_without_a_fleet_is_not_held_back() -> None:
    keep_busy()
    assert await Pace(Peers(), lambda: Load(0, BEHIND_MAX, ATTEMPTS_MAX)).room(64) == 64
