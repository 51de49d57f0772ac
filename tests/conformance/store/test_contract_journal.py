"""Promises 2, 3, 4 and 8: the journal is dense, fenced, all or nothing, and keeps bytes as they are."""

from __future__ import annotations

import asyncio

import pytest

from executor.errors import Conflict, Fenced
from executor.kernel.store.run_rows import Appended, EventFilter, Record, RunRow
from executor.kernel.store.topics.store import Store
from tests.support.rows import LEASE_MS, T0, change, finish, new_run, owned_run, record, row, wait


async def test_seq_is_dense_from_one(store: Store) -> None:
    run = await owned_run(store)
    assert run.seq == 1
    assert (await store.append(change(run, record(), record("node.started")))).seq == 3
    assert (await store.append(change(run, record(), expected_seq=3))).seq == 4

    assert [event.seq for event in await store.read_events(run.id)] == [1, 2, 3, 4]
    assert [event.seq for event in await store.read_events(run.id, after=2)] == [3, 4]
    assert [event.seq for event in await store.read_events(run.id, after=1, limit=2)] == [2, 3]
    assert await store.read_events(run.id, after=4) == []
    assert await store.read_events("no such run") == []
    assert (await row(store, run.id)).seq == 4


async def test_records_come_back_as_they_went_in(store: Store) -> None:
    run = await owned_run(store)
    odd = bytes(range(256))
    sent = record("node.failed", "send", T0 + 5, path="review#3/fan[2]", data=b"", output=odd)
    await store.append(change(run, sent, record("run.parked", None, data=None, output=None)))
    first, second = await store.read_events(run.id, after=1)
    assert (first.type, first.node, first.path, first.attempt) == ("node.failed", "send", "review#3/fan[2]", 1)
    assert (first.at_ms, first.data, first.output) == (T0 + 5, b"", odd)
    assert (second.node, second.data, second.output) == (None, None, None)


async def test_a_wrong_seq_is_fenced_and_nothing_is_written(store: Store) -> None:
    run = await owned_run(store)
    before = await row(store, run.id)
    for wrong in (0, 2, 100):
        with pytest.raises(Fenced):
            await store.append(
                change(
                    run,
                    record(),
                    expected_seq=wrong,
                    waits=(wait(run.id),),
                    blobs=(("sha", b"big"),),
                    status="failed",
                    error=b"{}",
                    finished=True,
                )
            )
    assert await row(store, run.id) == before
    assert len(await store.read_events(run.id)) == 1
    assert await store.list_waits(run_id=run.id) == []
    assert await store.get_blob("sha") is None


async def test_an_older_epoch_is_fenced(store: Store) -> None:
    old = await owned_run(store, owner="w1")
    (new,) = await store.claim("w2", T0 + LEASE_MS, LEASE_MS)
    assert (new.id, new.epoch) == (old.id, old.epoch + 1)
    with pytest.raises(Fenced):
        await store.append(change(old, record()))
    assert (await store.append(change(new, record()))).seq == 2


async def test_a_lapsed_lease_that_was_not_claimed_still_writes(store: Store) -> None:
    run = await owned_run(store)
    assert (await store.append(change(run, record(), now_ms=T0 + 10 * LEASE_MS))).seq == 2


async def test_an_append_to_no_run_is_fenced(store: Store) -> None:
    run = await owned_run(store)
    await store.create_run(new_run("other"))
    with pytest.raises(Fenced):
        await store.append(change(await row(store, "other"), record(), epoch=1))
    with pytest.raises(Fenced):
        await store.append(change(run, record(), epoch=run.epoch + 1))


async def test_an_ended_run_takes_no_more_events(store: Store) -> None:
    run = await owned_run(store)
    await finish(store, run)
    with pytest.raises(Fenced):
        await store.append(change(await row(store, run.id), record()))
    assert (await row(store, run.id)).status == "succeeded"


async def test_of_many_writers_of_one_seq_one_wins(store: Store) -> None:
    run = await owned_run(store)
    results = await asyncio.gather(
        *(store.append(change(run, record(data=b"%d" % i))) for i in range(20)), return_exceptions=True
    )
    assert sorted(str(type(result).__name__) for result in results) == ["Appended"] + ["Fenced"] * 19
    winner = next(i for i, result in enumerate(results) if result == Appended(2, 0))
    assert [event.data for event in await store.read_events(run.id, after=1)] == [b"%d" % winner]


async def test_a_fenced_append_harms_none_of_its_neighbours(store: Store) -> None:
    runs = [await owned_run(store, f"run-{i}") for i in range(10)]
    results = await asyncio.gather(
        *(store.append(change(run, record(), expected_seq=1 if i % 2 else 7)) for i, run in enumerate(runs)),
        return_exceptions=True,
    )
    assert [isinstance(result, Fenced) for result in results] == [i % 2 == 0 for i in range(10)]
    assert [(await row(store, run.id)).seq for run in runs] == [1, 2] * 5


async def test_a_refused_append_harms_none_of_its_neighbours(store: Store) -> None:
    runs = [await owned_run(store, f"run-{i}") for i in range(3)]
    await store.append(change(runs[0], record(), waits=(wait("run-0"),)))
    results = await asyncio.gather(
        store.append(change(runs[1], record())),
        store.append(change(runs[0], record(), expected_seq=2, waits=(wait("run-0"),))),
        store.append(change(runs[2], record())),
        return_exceptions=True,
    )
    assert (results[0], results[2]) == (Appended(2, 0), Appended(2, 0))
    assert isinstance(results[1], Conflict)
    assert [(await row(store, run.id)).seq for run in runs] == [2, 2, 2]
    assert len(await store.read_events("run-0")) == 2


async def test_append_changes_the_run(store: Store) -> None:
    run = await owned_run(store)
    assert run.stalls == 1
    await store.append(change(run, record(), status="waiting"))
    now = await row(store, run.id)
    assert (now.status, now.stalls, now.finished_at_ms, now.lease_owner) == ("waiting", 0, None, "w1")

    end = change(now, record(), status="failed", output=b"null", error=b'{"code":"x"}', finished=True, now_ms=T0 + 9)
    await store.append(end)
    now = await row(store, run.id)
    assert (now.status, now.output, now.error, now.finished_at_ms) == ("failed", b"null", b'{"code":"x"}', T0 + 9)
    assert (now.lease_owner, now.lease_until_ms, now.next_run_at_ms) == (None, None, None)
    assert await store.claim("w2", T0 + 10**9, LEASE_MS) == []


async def test_output_and_error_stay_until_replaced(store: Store) -> None:
    run = await owned_run(store)
    await store.append(change(run, record(), output=b"1"))
    await store.append(change(run, record(), expected_seq=2, error=b"2"))
    await store.append(change(run, record(), expected_seq=3))
    now = await row(store, run.id)
    assert (now.output, now.error, now.status) == (b"1", b"2", "running")


async def test_blobs_are_stored_once_by_hash(store: Store) -> None:
    run = await owned_run(store)
    big = bytes(range(256)) * 2000
    await store.append(change(run, blobs=(("sha-big", big), ("sha-empty", b""))))
    await store.append(change(run, blobs=(("sha-big", big),)))
    assert await store.get_blob("sha-big") == big
    assert await store.get_blob("sha-empty") == b""
    assert await store.get_blob("sha-none") is None


async def test_find_events_filters_and_counts(store: Store) -> None:
    run = await owned_run(store)
    await store.append(
        change(
            run,
            record("node.started", "a", T0 + 1),
            record("node.succeeded", "a", T0 + 2, path="review#0"),
            record("node.started", "b", T0 + 3),
            record("node.succeeded", "a", T0 + 4, path="review#1"),
            record("node.failed", "b", T0 + 5),
        )
    )

    async def found(**where: object) -> tuple[list[int], int]:
        page, count = await store.find_events(run.id, EventFilter(**where))  # type: ignore[arg-type]
        return [event.seq for event in page], count

    assert await found() == ([1, 2, 3, 4, 5, 6], 6)
    assert await found(node="a") == ([2, 3, 5], 3)
    assert await found(node="a", path="review#1") == ([5], 1)
    assert await found(node="a", path="") == ([2], 1)
    assert await found(types=("node.failed", "node.started")) == ([2, 4, 6], 3)
    assert await found(node="a", types=("node.succeeded",)) == ([3, 5], 2)
    assert await found(since_ms=T0 + 3) == ([4, 5, 6], 3)
    assert await found(node="a", since_ms=T0 + 2, types=("node.succeeded",), after=3) == ([5], 2)
    assert await found(after=2, limit=2) == ([3, 4], 6)
    assert await found(after=6) == ([], 6)
    assert await found(node="unknown") == ([], 0)
    assert await found(types=("node.started",), after=2) == ([4], 2)
    assert await found(types=("node.started",), limit=1) == ([2], 2)
    assert await found(types=("node.started", "node.started")) == ([2, 4], 2)
    assert await found(types=("node.failed",), after=6) == ([], 1)
    assert await found(types=('no"such',)) == ([], 0)
    page, _ = await store.find_events(run.id, EventFilter(after=2, limit=1))
    assert page == await store.read_events(run.id, after=2, limit=1)
    for nothing in (EventFilter(), EventFilter(types=("node.started",))):
        assert await store.find_events("no such run", nothing) == ([], 0)


async def test_a_node_with_the_name_of_a_type_is_not_an_event_of_it(store: Store) -> None:
    run = await owned_run(store)
    names = ("node.started", "node.succeeded")
    for _ in range(3):
        run = await appended(store, run, *(record(type, node) for type in names for node in (*names, "a")))
    for type in names:
        all = [event.seq for event in await store.read_events(run.id) if event.type == type]
        assert len(all) == 9
        for after in range(20):
            for limit in (1, 2, 5, 100):
                page, count = await store.find_events(run.id, EventFilter(after, limit, types=(type,)))
                assert ([event.seq for event in page], count) == ([seq for seq in all if seq > after][:limit], 9)
        page, count = await store.find_events(run.id, EventFilter(types=(type,), newest=True))
        assert ([event.seq for event in page], count) == (all[-1:], 1)
    assert await store.find_events(run.id, EventFilter(types=("node.failed",), newest=True)) == ([], 0)


async def appended(store: Store, run: RunRow, *records: Record) -> RunRow:
    """The row of the run behind these."""
    await store.append(change(run, *records))
    row = await store.get_run(run.id)
    assert row is not None
    return row
