"""The cache of lanes by itself: which lane an attempt gets, and which are thrown away."""

from __future__ import annotations

import asyncio

import pytest

from compiler.keys import NodeKey
from executor.kernel.process import lane_cache
from executor.kernel.process.lane_cache import LANE_BYTES, LaneCache, Leave

BODY: NodeKey = ((), 2)
CODE, OTHER_CODE = object(), object()


class Lane:
    def __init__(self, held_bytes: int = 0) -> None:
        self.held_bytes = held_bytes
        self.discarded = 0

    def discard(self) -> None:
        self.discarded += 1


def kept(cache: LaneCache, run: str = "r", lane: Lane | None = None, stored: bool = True) -> Lane:
    lane = lane or Lane()
    cache.keep(run, Leave(lane, BODY, 3, 7, "plan", CODE))
    if stored:
        for leave in cache.left(run, BODY, 3):
            leave.settle(stored=True)
    return lane


def cache_of(most: int = 10) -> LaneCache:
    return LaneCache(most, 10 * LANE_BYTES)


async def test_a_lane_is_taken_once_by_the_same_lease_or_the_next_one() -> None:
    cache = cache_of()
    for epoch in (7, 8):
        lane = kept(cache)
        assert cache.take("r", BODY, epoch, "plan", CODE) is lane and not lane.discarded
        assert cache.take("r", BODY, epoch, "plan", CODE) is None


@pytest.mark.parametrize(
    ("key", "epoch", "plan", "code"),
    [
        (BODY, 9, "plan", CODE),
        (BODY, 6, "plan", CODE),
        (((), 3), 8, "plan", CODE),
        (BODY, 8, "other", CODE),
        (BODY, 8, "plan", OTHER_CODE),
    ],
    ids=["another owner between", "an older lease", "another node", "another version", "other code"],
)
async def test_a_lane_that_does_not_fit_is_thrown_away(key: NodeKey, epoch: int, plan: str, code: object) -> None:
    cache = cache_of()
    lane = kept(cache)
    assert cache.take("r", key, epoch, plan, code) is None
    assert lane.discarded == 1 and len(cache) == 0


@pytest.mark.parametrize("settled", [None, False])
async def test_a_lane_whose_leave_is_not_on_disk_is_thrown_away(settled: bool | None) -> None:
    cache = cache_of()
    lane = kept(cache, stored=False)
    if settled is not None:
        for leave in cache.left("r", BODY, 3):
            leave.settle(settled)
    assert list(cache.left("r", BODY, 2)) == list(cache.left("r", ((), 3), 3)) == [], "of others"
    assert cache.take("r", BODY, 7, "plan", CODE) is None
    assert lane.discarded == 1


async def test_the_oldest_lanes_make_room() -> None:
    cache = cache_of(most=2)
    first, second, third = (kept(cache, run) for run in "abc")
    assert (first.discarded, second.discarded, third.discarded) == (1, 0, 0)
    large = kept(cache, "d", Lane(held_bytes=4 * LANE_BYTES))
    assert (second.discarded, third.discarded, len(cache)) == (1, 0, 2)
    kept(cache, "c", Lane(held_bytes=LANE_BYTES))
    assert (third.discarded, large.discarded) == (1, 1), "12 units do not fit into ten"
    assert not cache.keep("e", Leave(Lane(5 * LANE_BYTES), BODY, 3, 7, "plan", CODE)), "larger than all there is"


async def test_none_is_kept_with_0_and_after_the_end() -> None:
    assert not LaneCache(0, LANE_BYTES).keep("r", Leave(Lane(), BODY, 3, 7, "plan", CODE))
    cache = cache_of()
    lane = kept(cache)
    cache.close()
    assert lane.discarded == 1 and not cache.keep("r", Leave(Lane(), BODY, 3, 7, "plan", CODE))


async def test_an_idle_lane_is_thrown_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_cache, "IDLE_S", 0.01)
    cache = cache_of()
    first = kept(cache, "a")
    await asyncio.sleep(0.005)
    second = kept(cache, "b")
    while not second.discarded:
        await asyncio.sleep(0.001)
    assert first.discarded == 1 and len(cache) == 0
