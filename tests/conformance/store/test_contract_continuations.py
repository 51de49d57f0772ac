"""Runs that continue others: made with the end of the run before."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from executor.errors import Fenced, Unheard
from executor.kernel.store.run_rows import NewRun, RunRow, new_row
from executor.kernel.store.topics.store import Store
from tests.support.rows import LEASE_MS, T0, change, new_run, owned_run, placed, record, row

LATER = T0 + 1_000


def ending(run: RunRow, after: NewRun, **fields: Any) -> Any:
    end = record("run.finished", None)
    return change(run, end, status="succeeded", output=b"null", finished=True, next=after, **fields)


async def test_the_next_run_comes_with_the_end_and_waits_for_its_time(store: Store) -> None:
    run = await owned_run(store)
    await store.append(ending(run, new_run("next", due_ms=LATER)))
    assert (await row(store, run.id)).status == "succeeded"
    made = await row(store, "next")
    assert (made.status, made.seq, made.created_at_ms, made.next_run_at_ms) == ("queued", 1, T0, LATER)
    assert (made.parent_run_id, made.root_id, made.idempotency_key) == (None, None, None)
    assert await store.next_due() == LATER
    assert await store.claim("w2", LATER - 1, LEASE_MS) == []
    assert await store.claim("w2", LATER - 1, LEASE_MS, run_id="next") == []
    (claimed,) = await store.claim("w2", LATER, LEASE_MS)
    assert (claimed.id, claimed.status, claimed.epoch) == ("next", "running", 1)


async def test_without_a_time_it_is_due_at_once(store: Store) -> None:
    await store.append(ending(await owned_run(store), new_run("next")))
    assert [found.id for found in await store.claim("w2", T0, LEASE_MS)] == ["next"]


async def test_it_has_the_priority_of_the_run_before(store: Store) -> None:
    await store.create_run(placed("urgent", T0, priority=9))
    (run,) = await store.claim("w1", T0, LEASE_MS, run_id="urgent")
    await store.create_run(placed("other", T0, priority=5))
    await store.append(ending(run, placed("urgent-2", T0, priority=1)))
    assert [found.id for found in await store.claim("w2", T0, LEASE_MS, limit=2)] == ["urgent-2", "other"]


async def test_an_end_that_is_refused_makes_none(store: Store) -> None:
    run = await owned_run(store)
    with pytest.raises(Fenced):
        await store.append(ending(run, new_run("next"), epoch=0))
    await store.cancel_run(run.id, b"stop", T0)
    with pytest.raises(Unheard):
        await store.append(ending(run, new_run("next")))
    assert await store.get_run("next") is None
    assert (await row(store, run.id)).status == "running"


async def test_what_it_begins_with_is_stored_and_read(store: Store) -> None:
    run = await owned_run(store)
    started = record("run.started", None, data=orjson.dumps({"run": "next", "continues": run.id}))
    after = new_run("next", plan_hash="plan-2", plan=b'{"plan":2}', records=(started,), input=b'{"n":2}')
    await store.append(ending(run, after))
    assert await store.get_plan("plan-2") == b'{"plan":2}'
    (first,) = await store.read_events("next")
    assert (first.type, orjson.loads(first.data or b"")["continues"]) == ("run.started", run.id)
    assert (await row(store, "next")).input == b'{"n":2}'


async def test_a_run_may_begin_and_end_with_a_next_one_in_one_change(store: Store) -> None:
    new = new_run("first")
    first = ending(replace(new_row(new, None), epoch=1), new_run("next", due_ms=LATER))
    await store.begin_run(new, "w1", LEASE_MS, first)
    assert (await row(store, "first")).status == "succeeded"
    assert (await row(store, "next")).status == "queued"


async def test_signals_that_were_not_received_go_on(store: Store) -> None:
    run = await owned_run(store)
    for number, name in enumerate(("go", "other", "go"), 1):
        sent = await store.post_signal(run.id, name, f"c{number}", str(number).encode(), f"d{number}", "ada", b"m", T0)
        assert sent is not None
    messages = tuple(message.n for message in await store.read_inbox(run.id))
    after = new_run("next", due_ms=LATER)
    await store.append(ending(run, after, consumed_inbox=messages, consumed_signals=((1, "ask!1"),)))
    told = [
        (signal.run_id, signal.seq, signal.name, signal.correlation, signal.payload, signal.dedupe_key)
        for signal in await store.unconsumed_signals("next")
    ]
    assert told == [("next", 1, "other", "c2", b"2", "d2"), ("next", 2, "go", "c3", b"3", "d3")]
    assert [signal.seq for signal in await store.list_signals(run.id)] == [1, 2, 3], "that they came is not forgotten"
    again = await store.post_signal("next", "go", "c3", b"3", "d3", "ada", b"m", T0)
    assert again is not None and not again[1]
