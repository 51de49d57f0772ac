"""Waits and signals as an inbox reads them: filters, pages, counts; and a person who withdraws a question."""

from __future__ import annotations

import asyncio

from executor.kernel.store.topics.store import Store
from tests.support.rows import LEASE_MS, T0, change, finish, new_run, owned_run, row, wait


async def some(store: Store) -> None:
    """one (expense): a form, an approval; two (travel): an approval, a signal that was answered."""
    one = await owned_run(store, "one")
    await store.create_run(new_run("two", T0, workflow="travel"))
    (two,) = await store.claim("w1", T0, LEASE_MS, run_id="two")
    await store.append(change(one, waits=(wait("one", "a!1", kind="form"), wait("one", "b!1", opened_at_ms=T0 + 2))))
    await store.append(change(two, waits=(wait("two", "a!1", opened_at_ms=T0 + 1), wait("two", "c!1", kind="signal"))))
    await store.answer_wait(wait("two", "c!1").token_hash, b"{}", "shop", b"fact", T0 + 3)


async def ids(store: Store, **where: object) -> list[tuple[str, str]]:
    return [(found.run_id, found.id) for found in await store.list_waits(**where)]  # type: ignore[arg-type]


async def test_waits_by_kind_and_workflow(store: Store) -> None:
    await some(store)
    assert await ids(store, kind="approval") == [("two", "a!1"), ("one", "b!1")]
    assert await ids(store, workflow="travel") == [("two", "a!1")]
    assert await ids(store, workflow="travel", status=None) == [("two", "c!1"), ("two", "a!1")]
    assert await ids(store, workflow="expense", kind="form") == [("one", "a!1")]
    assert await ids(store, workflow="none") == []


async def test_waits_of_a_node(store: Store) -> None:
    run = await owned_run(store, "r")
    opened = [wait("r", id, opened_at_ms=T0 + n) for n, id in enumerate(("a!1", "a!2", "a@l#1!1", "a2!1", "a!10"))]
    await store.append(change(run, waits=tuple(opened)))
    await store.answer_wait(opened[0].token_hash, b"{}", "ada", b"fact", T0 + 9)
    assert await ids(store, run_id="r", status=None, key="a") == [("r", "a!1"), ("r", "a!2"), ("r", "a!10")]
    assert await ids(store, run_id="r", key="a") == [("r", "a!2"), ("r", "a!10")]
    assert await ids(store, run_id="r", key="a@l#1") == [("r", "a@l#1!1")]
    assert await ids(store, run_id="r", key="a!1") == []


async def test_waits_in_pages(store: Store) -> None:
    await some(store)
    everything = await ids(store, status=None)
    assert everything == [("one", "a!1"), ("two", "c!1"), ("two", "a!1"), ("one", "b!1")]
    paged: list[tuple[str, str]] = []
    while page := await ids(store, status=None, limit=1, before=paged[-1] if paged else None):
        paged += page
    assert paged == everything
    assert await ids(store, before=("two", "c!1")) == [("two", "a!1"), ("one", "b!1")], "it need not match itself"
    assert await ids(store, before=("two", "no such wait")) == []


async def test_waits_are_counted_by_status(store: Store) -> None:
    await some(store)
    assert await store.count_waits() == {"pending": 3, "answered": 1}
    assert await store.count_waits(run_id="two") == {"pending": 1, "answered": 1}
    assert await store.count_waits(kind="signal") == {"answered": 1}
    assert await store.count_waits(workflow="expense") == {"pending": 2}
    assert await store.count_waits(workflow="none") == {}


async def test_a_wait_is_cancelled_once(store: Store) -> None:
    run = await owned_run(store)
    await store.append(change(run, waits=(wait(run.id),)))
    await store.release(run.id, run.epoch, run.seq, None, "waiting")
    first = await store.cancel_wait(run.id, "ask!1", "ada", b"fact-1", T0 + 5)
    assert first is not None and first.won
    assert (first.wait.status, first.wait.answered_by, first.wait.answered_at_ms) == ("cancelled", "ada", T0 + 5)
    assert first.wait.response is None
    assert await store.get_wait(run.id, "ask!1") == first.wait
    assert [row.message for row in await store.read_inbox(run.id)] == [b"fact-1"]
    assert (await row(store, run.id)).next_run_at_ms == T0 + 5

    again = await store.cancel_wait(run.id, "ask!1", "bob", b"fact-2", T0 + 6)
    assert again is not None and (again.won, again.wait) == (False, first.wait)
    late = await store.answer_wait(wait(run.id).token_hash, b"{}", "eve", b"fact-3", T0 + 6)
    assert late is not None and (late.won, late.wait) == (False, first.wait)
    assert not await store.expire_wait(run.id, "ask!1", b"fact-4", T0 + 6)
    assert len(await store.read_inbox(run.id)) == 1
    assert await store.cancel_wait(run.id, "no such wait", None, b"fact", T0) is None


async def test_answer_expiry_and_withdrawal_race_and_one_wins(store: Store) -> None:
    run = await owned_run(store)
    await store.append(change(run, waits=tuple(wait(run.id, f"ask!{n}") for n in range(20))))
    for n in range(20):
        token = wait(run.id, f"ask!{n}").token_hash
        answered, cancelled, expired = await asyncio.gather(
            store.answer_wait(token, b"{}", "ada", b"answer", T0),
            store.cancel_wait(run.id, f"ask!{n}", "bob", b"cancel", T0),
            store.expire_wait(run.id, f"ask!{n}", b"expire", T0),
        )
        assert answered is not None and cancelled is not None
        assert [answered.won, cancelled.won, expired].count(True) == 1
    assert len(await store.read_inbox(run.id)) == 20


async def test_signals_are_listed_with_those_that_were_consumed(store: Store) -> None:
    run = await owned_run(store)
    for n, (name, correlation) in enumerate([("paid", "o-1"), ("paid", None), ("sent", "o-1")]):
        await store.post_signal(run.id, name, correlation, b"%d" % n, None, None, b"fact", T0 + n)
    await store.append(change(run, consumed_signals=((1, "go!1"),)))

    async def seqs(**where: object) -> list[int]:
        return [signal.seq for signal in await store.list_signals(run.id, **where)]  # type: ignore[arg-type]

    assert await seqs() == [1, 2, 3]
    assert await seqs(name="paid") == [1, 2]
    assert await seqs(correlation="o-1") == [1, 3]
    assert await seqs(name="paid", correlation="o-1", limit=5) == [1]
    assert await seqs(received_after_ms=T0) == [1, 2, 3]
    assert await seqs(received_after_ms=T0 + 1) == [2, 3]
    assert await seqs(limit=2) == [1, 2]
    assert (await store.list_signals(run.id))[0].consumed_by == "go!1"
    assert await store.list_signals("no such run") == []
    await finish(store, run)
    assert await seqs() == [1, 2, 3]
