"""Runs that other runs started: made with their wait, told of with their end, seen from above."""

from __future__ import annotations

from typing import Any

import pytest

from executor.errors import Conflict, Fenced
from executor.kernel.store.run_rows import NewRun, RunRow
from executor.kernel.store.topics.store import Store
from tests.support.rows import LEASE_MS, T0, change, finish, new_run, owned_run, record, row, wait


def child(parent: RunRow, id: str, key: str = "call!1", now_ms: int = T0, **fields: Any) -> NewRun:
    return new_run(id, now_ms, parent_run_id=parent.id, parent_key=key, **fields)


async def start_child(store: Store, parent: RunRow, id: str, key: str = "call!1", now_ms: int = T0) -> RunRow:
    """The child, claimed; `parent` keeps its lease."""
    current = await row(store, parent.id)
    opened = wait(parent.id, key, kind="child")
    made = child(parent, id, key, now_ms)
    await store.append(change(current, record("wait.opened"), waits=(opened,), children=(made,)))
    (claimed,) = await store.claim("w2", now_ms, LEASE_MS, run_id=id)
    return claimed


async def test_a_child_comes_with_its_wait(store: Store) -> None:
    parent = await owned_run(store)
    await store.append(
        change(parent, record(), waits=(wait(parent.id, "call!1", kind="child"),), children=(child(parent, "c1"),))
    )
    made = await row(store, "c1")
    assert (made.status, made.parent_run_id, made.parent_key, made.seq) == ("queued", parent.id, "call!1", 1)
    assert made.next_run_at_ms == T0
    assert [record.type for record in await store.read_events("c1")] == ["run.started"]
    assert await store.get_plan("plan-1") == b'{"plan":1}'
    assert [run.id for run in await store.claim("w2", T0, LEASE_MS)] == ["c1"]


async def test_a_fenced_append_makes_no_child_and_posts_nothing(store: Store) -> None:
    parent, other = await owned_run(store), await owned_run(store, "run-2")
    stale = change(parent, record(), epoch=0, children=(child(parent, "c1"),), posts=((other.id, b"fact"),))
    with pytest.raises(Fenced):
        await store.append(stale)
    assert await store.get_run("c1") is None
    assert await store.read_inbox(other.id) == []


async def test_a_wait_has_one_child(store: Store) -> None:
    parent = await owned_run(store)
    await start_child(store, parent, "c1")
    current = await row(store, parent.id)
    with pytest.raises(Conflict):
        await store.append(change(current, record(), children=(child(parent, "c2"),)))
    assert await store.get_run("c2") is None
    assert (await row(store, parent.id)).seq == current.seq
    await start_child(store, parent, "c3", "call!2")  # the next attempt


async def test_the_end_of_a_child_is_in_the_inbox_of_its_parent(store: Store) -> None:
    parent = await owned_run(store)
    owned = await start_child(store, parent, "c1")
    current = await row(store, parent.id)
    assert await store.release(parent.id, current.epoch, current.seq, None, "waiting")
    assert await store.claim("w3", T0 + 9, LEASE_MS, run_id=parent.id) == []
    end = change(owned, record(), status="succeeded", finished=True, posts=((parent.id, b"over"),), now_ms=T0 + 9)
    await store.append(end)
    assert [row.message for row in await store.read_inbox(parent.id)] == [b"over"]
    assert (await row(store, parent.id)).next_run_at_ms == T0 + 9
    assert [run.id for run in await store.claim("w3", T0 + 9, LEASE_MS)] == [parent.id]


async def test_a_fact_keeps_the_owner_from_going_to_sleep(store: Store) -> None:
    parent = await owned_run(store)
    owned = await start_child(store, parent, "c1")
    current = await row(store, parent.id)
    await store.append(change(owned, record(), status="failed", finished=True, posts=((parent.id, b"over"),)))
    assert not await store.release(parent.id, current.epoch, current.seq, None, "waiting")


async def test_a_run_that_has_ended_gets_no_message(store: Store) -> None:
    parent = await owned_run(store)
    owned = await start_child(store, parent, "c1")
    await finish(store, parent)
    posts = ((parent.id, b"over"), ("no such run", b"over"))
    await store.append(change(owned, record(), status="cancelled", finished=True, posts=posts))
    assert await store.read_inbox(parent.id) == []
    assert (await row(store, "c1")).status == "cancelled"


async def test_children_newest_first(store: Store) -> None:
    parent = await owned_run(store)
    for n in range(3):
        await start_child(store, parent, f"c{n}", f"call@fan[{n}]!1", T0 + n)
    await finish(store, await row(store, "c1"), now_ms=T0 + 50)
    listed = await store.list_children(parent.id)
    assert [(c.id, c.parent_key, c.status, c.finished_at_ms) for c in listed] == [
        ("c2", "call@fan[2]!1", "running", None),
        ("c1", "call@fan[1]!1", "succeeded", T0 + 50),
        ("c0", "call@fan[0]!1", "running", None),
    ]
    assert [(c.workflow, c.version, c.parent_run_id, c.created_at_ms) for c in listed[:1]] == [
        ("expense", 1, parent.id, T0 + 2)
    ]
    assert [c.id for c in await store.list_children(parent.id, limit=2)] == ["c2", "c1"]
    assert await store.list_children("c0") == []
    assert [run.id for run in await store.list_runs(parent=parent.id)] == ["c2", "c1", "c0"]
    assert [run.id for run in await store.list_runs(status="running", parent=parent.id)] == ["c2", "c0"]
    assert await store.list_runs(parent="c0") == []


async def test_ancestors_from_the_inside_out(store: Store) -> None:
    run = await owned_run(store, "r0")
    for depth in range(1, 5):
        run = await start_child(store, run, f"r{depth}")
    assert await store.list_ancestors("r4") == ["r3", "r2", "r1", "r0"]
    assert await store.list_ancestors("r4", limit=2) == ["r3", "r2"]
    assert await store.list_ancestors("r0") == []
    assert await store.list_ancestors("none") == []


async def test_what_is_open_below(store: Store) -> None:
    top = await owned_run(store, "top")
    middle = await start_child(store, top, "middle")
    low = await start_child(store, middle, "low")
    other = await start_child(store, top, "other", "call!2")
    assert await store.count_active_below("top", T0) == 3
    assert await store.list_waits_below("top") == []
    asked = wait("low", "ask!1", opened_at_ms=T0 + 5)
    await store.append(change(await row(store, "low"), record("wait.opened"), waits=(asked,)))
    await store.append(change(other, record(), waits=(wait("other", "sign!1", opened_at_ms=T0 + 2),)))
    assert [(w.run_id, w.id) for w in await store.list_waits_below("top")] == [("other", "sign!1"), ("low", "ask!1")]
    assert await store.list_waits_below("middle") == [asked]
    assert len(await store.list_waits_below("top", limit=1)) == 1
    for run, due_ms in (("low", None), ("other", T0 + 60), ("middle", None)):
        current = await row(store, run)
        assert await store.release(run, current.epoch, current.seq, due_ms, "waiting")
    assert await store.count_active_below("top", T0) == 0
    assert await store.count_active_below("top", T0 + 60) == 1  # its timer is due
    await store.post_message("low", b"answer", T0)
    assert await store.count_active_below("top", T0) == 1
    (claimed,) = await store.claim("w", T0, LEASE_MS, run_id="low")
    await finish(store, claimed)
    assert [(w.run_id, w.id) for w in await store.list_waits_below("top")] == [("other", "sign!1")]
    assert await store.count_active_below("top", T0) == 0
    assert low.parent_run_id == "middle"
