"""Deleting runs: promises 19 to 21."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import orjson
import pytest

from executor.kernel.store.run_rows import Append, NewRun
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.cache import CacheRow
from executor.kernel.store.topics.contents import USED_EVERY_MS
from executor.kernel.store.topics.outbox import NotificationRow
from executor.kernel.store.topics.snapshots import CheckpointRow
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.upkeep import Orphans
from tests.support.model_store.store import ModelStore
from tests.support.rows import LEASE_MS, LONG_AFTER, T0, change, finish, new_run, record, row, wait

DAY_MS = 86_400_000


async def ended(store: Store, id: str, at_ms: int = T0, **fields: Any) -> None:
    await store.create_run(new_run(id, at_ms, **fields))
    (run,) = await store.claim("w", at_ms, LEASE_MS, run_id=id)
    await finish(store, run, now_ms=at_ms + 10)


def big(text: str) -> bytes:
    return orjson.dumps({"blob": f"hash of {text}", "size": len(text)})


async def removable(store: Store, before_ms: int = T0 + DAY_MS, keep: int = 0) -> list[str]:
    return [run.id for run in await store.find_removable(before_ms, keep)]


async def test_only_what_ended_before_the_time_is_removable(store: Store) -> None:
    await ended(store, "old")
    await ended(store, "new", T0 + DAY_MS)
    await store.create_run(new_run("open"))
    assert await removable(store) == ["old"]
    (found,) = await store.find_removable(T0 + DAY_MS)
    assert (found.workflow, found.seq, found.finished_at_ms) == ("expense", 2, T0 + 10)
    assert await removable(store, T0 + 10) == []  # a run that ended at the time is not older
    assert await removable(store, T0 + 11) == ["old"]


async def test_the_newest_of_each_workflow_can_be_excluded(store: Store) -> None:
    for n in range(4):
        await ended(store, f"a{n}", T0 + n, workflow="a")
    await ended(store, "b0", workflow="b")
    assert await removable(store, keep=2) == ["a0", "a1"]
    assert await removable(store, keep=4) == []
    assert await removable(store, keep=1) == ["a0", "a1", "a2"]


async def test_pages_continue_after_a_run(store: Store) -> None:
    for n in range(5):
        await ended(store, f"r{n}", T0 + n)
    page = await store.find_removable(T0 + DAY_MS, limit=2)
    assert [run.id for run in page] == ["r0", "r1"]
    page = await store.find_removable(T0 + DAY_MS, limit=9, after="r1")
    assert [run.id for run in page] == ["r2", "r3", "r4"]
    assert await store.find_removable(T0 + DAY_MS, after="unknown") == []


async def test_a_kept_run_is_not_deleted_until_it_is_dropped(store: Store) -> None:
    await ended(store, "a", T0, workflow="a")
    await ended(store, "b", T0 + 1, workflow="b")
    await store.create_run(new_run("open", T0 + 2))
    assert await store.keep_run("a", b'{"note":"one"}', T0 + 20)
    assert await store.keep_run("b", b"{}", T0 + 30)
    assert await store.keep_run("a", b'{"note":"two"}', T0 + 40), "its note changes, its time does not"
    assert not await store.keep_run("open", b"{}", T0)
    assert not await store.keep_run("none", b"{}", T0)
    kept = await store.kept_runs(None, 10)
    assert [(each.run, each.workflow, each.at_ms, each.note) for each in kept] == [
        ("b", "b", T0 + 30, b"{}"),
        ("a", "a", T0 + 20, b'{"note":"two"}'),
    ]
    assert [each.run for each in await store.kept_runs("a", 10)] == ["a"]
    assert [each.run for each in await store.kept_runs(None, 1)] == ["b"]
    assert await removable(store) == []
    assert await store.delete_runs(["a", "b"]) == []
    assert await store.drop_kept_run("a")
    assert not await store.drop_kept_run("a")
    assert await removable(store) == ["a"]
    assert await store.delete_runs(["a", "b"]) == ["a"]


async def test_a_deleted_run_leaves_nothing(store: Store) -> None:
    await store.create_run(new_run("gone", idempotency_key="once", plan_hash="p1", document_hash="d", document=b"{}"))
    (run,) = await store.claim("w", T0, LEASE_MS, run_id="gone")
    notification = NotificationRow("gone", "ask!1", 1, "email", b"{}", "pending", 0, T0, T0)
    cached = CacheRow("k", "run", "expense", "gone", "b", "set", "", None, T0, T0 + DAY_MS, b"1")
    shared = CacheRow("g", "global", "expense", "gone", "b", "set", "", None, T0, T0 + DAY_MS, b"2")
    await store.append(
        change(
            run,
            record(data=big("a")),
            waits=(wait("gone"),),
            blobs=(("hash of a", b"a"),),
            notifications=(notification,),
            cached=(cached, shared),
        )
    )
    await store.put_checkpoint(run.epoch, CheckpointRow("gone", "b", 1, T0, b"1"))
    await store.post_signal("gone", "s", None, b"1", "dedupe", None, b"{}", T0)
    await finish(store, run)

    assert await store.delete_runs(["gone"]) == ["gone"]
    assert await store.get_run("gone") is None
    assert await store.read_events("gone") == []
    assert await store.list_waits(None, "gone") == []
    assert await store.find_wait("hash of gone/ask!1") is None
    assert await store.read_inbox("gone") == []
    assert await store.list_signals("gone") == []
    assert await store.list_notifications([("gone", "ask!1")]) == []
    assert await store.get_checkpoint("gone", "b") is None
    assert await store.find_cached("k", T0) is None
    assert await store.find_cached("g", T0) == shared
    assert await store.delete_runs(["gone"]) == []

    assert await store.count_orphans(LONG_AFTER) == Orphans(plans=1, documents=1, blobs=1)
    assert await store.delete_orphans(LONG_AFTER) == Orphans(1, 1, 1)
    assert await store.delete_orphans(LONG_AFTER) == Orphans()
    assert await store.get_plan("p1") is None
    assert await store.get_document("d") is None
    assert await store.get_blob("hash of a") is None
    again, created = await store.create_run(new_run("next", idempotency_key="once"))
    assert created and again.id == "next"


async def test_what_another_run_refers_to_stays(store: Store) -> None:
    for id in ("one", "two"):
        await store.create_run(new_run(id, plan_hash="p", document_hash="d", document=b"{}"))
        (run,) = await store.claim("w", T0, LEASE_MS, run_id=id)
        await store.append(change(run, record(data=big("a")), blobs=(("hash of a", b"a"),)))
        await finish(store, run)
    # A run may begin with records copied from another one, whose blobs it does not bring along.
    await ended(store, "copy", plan_hash="p", records=(record("run.started", None), record(data=big("a"))))
    for id in ("one", "two"):
        await store.delete_runs([id])
        assert await store.delete_orphans(LONG_AFTER) == Orphans(0, int(id == "two"), 0)
        assert await store.get_blob("hash of a") == b"a"
    await store.delete_runs(["copy"])
    assert await store.delete_orphans(LONG_AFTER) == Orphans(1, 0, 1)


async def test_a_plan_that_a_run_is_still_to_move_to_stays(store: Store) -> None:
    await store.create_run(new_run("moves"))
    await store.put_plan("next", b"a plan", T0)
    assert await store.post_message("moves", b"a signal", T0)
    assert await store.post_message("moves", b"move", T0, "next")
    assert (await store.count_orphans(LONG_AFTER), await store.delete_orphans(LONG_AFTER)) == (Orphans(), Orphans())
    assert await store.get_plan("next") == b"a plan"
    (run,) = await store.claim("w", T0, LEASE_MS)
    await store.append(change(run, consumed_inbox=(2,)))  # refused
    assert await store.delete_orphans(LONG_AFTER) == Orphans(plans=1)


async def test_what_was_used_lately_stays(store: Store) -> None:
    """A run may be about to begin with it."""
    await store.put_plan("p", b"a plan", T0)
    await store.create_run(new_run("gone", T0, plan_hash="p", document_hash="d", document=b"{}", blobs=(("b", b"1"),)))
    (run,) = await store.claim("w", T0, LEASE_MS)
    await finish(store, run)
    await store.delete_runs(["gone"])
    assert await store.count_orphans(T0) == await store.delete_orphans(T0) == Orphans()
    assert await store.get_plan("p") == b"a plan"
    assert await store.count_orphans(T0 + 1) == await store.delete_orphans(T0 + 1) == Orphans(1, 1, 1)


async def test_a_use_is_noted_at_most_every_ten_minutes(store: Store) -> None:
    """So a deletion must look back further than that."""
    late = T0 + USED_EVERY_MS + 1
    for hash, again in (("soon", T0 + USED_EVERY_MS), ("late", late)):
        await store.put_plan(hash, b"a plan", T0)
        await store.put_plan(hash, b"a plan", again)
        document = {"document_hash": f"{hash} too", "plan_hash": hash}
        for id, now, content in ((f"{hash}1", T0, b"{}"), (f"{hash}2", again, None)):
            await store.create_run(new_run(id, now, **document, document=content))
            (run,) = await store.claim("w", now, LEASE_MS, run_id=id)
            await finish(store, run)
        await store.delete_runs([f"{hash}1", f"{hash}2"])
    assert await store.delete_orphans(late) == Orphans(plans=1, documents=1)
    assert await store.get_plan("late") is not None
    assert await store.get_document("late too") is not None
    assert await store.delete_orphans(late + 1) == Orphans(plans=1, documents=1)


async def test_open_runs_are_never_deleted(store: Store) -> None:
    await store.create_run(new_run("queued"))
    await store.create_run(new_run("claimed"))
    await store.claim("w", T0, LEASE_MS, run_id="claimed")
    assert await store.delete_runs(["queued", "claimed", "unknown"]) == []
    assert (await row(store, "claimed")).status == "running"


async def test_a_child_goes_after_its_parent(store: Store) -> None:
    await store.create_run(new_run("parent"))
    (parent,) = await store.claim("w", T0, LEASE_MS, run_id="parent")
    child = new_run("child", parent_run_id="parent", parent_key="call!1")
    await store.append(change(parent, record("wait.opened"), children=(child,)))
    await finish(store, parent)
    assert await removable(store) == []  # the child is still open
    assert await store.delete_runs(["parent"]) == []
    (run,) = await store.claim("w", T0, LEASE_MS, run_id="child")
    await finish(store, run)
    assert await removable(store) == ["parent"]
    assert await store.delete_runs(["child", "parent"]) == ["parent"]
    assert await removable(store, keep=5) == ["child"]  # what is kept is counted without children
    assert await store.delete_runs(["child"]) == ["child"]


async def test_a_run_stays_while_an_open_run_takes_over_its_results(store: Store) -> None:
    await ended(store, "source")
    await store.create_run(new_run("again", source_run_id="source"))
    await store.create_run(new_run("other"))  # reads outputs of none
    assert await removable(store) == []
    assert await store.delete_runs(["source"]) == []
    (run,) = await store.claim("w", T0, LEASE_MS, run_id="again")
    await finish(store, run)
    assert await store.delete_runs(["source"]) == ["source"]


async def test_a_run_stays_for_one_that_is_created_in_the_same_group_of_writes(store: Store) -> None:
    await ended(store, "source")
    creation = store.create_run(new_run("again", sources=("source",), source_run_id="source"))
    created, gone = await asyncio.gather(creation, store.delete_runs(["source"]))
    assert created[1]
    assert gone == []
    assert (await row(store, "source")).status == "succeeded"


async def test_a_run_that_ends_takes_nothing_more(store: Store) -> None:
    await store.create_run(new_run("run"))
    (run,) = await store.claim("w", T0, LEASE_MS, run_id="run")
    assert await store.post_message("run", b'{"type":"cancel"}', T0)
    await finish(store, run)
    assert await store.read_inbox("run") == []


@pytest.mark.parametrize("seed", range(6))
async def test_both_backends_delete_the_same(seed: int, tmp_path: Path) -> None:
    endings = []
    for store in (ModelStore(), SQLiteStore(tmp_path / "weft.db")):
        await store.open()
        endings.append(await _story(store, random.Random(seed)))
        await store.close()
    assert endings[0] == endings[1]


async def _story(store: Store, chance: random.Random) -> list[Any]:
    """Draws never depend on a reply."""
    replies: list[Any] = []
    for step in range(120):
        now, id, other = T0 + step, f"r{chance.randrange(30)}", f"r{chance.randrange(30)}"
        keep, name = chance.randrange(3), chance.choice("ab")
        match chance.randrange(5):
            case 0 | 1 if await store.get_run(id) is None:
                fields: dict[str, Any] = {"plan_hash": f"p{chance.randrange(4)}"}
                if chance.random() < 0.3:
                    fields |= {"parent_run_id": other, "parent_key": f"k{step}"}
                if chance.random() < 0.3:
                    fields |= {"source_run_id": other, "records": (record("run.started", None), record(data=big(name)))}
                await store.create_run(_new(id, now, name, fields))
            case 2 | 3:
                for run in await store.claim("w", now, LEASE_MS, run_id=id):
                    blob = (f"hash of {name}", name.encode())
                    await store.append(_append(run.id, run.epoch, run.seq, now, name, blob))
            case _:
                found = await store.find_removable(now, keep, limit=3)
                replies.append(found)
                replies.append(await store.delete_runs([run.id for run in found] + [id]))
                since = now - chance.randrange(60)
                replies.append(await store.count_orphans(since))
                if chance.random() < 0.5:
                    replies.append(await store.delete_orphans(since))
    return [*replies, await store.list_runs(), [await store.get_plan(f"p{n}") for n in range(4)]]


def _new(id: str, now: int, workflow: str, fields: dict[str, Any]) -> NewRun:
    return new_run(id, now, workflow, **fields)


def _append(run: str, epoch: int, seq: int, now: int, name: str, blob: tuple[str, bytes]) -> Append:
    end = record("run.finished", None, now)
    return Append(run, epoch, seq, (record(data=big(name)), end), now, blobs=(blob,), status="succeeded", finished=True)


async def test_one_process_deletes_old_runs(store: Store) -> None:
    for _ in range(2):
        async with store.deleting() as alone:
            assert alone
