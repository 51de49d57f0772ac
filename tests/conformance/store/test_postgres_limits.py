"""Limits of runs, for claims of two sessions at the same time."""

from __future__ import annotations

import asyncio
import threading

import pytest

pytest.importorskip("psycopg")

from executor.kernel.store.postgres.store import PostgresStore
from tests.support.rows import LEASE_MS, T0, placed

NOW = T0 + 1_000
LIMIT = (("k", 2),)


async def test_a_claim_leaves_the_keys_that_another_one_has_in_hand(postgres: str) -> None:
    held, entered = threading.Event(), threading.Event()
    held.set()

    def fault(point: str) -> None:
        if point == "tx.group.before_commit" and not held.is_set():
            entered.set()
            assert held.wait(60)

    one, two = PostgresStore(postgres, fault=fault), PostgresStore(postgres)
    await one.open()
    await two.open()
    for n in range(4):
        await one.create_run(placed(f"run-{n}", T0 + n, limits=LIMIT))
    await two.create_run(placed("other", T0 + 9, limits=(("another", 1),)))
    held.clear()
    # Of two pools: one statement for all of a claim knows no limits, and this transaction has the places.
    claiming = asyncio.create_task(one.claim("w1", NOW, LEASE_MS, 1, pools={"default": "", "gpu": ""}))
    assert await asyncio.to_thread(entered.wait, 60)
    assert [row.id for row in await two.claim("w2", NOW, LEASE_MS, 64)] == ["other"]
    held.set()
    assert [row.id for row in await claiming] == ["run-0"]
    assert [row.id for row in await two.claim("w2", NOW, LEASE_MS, 64)] == ["run-1"]
    assert await two.waits_for("run-2") is not None
    await one.close()
    await two.close()
