"""Facts from outside: the inbox, waits and their answers, signals. Promises 5 and 6."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from executor.errors import Fenced
from executor.kernel.store.run_rows import DEFAULT_POOLS, Appended, Placement, Record, RunRow
from executor.kernel.store.topics.claims import Continued
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.waits import Answered, WaitUpdate
from tests.support.rows import LEASE_MS, T0, change, finish, new_run, owned_run, record, row, wait


async def test_facts_keep_their_order_and_their_numbers(store: Store) -> None:
    run = await owned_run(store)
    for fact in (b"a", b"\x00\xff", b""):
        assert await store.post_message(run.id, fact, T0)
    inbox = await store.read_inbox(run.id)
    assert [row.message for row in inbox] == [b"a", b"\x00\xff", b""]
    assert [fact.run_id for fact in inbox] == [run.id] * 3

    await store.append(change(run, record(), consumed_inbox=tuple(fact.n for fact in inbox)))
    assert await store.read_inbox(run.id) == []
    await store.post_message(run.id, b"b", T0)
    (next_fact,) = await store.read_inbox(run.id)
    assert next_fact.n > inbox[-1].n  # never used twice, also once the inbox was empty
    assert await store.read_inbox("no such run") == []


async def test_a_consumed_fact_goes_with_its_events_or_not_at_all(store: Store) -> None:
    run = await owned_run(store)
    await store.post_message(run.id, b"a", T0)
    (fact,) = await store.read_inbox(run.id)
    with pytest.raises(Fenced):
        await store.append(change(run, record(), expected_seq=9, consumed_inbox=(fact.n,)))
    assert await store.read_inbox(run.id) == [fact]


async def test_a_fact_leaves_a_live_lease_alone(store: Store) -> None:
    run = await owned_run(store)
    await store.post_message(run.id, b"a", T0 + 1)
    assert await row(store, run.id) == run
    assert await store.claim("w2", T0 + 2, LEASE_MS) == []
    assert len(await store.claim("w2", T0 + LEASE_MS, LEASE_MS)) == 1


async def test_a_fact_makes_a_sleeping_run_due(store: Store) -> None:
    run = await owned_run(store)
    await store.release(run.id, run.epoch, run.seq, T0 + 10**9, "waiting")
    await store.post_message(run.id, b"a", T0 + 5)
    now = await row(store, run.id)
    assert (now.status, now.next_run_at_ms) == ("waiting", T0 + 5)


async def test_no_fact_for_a_run_that_ended_or_never_was(store: Store) -> None:
    run = await owned_run(store)
    await finish(store, run)
    assert not await store.post_message(run.id, b"a", T0)
    assert not await store.post_message("no such run", b"a", T0)
    assert await store.read_inbox(run.id) == []
    assert (await row(store, run.id)).next_run_at_ms is None


async def test_waits_come_back_as_they_went_in(store: Store) -> None:
    run = await owned_run(store)
    full = wait(
        run.id, "go!2", kind="signal", name="paid", correlation="order-7", expires_at_ms=T0 + 9, on_expire="reject"
    )
    plain = wait(run.id, "ask!1")
    await store.append(change(run, record("wait.opened"), waits=(full, plain)))
    assert await store.get_wait(run.id, "go!2") == full
    assert await store.find_wait(plain.token_hash) == plain
    assert await store.get_wait(run.id, "no") is None
    assert await store.get_wait("no", "ask!1") is None
    assert await store.find_wait("no") is None


async def test_list_waits_oldest_first(store: Store) -> None:
    one, two = await owned_run(store, "one"), await owned_run(store, "two")
    await store.append(change(two, waits=(wait("two", "a!1", opened_at_ms=T0 + 1), wait("two", "b!1"))))
    await store.append(change(one, waits=(wait("one", "a!1", opened_at_ms=T0 + 2),)))
    await store.append(change(two, closed_waits=(WaitUpdate("b!1", "expired", at_ms=T0 + 3),)))

    async def ids(**where: object) -> list[tuple[str, str]]:
        return [(found.run_id, found.id) for found in await store.list_waits(**where)]  # type: ignore[arg-type]

    assert await ids() == [("two", "a!1"), ("one", "a!1")]
    assert await ids(limit=1) == [("two", "a!1")]
    assert await ids(run_id="one") == [("one", "a!1")]
    assert await ids(status="expired") == [("two", "b!1")]
    assert await ids(status=None) == [("two", "b!1"), ("two", "a!1"), ("one", "a!1")]
    assert await ids(status=None, run_id="two") == [("two", "b!1"), ("two", "a!1")]
    assert await ids(status="answered") == []


async def test_an_answer_wakes_the_run(store: Store) -> None:
    run = await owned_run(store)
    await store.append(change(run, waits=(wait(run.id),)))
    await store.release(run.id, run.epoch, run.seq, None, "waiting")
    token = wait(run.id).token_hash

    first = await store.answer_wait(token, b'{"action":"approve"}', "ada", b"fact-1", T0 + 5)
    assert first is not None and first.won
    assert (first.wait.status, first.wait.response) == ("answered", b'{"action":"approve"}')
    assert (first.wait.answered_by, first.wait.answered_at_ms) == ("ada", T0 + 5)
    assert await store.get_wait(run.id, "ask!1") == first.wait
    assert [row.message for row in await store.read_inbox(run.id)] == [b"fact-1"]
    assert (await row(store, run.id)).next_run_at_ms == T0 + 5

    second = await store.answer_wait(token, b"{}", "bob", b"fact-2", T0 + 6)
    assert second == Answered(False, first.wait)
    assert len(await store.read_inbox(run.id)) == 1
    assert await store.answer_wait("no such token", b"{}", None, b"fact", T0) is None


async def _parked(store: Store, id: str = "run-1", **fields: Any) -> RunRow:
    """A run that waits for an answer, and has no owner."""
    await store.create_run(new_run(id, T0, **fields))
    (run,) = await store.claim("w1", T0, LEASE_MS, run_id=id)
    await store.append(change(run, record("wait.opened"), waits=(wait(id),)))
    run = await row(store, id)
    assert await store.release(id, run.epoch, run.seq, None, "waiting")
    return await row(store, id)


async def _go_on(store: Store, run: RunRow, *records: Record, epoch: int = 2, **fields: Any) -> Continued | None:
    first = change(run, *(records or (record(),)), epoch=epoch, **fields)
    token = wait(run.id).token_hash
    return await store.answer_and_continue(token, b"1", "Ada", b"m", T0 + 5, "w2", LEASE_MS, DEFAULT_POOLS, first)


async def test_an_answer_continues_its_run_in_its_own_transaction(store: Store) -> None:
    run = await _parked(store)
    continued = await _go_on(store, run, closed_waits=(WaitUpdate("ask!1", "answered", b"2", "x", T0),))
    assert continued is not None and continued.won and continued.wait == await store.get_wait(run.id, "ask!1")
    assert (continued.wait.status, continued.wait.response, continued.wait.answered_by) == ("answered", b"1", "Ada")
    assert continued.appended == Appended(run.seq + 1, 0)
    now = await row(store, run.id)
    assert (now.lease_owner, now.epoch, now.seq, now.status, now.stalls) == ("w2", 2, run.seq + 1, "running", 0)
    assert (now.next_run_at_ms, now.lease_until_ms) == (T0 + 5, T0 + 5 + LEASE_MS)
    assert await store.read_inbox(run.id) == [] and len(await store.read_events(run.id)) == now.seq
    again = await _go_on(store, run)
    assert again == Continued(False, continued.wait), "it won nothing, and wrote nothing"
    assert await row(store, run.id) == now and await store.read_inbox(run.id) == []
    (lapsed,) = await store.claim("w3", T0 + 5 + LEASE_MS, LEASE_MS, run_id=run.id)
    assert (lapsed.epoch, lapsed.former_owner) == (3, "w2"), "who dies has a lease that lapses, and a run that is due"


async def test_an_answer_may_end_its_run(store: Store) -> None:
    run = await _parked(store)
    end: Any = {"status": "succeeded", "finished": True, "output": b"1"}
    continued = await _go_on(store, run, record("run.finished", None), **end)
    assert continued is not None and continued.appended == Appended(run.seq + 1, 0)
    now = await row(store, run.id)
    assert (now.status, now.output, now.lease_owner, now.epoch) == ("succeeded", b"1", None, 2)
    assert await store.claim("w3", T0 + LEASE_MS, LEASE_MS) == []


async def _is_left(store: Store, run: RunRow, **fields: Any) -> None:
    """It is answered, by a message for its next owner."""
    before = await row(store, run.id)
    continued = await _go_on(store, run, **fields)
    assert continued is not None and continued.won and continued.appended is None
    assert continued.wait.status == "answered"
    now = await row(store, run.id)
    same = ("lease_owner", "epoch", "seq", "status")
    assert [getattr(now, name) for name in same] == [getattr(before, name) for name in same]
    assert (await store.read_inbox(run.id))[-1].message == b"m"


@pytest.mark.parametrize("fields", [{"epoch": 3}, {"expected_seq": 1}])
async def test_an_answer_leaves_a_run_that_is_not_as_it_was_thought_to_be(store: Store, fields: Any) -> None:
    await _is_left(store, await _parked(store), **fields)


async def test_an_answer_leaves_a_run_with_a_message(store: Store) -> None:
    run = await _parked(store)
    await store.cancel_run(run.id, b"cancel", T0 + 1)
    await _is_left(store, run)


async def test_an_answer_leaves_a_run_that_has_an_owner(store: Store) -> None:
    run = await _parked(store)
    await store.post_message(run.id, b"other", T0 + 1)
    (owned,) = await store.claim("w1", T0 + 1, LEASE_MS, run_id=run.id)
    await _is_left(store, run, epoch=owned.epoch + 1)


async def test_an_answer_leaves_a_run_with_limits(store: Store) -> None:
    await _is_left(store, await _parked(store, placement=Placement(limits=(("key", 1),))))


async def test_an_answer_leaves_a_run_of_another_pool(store: Store) -> None:
    await store.create_run(new_run("run-1", T0, placement=Placement("gpu")))
    (run,) = await store.claim("w1", T0, LEASE_MS, run_id="run-1", pools={"gpu": ""})
    await store.append(change(run, waits=(wait(run.id),)))
    run = await row(store, run.id)
    assert await store.release(run.id, run.epoch, run.seq, None, "waiting")
    await _is_left(store, run)


async def test_an_answer_leaves_a_run_below_one_that_is_cancelled(store: Store) -> None:
    parent = await owned_run(store, "parent")
    child = new_run("child", T0, parent_run_id="parent", parent_key="call!1")
    await store.append(change(parent, record(), children=(child,), root="parent"))
    (run,) = await store.claim("w1", T0, LEASE_MS, run_id="child")
    await store.append(change(run, record("wait.opened"), waits=(wait("child"),), root="parent"))
    run = await row(store, "child")
    assert await store.release(run.id, run.epoch, run.seq, None, "waiting")
    await store.cancel_run("parent", b"cancel", T0 + 1)
    await _is_left(store, run, root="parent")


async def test_an_answer_to_nothing_continues_nothing(store: Store) -> None:
    run = await _parked(store)
    nothing = await store.answer_and_continue("?", b"1", None, b"m", T0, "w2", LEASE_MS, DEFAULT_POOLS, change(run))
    assert nothing is None


async def test_of_fifty_answers_one_wins_and_all_see_it(store: Store) -> None:
    run = await owned_run(store)
    await store.append(change(run, waits=(wait(run.id),)))
    token = wait(run.id).token_hash
    results = await asyncio.gather(
        *(store.answer_wait(token, b"%d" % i, f"person-{i}", b"fact-%d" % i, T0 + i) for i in range(50))
    )
    winners = [i for i, result in enumerate(results) if result is not None and result.won]
    assert len(winners) == 1
    (winner,) = winners
    for result in results:
        assert result is not None
        assert (result.wait.answered_by, result.wait.response) == (f"person-{winner}", b"%d" % winner)
        assert result.wait.answered_at_ms == T0 + winner
    assert [row.message for row in await store.read_inbox(run.id)] == [b"fact-%d" % winner]


async def test_closing_a_wait_needs_it_pending(store: Store) -> None:
    run = await owned_run(store)
    await store.append(change(run, waits=(wait(run.id, "a!1"), wait(run.id, "b!1"), wait(run.id, "c!1"))))
    answered = await store.answer_wait(wait(run.id, "a!1").token_hash, b"yes", "ada", b"fact", T0 + 1)
    assert answered is not None
    await store.append(
        change(
            run,
            closed_waits=(
                WaitUpdate("a!1", "cancelled", at_ms=T0 + 2),
                WaitUpdate("b!1", "expired", at_ms=T0 + 2),
                WaitUpdate("c!1", "answered", response=b"sig", answered_by="signal", at_ms=T0 + 2),
                WaitUpdate("no such wait", "cancelled"),
            ),
        )
    )
    assert await store.get_wait(run.id, "a!1") == answered.wait
    b, c = await store.get_wait(run.id, "b!1"), await store.get_wait(run.id, "c!1")
    assert b is not None and c is not None
    assert (b.status, b.response, b.answered_at_ms) == ("expired", None, T0 + 2)
    assert (c.status, c.response, c.answered_by) == ("answered", b"sig", "signal")
    late = await store.answer_wait(b.token_hash, b"yes", "bob", b"fact", T0 + 3)
    assert late == Answered(False, b)


async def test_the_end_of_a_run_cancels_its_open_waits(store: Store) -> None:
    run, other = await owned_run(store, "one"), await owned_run(store, "two")
    await store.append(change(run, waits=(wait("one", "a!1"), wait("one", "b!1"))))
    await store.append(change(other, waits=(wait("two", "a!1"),)))
    answered = await store.answer_wait(wait("one", "a!1").token_hash, b"yes", None, b"fact", T0)
    assert answered is not None
    await finish(store, run, "cancelled", now_ms=T0 + 4)
    assert await store.get_wait("one", "a!1") == answered.wait
    assert [found.run_id for found in await store.list_waits()] == ["two"]
    late = await store.answer_wait(wait("one", "b!1").token_hash, b"yes", None, b"fact", T0 + 5)
    assert late is not None
    assert (late.won, late.wait.status, late.wait.answered_at_ms) == (False, "cancelled", T0 + 4)


async def test_early_signals_stay_until_consumed(store: Store) -> None:
    await store.create_run(new_run("run-1"))
    first = await store.post_signal("run-1", "paid", "order-7", b'{"eur":5}', None, "shop", b"fact-1", T0 + 1)
    second = await store.post_signal("run-1", "paid", None, b"2", None, None, b"fact-2", T0 + 2)
    assert first is not None and second is not None
    signal, new = first
    assert new
    assert (signal.seq, signal.name, signal.correlation, signal.payload) == (1, "paid", "order-7", b'{"eur":5}')
    assert (signal.received_at_ms, signal.received_by, signal.consumed_by) == (T0 + 1, "shop", None)
    assert await store.unconsumed_signals("run-1") == [signal, second[0]]
    assert [row.message for row in await store.read_inbox("run-1")] == [b"fact-1", b"fact-2"]

    (run,) = await store.claim("w1", T0 + 3, LEASE_MS)
    await store.append(change(run, record(), consumed_signals=((1, "go!1"),)))
    assert [left.seq for left in await store.unconsumed_signals("run-1")] == [2]
    third = await store.post_signal("run-1", "paid", None, b"3", None, None, b"fact-3", T0 + 4)
    assert third is not None and third[0].seq == 3
    assert await store.unconsumed_signals("no such run") == []


async def test_a_signal_makes_a_sleeping_run_due(store: Store) -> None:
    run = await owned_run(store)
    await store.release(run.id, run.epoch, run.seq, None, "waiting")
    await store.post_signal(run.id, "paid", None, b"1", None, None, b"fact", T0 + 5)
    assert len(await store.claim("w2", T0 + 5, LEASE_MS)) == 1


async def test_a_repeated_dedupe_key_gives_the_first_signal(store: Store) -> None:
    run = await owned_run(store)
    await owned_run(store, "other")
    results = await asyncio.gather(
        *(store.post_signal(run.id, "paid", None, b"%d" % i, "key", None, b"fact", T0 + i) for i in range(20))
    )
    rows = [result for result in results if result is not None]
    assert sum(new for _, new in rows) == 1
    assert len({signal.payload for signal, _ in rows}) == 1
    assert len(await store.read_inbox(run.id)) == len(await store.unconsumed_signals(run.id)) == 1

    elsewhere = await store.post_signal("other", "paid", None, b"x", "key", None, b"fact", T0)
    assert elsewhere is not None and elsewhere[1]  # a key belongs to its run
    await finish(store, run)
    repeated = await store.post_signal(run.id, "paid", None, b"x", "key", None, b"fact", T0)
    assert repeated == (rows[0][0], False)  # who repeats a request gets the same reply, also once the run has ended


async def test_no_signal_for_a_run_that_ended_or_never_was(store: Store) -> None:
    run = await owned_run(store)
    await finish(store, run)
    assert await store.post_signal(run.id, "paid", None, b"1", None, None, b"fact", T0) is None
    assert await store.post_signal("no such run", "paid", None, b"1", "key", None, b"fact", T0) is None
    assert await store.unconsumed_signals(run.id) == []
