"""A lease is lost when another worker has the run, and not when the run has just ended."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from executor.kernel.store.run_rows import Append, Appended
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.store import Store
from tests.support.documents import chain, value
from tests.support.runs import engine_on
from tests.support.until import until


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "sqlite":
        return SQLiteStore(tmp_path / "weft.db")
    pytest.importorskip("psycopg")
    from executor.kernel.store.postgres.store import PostgresStore

    return PostgresStore(request.getfixturevalue("postgres"))


async def test_a_run_whose_end_was_committed_and_not_read_yet_is_not_lost(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "weft")
    async with engine_on(store, lease_ms=600_000) as engine:
        engine.parts.owned.adopt = None
        append, committed, read = engine.store.append, asyncio.Event(), asyncio.Event()

        async def appending(change: Append) -> Appended:
            appended = await append(change)
            if change.finished:
                committed.set()
                await read.wait()
            return appended

        engine.store.append = appending
        run = asyncio.create_task(engine.run(chain("a", a=value(1)), timeout_s=60))
        await committed.wait()
        await engine._worker._renew()
        read.set()
        assert (await run).status == "succeeded"
        await until(lambda: engine.figures.runs == 0)
        assert engine.parts.meters.leases_lost == 0
    assert "lost the lease" not in caplog.text
