"""Places of limits of blocks: rule "places of blocks"."""

from __future__ import annotations

import random

import pytest

from executor.kernel.store.run_rows import Append, RunRow
from executor.kernel.store.topics.places import RESERVED, USED, WAITS, Ask, PlaceRow
from executor.kernel.store.topics.store import Store
from tests.support.rows import LEASE_MS, T0, finish, owned_run, record


def ask(run: RunRow, node: str = "n", attempt: int = 1, key: str = "k", at_most: int = 1) -> Ask:
    return Ask(run.id, run.epoch, node, attempt, key, at_most)


async def leave(store: Store, run: RunRow, *numbers: int) -> None:
    row = await store.get_run(run.id)
    assert row is not None
    left = tuple((row.node, row.attempt) for row in await store.places_of(run.id) if row.number in numbers)
    await store.append(Append(run.id, run.epoch, row.seq, (record(),), T0, places=left))


async def states(store: Store, run: RunRow) -> list[tuple[str, int]]:
    return [(row.node, row.state) for row in await store.places_of(run.id)]


async def test_no_more_attempts_than_the_limit_allows_have_a_place(store: Store) -> None:
    run = await owned_run(store, "run")
    assigned = await store.ask_places("p", [ask(run, f"n{i}", at_most=2) for i in range(4)])
    first, second, third, fourth = (number or 0 for number in assigned.asked)
    assert (assigned.begin, assigned.others, assigned.again) == ((first, second), False, ())
    assert await states(store, run) == [("n0", USED), ("n1", USED), ("n2", WAITS), ("n3", WAITS)]
    assert (await store.places_of(run.id))[2] == PlaceRow(third, "n2", 1, 1, WAITS, "k", 2, 2)
    assert await store.places_to_assign("p", ["k"]) == []
    assert (await store.assign_places("p", ["k"])).begin == ()
    await leave(store, run, second)
    assert await store.places_to_assign("p", ["k", "other"]) == ["k"]
    assert (await store.assign_places("p", ["k"])).begin == (third,)
    await leave(store, run, first, third, fourth)
    assert await states(store, run) == []


async def test_they_are_served_in_the_order_in_which_they_asked(store: Store) -> None:
    one, two = await owned_run(store, "one"), await owned_run(store, "two", owner="w2")
    a = (await store.ask_places("p1", [ask(one, "a")])).asked[0] or 0
    b = (await store.ask_places("p2", [ask(two, "b")])).asked[0] or 0
    c = (await store.ask_places("p1", [ask(one, "c")])).asked[0] or 0
    await leave(store, one, a)
    asked = await store.ask_places("p1", [ask(one, "d")])
    assert (asked.begin, asked.others) == ((), True), "it does not overtake another process"
    assert await states(store, two) == [("b", RESERVED)]
    assert await store.places_to_assign("p1", ["k"]) == []
    assert await store.places_to_assign("p2", ["k"]) == ["k"]
    assert (await store.assign_places("p2", [])).begin == (b,)
    assert (await store.assign_places("p2", [])).begin == ()
    await leave(store, two, b)
    assert (await store.assign_places("p2", ["k"])).begin == ()
    assert await states(store, one) == [("c", RESERVED), ("d", WAITS)]
    await leave(store, one, c)
    assert (await store.assign_places("p1", ["k"])).begin == (asked.asked[0],)


async def test_a_claim_frees_the_places_of_the_lease_before(store: Store) -> None:
    lost, other = await owned_run(store, "lost"), await owned_run(store, "other", owner="w2")
    first, waits = (n or 0 for n in (await store.ask_places("p1", [ask(lost, "a"), ask(lost, "b")])).asked)
    (number,) = (await store.ask_places("p2", [ask(other)])).asked
    assert (await store.assign_places("p2", ["k"])).begin == (), "its handler may be at work"
    (again,) = await store.claim("w3", T0 + LEASE_MS, LEASE_MS, run_id="lost")
    assert again.epoch == lost.epoch + 1
    assert await store.places_to_assign("p2", ["k"]) == ["k"]
    assert (await store.assign_places("p2", ["k"])).begin == (number,), "those of the old lease do not wait any more"
    rows = await store.places_of("lost")
    assert [(row.number, row.epoch, row.state) for row in rows] == [(first, 1, USED), (waits, 1, WAITS)]
    assert (await store.ask_places("p1", [ask(lost, "late")])).asked == (None,)
    assert (first, waits) == tuple(row.number for row in rows)
    await leave(store, again)
    assert await store.places_of("lost") == [], "with any others, or none, go those of older epochs"


async def test_an_attempt_that_was_not_recorded_asks_as_a_new_one(store: Store) -> None:
    lost, other = await owned_run(store, "lost"), await owned_run(store, "other", owner="w2")
    await store.ask_places("p1", [ask(lost, "a")])
    (again,) = await store.claim("w3", T0 + LEASE_MS, LEASE_MS, run_id="lost")
    assert (await store.ask_places("p2", [ask(other)])).begin
    assert (await store.ask_places("p3", [ask(again, "a")])).begin == (), "the place of its older lease is not its own"
    await leave(store, again)
    assert await states(store, again) == [("a", WAITS)], "it is of this lease now"


async def test_an_ask_that_comes_again_is_the_same(store: Store) -> None:
    run = await owned_run(store, "run")
    first = await store.ask_places("p", [ask(run, "a"), ask(run, "b")])
    assert await store.ask_places("p", [ask(run, "a"), ask(run, "b")]) == first
    assert len(await store.places_of("run")) == 2


async def test_who_allows_fewer_waits_for_fewer(store: Store) -> None:
    run = await owned_run(store, "run")
    first, second, strict, lenient = (
        number or 0
        for number in (
            await store.ask_places("p", [ask(run, f"n{i}", at_most=most) for i, most in enumerate((2, 2, 1, 9))])
        ).asked
    )
    await leave(store, run, first)
    assert (await store.assign_places("p", ["k"])).begin == (), "those behind it wait as well, or it never has its turn"
    await leave(store, run, second)
    assert (await store.assign_places("p", ["k"])).begin == (strict, lenient)


async def test_a_place_is_of_its_run(store: Store) -> None:
    one, two = await owned_run(store, "one"), await owned_run(store, "two")
    await store.ask_places("p", [ask(one)])
    await store.append(Append(two.id, two.epoch, two.seq, (record(),), T0, places=(("n", 1),)))
    assert await states(store, one) == [("n", USED)]
    row = await store.get_run("one")
    assert row is not None
    await finish(store, row)
    (waits,) = (await store.ask_places("p", [ask(two)])).asked
    assert (await store.places_of("two"))[0].state == USED, "a run that has ended has no places"
    assert waits is not None and await store.places_of("no such run") == []


@pytest.mark.parametrize("seed", range(8))
async def test_any_order_of_asks_and_ends(store: Store, seed: int) -> None:
    chance = random.Random(seed)
    runs = {f"run-{i}": await owned_run(store, f"run-{i}", owner=f"w{i}") for i in range(3)}
    waiting: list[tuple[str, int]] = []  # run, number
    held: dict[int, str] = {}
    order: list[int] = []
    for step in range(60):
        name = chance.choice(list(runs))
        run, asker = runs[name], f"p-{name}"
        if chance.random() < 0.5:
            assigned = await store.ask_places(asker, [ask(run, f"n{step}.{i}", at_most=3) for i in range(2)])
            waiting += [(name, number or 0) for number in assigned.asked]
        elif chance.random() < 0.1:
            now_ms = T0 + 10 * LEASE_MS * (step + 1)
            (runs[name],) = await store.claim(f"w{step}", now_ms, LEASE_MS, run_id=name)
            waiting = [each for each in waiting if each[0] != name]
            held = {number: of for number, of in held.items() if of != name}
            continue
        elif mine := [number for number, of in held.items() if of == name]:
            await leave(store, run, mine[0])
            del held[mine[0]]
            assigned = await store.assign_places(asker, ["k"])
        else:
            assigned = await store.assign_places(asker, ["k"])
        for number in assigned.begin:
            waiting.remove((name, number))
            held[number] = name
            order.append(number)
        current = [
            row
            for each in runs.values()
            for row in await store.places_of(each.id)
            if row.state != WAITS and row.epoch == each.epoch
        ]
        assert len(held) <= len(current) <= 3
    assert len(order) > 5
