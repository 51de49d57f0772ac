"""Limits and rates of keys: rule "limits of runs"."""

from __future__ import annotations

import asyncio
import random

import pytest

from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.topics.limits import Full
from executor.kernel.store.topics.store import Store
from tests.support.rows import LEASE_MS, T0, finish, placed, row

NOW = T0 + 1_000


async def claim(store: Store, limit: int = 64, owner: str = "w1", now_ms: int = NOW) -> list[RunRow]:
    return await store.claim(owner, now_ms, LEASE_MS, limit)


async def some(store: Store, count: int, at_most: int = 2, key: str = "k", name: str = "run") -> None:
    for n in range(count):
        await store.create_run(placed(f"{name}-{n}", T0 + n, limits=((key, at_most),)))


async def test_no_more_runs_than_a_limit_allows_have_an_owner(store: Store) -> None:
    await some(store, 5)
    rows = await claim(store)
    assert [(row.id, row.limited) for row in rows] == [("run-0", True), ("run-1", True)]
    assert await claim(store) == []
    assert (await store.next_due() or 0) > NOW, "a run that waits for a place is not due"
    assert await store.waits_for("run-2") == Full("k", 2, 2)
    assert await store.waits_for("run-0") is None and await store.waits_for("no such run") is None


async def test_the_end_of_a_run_lets_the_next_one_in(store: Store) -> None:
    await some(store, 4)
    first, second = await claim(store)
    assert await claim(store) == []
    await finish(store, first)
    assert (await store.next_due() or 0) <= NOW
    (third,) = await claim(store)
    assert third.id == "run-2"
    assert await claim(store) == []
    assert await store.release(second.id, second.epoch, second.seq, None, "waiting")
    assert [run.id for run in await claim(store)] == ["run-3"]
    assert await store.post_message(second.id, b"{}", NOW)
    assert await claim(store) == [], "a run that was released needs a place again"
    await finish(store, third)
    assert [run.id for run in await claim(store)] == [second.id]


async def test_a_run_keeps_its_place_until_it_is_claimed_again(store: Store) -> None:
    await some(store, 2, at_most=1)
    (lost,) = await claim(store, owner="gone")
    late_ms = NOW + LEASE_MS
    (again,) = await claim(store, now_ms=late_ms)
    assert (again.id, again.epoch) == (lost.id, 2)
    await finish(store, again)
    assert [run.id for run in await claim(store, now_ms=late_ms)] == ["run-1"]


async def test_places_that_are_left_at_once_let_as_many_in(store: Store) -> None:
    await some(store, 5)
    rows = await claim(store)
    assert await claim(store) == []
    for run in rows:
        await finish(store, run)
    assert [run.id for run in await claim(store)] == ["run-2", "run-3"]


async def test_a_run_that_is_answered_takes_the_place_again_that_it_left(store: Store) -> None:
    await some(store, 2, at_most=1)
    (first,) = await claim(store)
    assert await claim(store) == []
    assert await store.release(first.id, first.epoch, first.seq, None, "waiting")
    assert await store.post_message(first.id, b"{}", NOW)
    (again,) = await store.claim("w1", NOW, LEASE_MS, run_id=first.id)
    assert await claim(store) == []
    await finish(store, again)
    assert [run.id for run in await claim(store)] == ["run-1"]


async def test_a_run_without_a_worker_that_is_to_be_cancelled_leaves_its_place(store: Store) -> None:
    await some(store, 2, at_most=1)
    (lost,) = await claim(store, owner="gone")
    assert await claim(store) == []
    assert await store.cancel_run(lost.id, b"{}", NOW)
    late_ms = NOW + LEASE_MS
    found = [run.id for run in [*await claim(store, now_ms=late_ms), *await claim(store, now_ms=late_ms)]]
    assert found == [lost.id, "run-1"]


async def test_runs_that_are_blocked_do_not_keep_others_waiting(store: Store) -> None:
    await some(store, 200, at_most=1)
    await store.create_run(placed("free", T0 + 900))
    claims = 0
    while "free" not in (ids := [run.id for run in await claim(store, 50)]):
        claims += 1
        assert claims < 6, ids
    assert await claim(store) == []


async def test_priority_decides_who_is_let_in(store: Store) -> None:
    await some(store, 3, at_most=1)
    (first,) = await claim(store)
    await store.create_run(placed("late", T0 + 900, limits=(("k", 1),), priority=1))
    assert await claim(store) == []
    await finish(store, first)
    assert [run.id for run in await claim(store)] == ["late"]


async def test_a_run_that_is_to_be_cancelled_needs_no_place(store: Store) -> None:
    await some(store, 3, at_most=1)
    (first,) = await claim(store)
    assert await claim(store) == []
    assert await store.cancel_run("run-1", b"{}", NOW)
    (cancelled,) = await claim(store)
    assert cancelled.id == "run-1"
    await finish(store, first)
    assert [run.id for run in await claim(store)] == ["run-2"]


async def test_a_place_that_a_cancelled_run_was_let_in_for_is_another_one_s(store: Store) -> None:
    await some(store, 3, at_most=1)
    (first,) = await claim(store)
    assert await claim(store) == []
    await finish(store, first)
    assert await store.cancel_run("run-1", b"{}", NOW)
    assert [run.id for run in [*await claim(store), *await claim(store)]] == ["run-1", "run-2"]


async def test_a_place_of_one_limit_is_not_lost_to_a_run_that_waits_for_another(store: Store) -> None:
    await store.create_run(placed("a", T0, limits=(("one", 1),)))
    await store.create_run(placed("b", T0 + 1, limits=(("two", 1),)))
    first, second = await claim(store)
    await store.create_run(placed("both", T0 + 2, limits=(("one", 1), ("two", 1))))
    await store.create_run(placed("one", T0 + 3, limits=(("one", 1),)))
    assert await claim(store) == []
    await finish(store, first)
    found = [run.id for run in [*await claim(store), *await claim(store)]]
    assert found == ["one"], "`both` gave it its turn"
    await finish(store, second)
    assert await claim(store) == []
    await finish(store, await row(store, "one"))
    assert [run.id for run in [*await claim(store), *await claim(store)]] == ["both"]


async def test_claims_at_once_never_go_over_a_limit(store: Store) -> None:
    chance = random.Random(7)
    await some(store, 120, at_most=5)
    held: dict[str, RunRow] = {}
    ended = 0
    for _ in range(400):
        results = await asyncio.gather(*(claim(store, 3, f"w{n}") for n in range(3)))
        held |= {run.id: run for rows in results for run in rows}
        assert len(held) <= 5
        for run in chance.sample(list(held.values()), chance.randint(0, len(held))):
            await finish(store, held.pop(run.id))
            ended += 1
        if ended == 120:
            break
    assert ended == 120


async def test_a_rate_makes_runs_due_at_its_times(store: Store) -> None:
    for n in range(6):
        await store.create_run(placed(f"run-{n}", T0 + n, rates=(("k", 10.0),)))
    started = []
    for now_ms in range(NOW, NOW + 1_000, 10):
        started += [(now_ms - NOW, run.id) for run in await claim(store, now_ms=now_ms)]
    assert started == [(n * 100, f"run-{n}") for n in range(6)]


@pytest.mark.parametrize("per_s", [0.5, 3.0, 40.0, 250.0])
async def test_a_rate_is_kept_over_time(store: Store, per_s: float) -> None:
    count = 60
    for n in range(count):
        await store.create_run(placed(f"run-{n:03}", T0, rates=(("k", per_s), ("wide", 10_000.0))))
    now_ms, last_ms, started = NOW, NOW, 0
    while started < count:
        rows = await claim(store, 16, now_ms=now_ms)
        if rows:
            started, last_ms = started + len(rows), now_ms
        else:
            now_ms = max(now_ms + 1, await store.next_due() or 0)
    rate = (count - 1) / ((last_ms - NOW) / 1000)
    assert 0.95 * per_s <= rate <= 1.05 * per_s


async def test_a_rate_saves_nothing_up(store: Store) -> None:
    for n, now_ms in enumerate((T0, T0 + 9_000, T0 + 9_000, T0 + 9_000)):
        await store.create_run(placed(f"run-{n}", now_ms, rates=(("k", 2.0),)))
        if n == 0:
            assert [run.id for run in await claim(store)] == ["run-0"]
    started = []
    for now_ms in range(T0 + 9_000, T0 + 11_000, 100):
        started += [(now_ms - T0, run.id) for run in await claim(store, now_ms=now_ms)]
    assert started == [(9_000, "run-1"), (9_500, "run-2"), (10_000, "run-3")]


async def test_a_run_starts_once_however_often_it_is_claimed(store: Store) -> None:
    await store.create_run(placed("run", rates=(("k", 0.001),)))
    (run,) = await claim(store)
    assert await store.release(run.id, run.epoch, run.seq, NOW, "running")
    assert len(await claim(store)) == 1


async def test_runs_that_wait_for_a_worker_are_counted(store: Store) -> None:
    await some(store, 5)
    await store.create_run(placed("other", pool="gpu"))
    assert await store.count_queued("default", 100) == 5
    assert await store.count_queued("default", 3) == 3
    first, second = await claim(store)
    assert await store.count_queued("default", 100) == 3, "those without a place"
    await finish(store, first)
    assert await store.release(second.id, second.epoch, second.seq, None, "waiting")
    assert await store.count_queued("default", 100) == 3
    assert await store.count_queued("gpu", 100) == 1
