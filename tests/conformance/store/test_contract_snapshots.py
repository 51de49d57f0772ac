"""Snapshots: the last of each run, written with an append or a release, and only if that is."""

from __future__ import annotations

from typing import Any

import pytest

from executor.errors import Fenced
from executor.kernel.store.run_rows import Append, Move, RunRow
from executor.kernel.store.topics.snapshots import SNAPSHOT_SEQ_MIN, SnapshotRow
from executor.kernel.store.topics.store import Store
from tests.support.rows import LEASE_MS, T0, finish, owned_run, record

LONG = SNAPSHOT_SEQ_MIN


def snapshot(seq: int = LONG, **fields: Any) -> SnapshotRow:
    whole: dict[str, Any] = {
        "format": 1,
        "code": "abc",
        "plan_hash": "h",
        "checksum": 2**32 - 1,
        "data": b"\x00\xff as it came",
    }
    return SnapshotRow(seq, **whole | fields)


async def append(store: Store, run: RunRow, seq: int, count: int = 1, **fields: Any) -> int:
    await store.append(Append(run.id, run.epoch, seq, (record(),) * count, T0, **fields))
    return seq + count


async def long_run(store: Store, id: str = "run-1") -> tuple[RunRow, int]:
    run = await owned_run(store, id)
    return run, await append(store, run, run.seq, LONG)


async def test_the_last_one_of_a_run_stays(store: Store) -> None:
    run, seq = await long_run(store)
    assert await store.get_snapshot("run-1") is None
    seq = await append(store, run, seq, snapshot=snapshot())
    assert await store.get_snapshot("run-1") == snapshot()
    seq = await append(store, run, seq)
    assert await store.get_snapshot("run-1") == snapshot()
    newer = snapshot(seq, data=b"", code="", checksum=0)
    assert await store.release("run-1", run.epoch, seq, None, "waiting", newer)
    assert await store.get_snapshot("run-1") == newer
    assert await store.get_snapshot("run-2") is None
    found = await store.get_run("run-1")
    assert found is not None and found.seq == seq
    assert len(await store.read_events("run-1")) == seq


async def test_there_is_none_of_what_was_not_written(store: Store) -> None:
    run, seq = await long_run(store)
    with pytest.raises(Fenced):
        await append(store, run, seq + 1, snapshot=snapshot())
    assert not await store.release("run-1", run.epoch, seq - 1, None, "waiting", snapshot())
    await store.post_message("run-1", b"m", T0)
    assert not await store.release("run-1", run.epoch, seq, None, "waiting", snapshot())
    (taken,) = await store.claim("w2", T0 + LEASE_MS + 1, LEASE_MS, run_id="run-1")
    with pytest.raises(Fenced):
        await append(store, run, seq, snapshot=snapshot())
    assert await store.get_snapshot("run-1") is None
    await append(store, taken, seq, snapshot=snapshot())
    assert await store.get_snapshot("run-1") == snapshot()


async def test_it_is_deleted_with_the_end_of_its_run(store: Store) -> None:
    run, seq = await long_run(store)
    seq = await append(store, run, seq, snapshot=snapshot())
    await append(store, run, seq, status="succeeded", finished=True, snapshot=snapshot(seq))
    assert await store.get_snapshot("run-1") is None
    assert await store.delete_runs(["run-1"]) == ["run-1"]


async def test_it_is_deleted_when_its_run_moves(store: Store) -> None:
    run, seq = await long_run(store)
    seq = await append(store, run, seq, snapshot=snapshot())
    seq = await append(store, run, seq, move=Move(2, "other", b"plan"))
    assert await store.get_snapshot("run-1") is None
    await append(store, run, seq, snapshot=snapshot(seq, plan_hash="other"))
    assert await store.get_snapshot("run-1") == snapshot(seq, plan_hash="other")


async def test_all_may_be_deleted_at_any_time(store: Store) -> None:
    for id in ("run-1", "run-2"):
        run, seq = await long_run(store, id)
        await append(store, run, seq, snapshot=snapshot())
    assert await store.delete_snapshots() == 2
    assert await store.delete_snapshots() == 0
    for id in ("run-1", "run-2"):
        assert await store.get_snapshot(id) is None
        found = await store.get_run(id)
        assert found is not None
        await finish(store, found)
