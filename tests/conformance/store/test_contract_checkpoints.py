"""Checkpoints: the last of each node key, written by the owner of the run alone."""

from __future__ import annotations

from typing import Any

import pytest

from executor.errors import Fenced
from executor.kernel.store.topics.snapshots import CheckpointRow
from executor.kernel.store.topics.store import Store
from tests.support.rows import LEASE_MS, T0, finish, new_run, owned_run, row


def checkpoint(node: str = "b@l#2/f[1]", **fields: Any) -> CheckpointRow:
    given: dict[str, Any] = {"run_id": "run-1", "node": node, "attempt": 1, "at_ms": T0, "data": b'{"n":3}'}
    return CheckpointRow(**given | fields)


async def test_the_last_one_of_a_node_key_stays(store: Store) -> None:
    run = await owned_run(store)
    assert await store.get_checkpoint("run-1", "b@l#2/f[1]") is None
    await store.put_checkpoint(run.epoch, checkpoint())
    await store.put_checkpoint(run.epoch, checkpoint("b@l#3/f[1]", data=b"null"))
    newer = checkpoint(attempt=2, at_ms=T0 + 5, data=b"\x00\xff as it came")
    await store.put_checkpoint(run.epoch, newer)
    assert await store.get_checkpoint("run-1", "b@l#2/f[1]") == newer
    assert await store.get_checkpoint("run-1", "b@l#3/f[1]") == checkpoint("b@l#3/f[1]", data=b"null")
    assert await store.get_checkpoint("run-2", "b@l#2/f[1]") is None


async def test_nothing_else_of_the_run_changes(store: Store) -> None:
    run = await owned_run(store)
    await store.put_checkpoint(run.epoch, checkpoint())
    assert await row(store, "run-1") == run
    assert len(await store.read_events("run-1")) == run.seq


async def test_who_has_lost_the_run_is_fenced(store: Store) -> None:
    run = await owned_run(store)
    await store.put_checkpoint(run.epoch, checkpoint())
    later_ms = T0 + LEASE_MS + 1
    (taken,) = await store.claim("w2", later_ms, LEASE_MS, run_id="run-1")
    with pytest.raises(Fenced):
        await store.put_checkpoint(run.epoch, checkpoint(data=b"4"))
    assert await store.get_checkpoint("run-1", checkpoint().node) == checkpoint()
    await store.put_checkpoint(taken.epoch, checkpoint(data=b"5"))
    assert await store.get_checkpoint("run-1", checkpoint().node) == checkpoint(data=b"5")


async def test_a_run_that_has_ended_keeps_its_checkpoints_and_takes_no_more(store: Store) -> None:
    run = await owned_run(store)
    await store.put_checkpoint(run.epoch, checkpoint())
    await finish(store, run)
    with pytest.raises(Fenced):
        await store.put_checkpoint(run.epoch, checkpoint(data=b"4"))
    assert await store.get_checkpoint("run-1", checkpoint().node) == checkpoint()


async def test_there_is_none_of_a_run_that_is_not_there(store: Store) -> None:
    await store.create_run(new_run("run-2"))
    with pytest.raises(Fenced):
        await store.put_checkpoint(0, checkpoint())
    assert await store.get_checkpoint("run-1", checkpoint().node) is None
