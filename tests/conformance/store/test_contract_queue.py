"""In which order runs are claimed, and by which workers: rule "fair claims"."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from executor.kernel.store.topics.store import Store
from tests.support.rows import LEASE_MS, T0, new_run, placed


async def claimed(store: Store, limit: int, owner: str = "w1", now_ms: int = T0 + 100, **pools: str) -> list[str]:
    rows = await store.claim(owner, now_ms, LEASE_MS, limit, pools=pools or {"default": ""})
    return [row.id for row in rows]


async def test_a_worker_claims_runs_of_its_pools_alone(store: Store) -> None:
    await store.create_run(placed("plain"))
    await store.create_run(placed("heavy", T0 + 5, pool="gpu"))
    assert await store.next_due(["other"]) is None
    assert await store.next_due(["gpu"]) == T0 + 5
    assert await claimed(store, 9) == ["plain"]
    assert await store.claim("w2", T0 + 100, LEASE_MS, 1, "heavy") == []
    assert await claimed(store, 9, other="", gpu="") == ["heavy"]


async def test_pools_of_a_worker_share_its_claim(store: Store) -> None:
    for n in range(6):
        await store.create_run(placed(f"a{n}", pool="a"))
        await store.create_run(placed(f"b{n}", pool="b"))
    assert await claimed(store, 4, a="", b="") == ["a0", "a1", "b0", "b1"]
    assert await claimed(store, 8, b="", a="") == ["b2", "b3", "b4", "b5", "a2", "a3", "a4", "a5"]


async def test_keys_take_turns_and_the_turn_is_the_next_one_s(store: Store) -> None:
    for n in range(50):
        await store.create_run(placed(f"big-{n:02}", T0 + n, fair="big"))
    for n, fair in enumerate(("ann", "cyd", "bob")):
        await store.create_run(placed(fair, T0 + 60 + n, fair=fair))
    assert await claimed(store, 6) == ["ann", "big-00", "bob", "cyd", "big-01"]
    for n, fair in enumerate(("ann", "cyd", "bob")):
        await store.create_run(placed(f"{fair}-2", T0 + 70 + n, fair=fair))
    assert await claimed(store, 2, default="big") == ["bob-2", "cyd-2"]
    assert await claimed(store, 2, default="cyd") == ["ann-2", "big-02"]


async def test_a_crowd_delays_another_key_by_one_claim_at_most(store: Store) -> None:
    for n in range(300):
        await store.create_run(placed(f"crowd-{n:03}", fair="crowd"))
    turn, rounds = "", 0
    await store.create_run(placed("lone", T0 + 50, fair="a lone one"))
    while True:
        rows = await store.claim("w1", T0 + 100, LEASE_MS, 8, pools={"default": turn})
        rounds += 1
        turn = rows[-1].fair
        if "lone" in [row.id for row in rows]:
            break
    assert rounds == 1


async def test_the_name_of_the_workflow_is_the_key_of_a_run_without_one(store: Store) -> None:
    for id, workflow in (("a1", "a"), ("a2", "a"), ("b1", "b")):
        await store.create_run(replace(new_run(id), workflow=workflow))
    rows = await store.claim("w1", T0, LEASE_MS, 2)
    assert [(row.id, row.pool, row.fair) for row in rows] == [("a1", "default", "a"), ("b1", "default", "b")]


async def test_priority_comes_before_age_within_a_key(store: Store) -> None:
    await store.create_run(placed("old", T0, fair="a"))
    await store.create_run(placed("low", T0 - 9, fair="a", priority=-10))
    await store.create_run(placed("high", T0 + 9, fair="a", priority=10))
    await store.create_run(placed("other", T0 + 10, fair="b", priority=-10))
    assert await claimed(store, 5) == ["high", "other", "old", "low"]


async def test_runs_that_lost_their_worker_leave_half_of_a_claim(store: Store) -> None:
    for n in range(6):
        await store.create_run(placed(f"lost-{n}", T0 + n))
    assert len(await claimed(store, 6, "gone", T0 + 10)) == 6
    late_ms = T0 + 10 + LEASE_MS
    for n in range(6):
        await store.create_run(placed(f"new-{n}", late_ms + n, fair="other"))
    assert await claimed(store, 4, now_ms=late_ms + 10) == ["lost-0", "lost-1", "new-0", "new-1"]
    assert await claimed(store, 20, now_ms=late_ms + 10) == [
        "lost-2", "lost-3", "lost-4", "lost-5", "new-2", "new-3", "new-4", "new-5",
    ]  # fmt: skip


@pytest.mark.parametrize("status", ["waiting", "running"])
async def test_a_run_that_was_released_is_in_the_queue_again_when_it_is_due(store: Store, status: str) -> None:
    await store.create_run(placed("run", fair="é"))
    (row,) = await store.claim("w1", T0, LEASE_MS)
    assert await store.release("run", row.epoch, row.seq, T0 + 50, status)  # type: ignore[arg-type]  # a parameter: its type is str
    assert await store.next_due() == T0 + 50
    assert await claimed(store, 1, now_ms=T0 + 49) == []
    assert await claimed(store, 1, now_ms=T0 + 50) == ["run"]
