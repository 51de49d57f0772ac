"""PostgreSQL behind pgbouncer in transaction mode: a session of the server belongs to a client for one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psycopg
import pytest

pytest.importorskip("psycopg")

from executor.kernel.store.postgres.connection import Session
from executor.kernel.store.postgres.limited import prepare_where_kept
from executor.kernel.store.postgres.store import PostgresStore
from tests.support.pgbouncer import pool, program
from tests.support.rows import LEASE_MS, T0, change, new_run, record

STEPS = 12  # statements are prepared when they come for the sixth time
RUNS = 8


@pytest.fixture
def pooled(postgres: str) -> Iterator[str]:
    if program() is None:
        pytest.skip("pgbouncer is not installed: apt-get install pgbouncer")
    with pool(postgres, 3) as address:
        yield address


def test_a_session_of_the_server_itself_prepares(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        prepare_where_kept(connection)
        assert connection.prepare_threshold == 5


def test_a_pool_that_does_not_keep_statements_is_noticed(pooled: str) -> None:
    sessions = [Session(pooled, lambda name: None) for _ in range(3)]
    assert [session.connection.prepare_threshold for session in sessions] == [None] * 3
    for session in sessions:
        session.drop()


async def test_two_processes_share_a_pool(pooled: str) -> None:
    """Each group in another session of the server, with every statement more often than it takes to be prepared."""
    one, two = PostgresStore(pooled), PostgresStore(pooled)
    await one.open()
    await two.open()
    for n in range(STEPS):
        await asyncio.gather(*(_lives(store, f"{name}-{n}") for name, store in (("one", one), ("two", two))))
    counts = await asyncio.gather(one.count_runs(), two.count_runs())
    assert list(counts) == [{"succeeded": 2 * STEPS * RUNS}] * 2
    await one.close()
    await two.close()


async def _lives(store: PostgresStore, name: str) -> None:
    """A claim may find runs of the other process, so each has a pool of its own, and a run is claimed by its id."""
    ids = [f"{name}-{n}" for n in range(RUNS)]
    await asyncio.gather(*(store.create_run(new_run(id, idempotency_key=id)) for id in ids))
    claimed = [await store.claim(name, T0, LEASE_MS, run_id=id) for id in ids]
    runs = [run for (run,) in claimed]
    await asyncio.gather(*(store.append(change(run, record())) for run in runs))
    assert all(await asyncio.gather(*(store.post_message(id, b"m", T0) for id in ids)))
    appended = await asyncio.gather(
        *(store.append(change(run, record(), expected_seq=2, consumed_inbox=(1,))) for run in runs)
    )
    assert [each.seq for each in appended] == [3] * RUNS
    ended = {"status": "succeeded", "finished": True, "output": b"1"}
    await asyncio.gather(*(store.append(change(run, record(), expected_seq=3, **ended)) for run in runs))
    assert [len(await store.read_events(id)) for id in ids] == [4] * RUNS
