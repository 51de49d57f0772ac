"""Promises 23 and 24: runs that are made from other runs, and runs that move to another plan."""

from __future__ import annotations

import pytest

from executor.errors import Fenced, NotFound
from executor.kernel.store.run_rows import Move
from executor.kernel.store.topics.inbox import SignalRow
from executor.kernel.store.topics.store import Store
from tests.support.rows import LONG_AFTER, T0, change, finish, new_run, owned_run, record, row, wait


async def test_a_copied_run_has_its_records_waits_and_blobs_from_the_start(store: Store) -> None:
    source = await owned_run(store)
    await store.append(change(source, record(), waits=(wait("run-1"),), blobs=(("old", b"shared"),)))
    shared, own = record(data=b'{"blob":"old","size":6}'), record(data=b'{"blob":"new","size":4}')
    closed = wait("fork", "nap!1", token_hash="t2")
    made, created = await store.create_run(
        new_run(
            "fork",
            T0 + 5,
            records=(record("run.started", None), shared, own, record("run.forked", None)),
            sources=("run-1",),
            waits=(wait("fork"), closed),
            blobs=(("new", b"mine"),),
        )
    )
    assert (created, made.seq, made.status, made.next_run_at_ms) == (True, 4, "queued", T0 + 5)
    assert [(r.seq, r.at_ms) for r in await store.read_events("fork")] == [(1, T0), (2, T0), (3, T0), (4, T0)]
    assert {w.id for w in await store.list_waits(run_id="fork")} == {"ask!1", "nap!1"}
    found = await store.find_wait("t2")
    assert found is not None and (found.run_id, found.id) == ("fork", "nap!1")
    assert (await store.get_blob("old"), await store.get_blob("new")) == (b"shared", b"mine")
    assert {w.id for w in await store.list_waits(run_id="run-1")} == {"ask!1"}


async def test_shared_blobs_outlive_the_run_they_came_from(store: Store) -> None:
    source = await owned_run(store)
    big = record(data=b'{"blob":"old","size":6}')
    await store.append(change(source, big, blobs=(("old", b"shared"),)))
    await store.create_run(new_run("fork", records=(record("run.started", None), big), sources=("run-1",)))
    await finish(store, source)
    assert await store.delete_runs(["run-1"]) == ["run-1"]
    await store.delete_orphans(LONG_AFTER)
    assert await store.get_blob("old") == b"shared"


async def test_there_is_no_copy_of_a_run_that_is_gone(store: Store) -> None:
    with pytest.raises(NotFound):
        await store.create_run(new_run("fork", sources=("run-1",), waits=(wait("fork"),)))
    assert await store.get_run("fork") is None
    assert await store.list_waits() == []


async def test_all_sources_must_be_there(store: Store) -> None:
    await store.create_run(new_run("run-1"))
    with pytest.raises(NotFound, match="'run-2'"):
        await store.create_run(new_run("fork", sources=("run-1", "run-2")))
    assert await store.get_run("fork") is None


async def test_a_copied_run_has_its_signals_from_the_start(store: Store) -> None:
    await store.create_run(new_run("run-1"))
    taken = SignalRow("fork", 1, "go", None, b"1", "key-1", T0, "ada", "ask!1")
    kept = SignalRow("fork", 2, "go", "o-1", b"2", None, T0 + 1, None)
    await store.create_run(new_run("fork", sources=("run-1",), signals=(taken, kept)))
    assert await store.list_signals("fork") == [taken, kept]
    assert await store.unconsumed_signals("fork") == [kept]
    assert await store.list_signals("run-1") == []
    again = await store.post_signal("fork", "go", None, b"3", "key-1", None, b"fact", T0 + 2)
    assert again == (taken, False)
    posted = await store.post_signal("fork", "go", None, b"3", None, None, b"fact", T0 + 2)
    assert posted is not None and (posted[0].seq, posted[1]) == (3, True)


async def test_a_run_moves_in_the_append_that_says_so(store: Store) -> None:
    run = await owned_run(store)
    await store.put_plan("plan-2", b"{}", T0)
    await store.put_plan("plan-2", b"{}", T0)
    assert await store.get_plan("plan-2") == b"{}"
    moved = Move(2, "plan-3", b'{"plan":3}')
    with pytest.raises(Fenced):
        await store.append(change(run, record("run.migrated", None), epoch=run.epoch - 1, move=moved))
    assert (await row(store, run.id)).plan_hash == "plan-1"
    assert await store.get_plan("plan-3") is None

    await store.append(change(run, record("run.migrated", None), move=moved))
    after = await row(store, run.id)
    assert (after.plan_hash, after.version, after.seq, after.epoch) == ("plan-3", 2, 2, run.epoch)
    assert await store.get_plan("plan-3") == b'{"plan":3}'
