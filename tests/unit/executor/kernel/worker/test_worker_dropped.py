"""A run that a worker owns and does not have in memory is free again soon, though the worker lives and has others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from executor.errors import DatabaseWriteFailed
from executor.kernel.store.run_rows import Append, Appended, RunRow
from tests.support.blocks import Hold
from tests.support.documents import chain, value
from tests.support.runs import engine_on, until_event
from tests.support.until import until


@pytest.mark.parametrize("lost", ["its append", "its claim"])
async def test_a_dropped_run_continues_beside_others_of_its_worker(tmp_path: Path, lost: str) -> None:
    async with engine_on(tmp_path / "weft.db", hold := Hold(), lease_ms=600) as engine:
        other = (await engine.submit(chain("a", a={"type": "hold"}))).run
        await until_event(engine, other, "node.started", "a")
        engine.parts.owned.adopt = None
        append, claim, failed = engine.store.append, engine.store.claim, list[str]()

        async def appending(change: Append) -> Appended:
            if not failed:
                failed.append(change.run_id)
                raise DatabaseWriteFailed("the test: not written")
            return await append(change)

        async def claiming(*args: Any, **names: Any) -> list[RunRow]:
            rows = await claim(*args, **names)
            if rows and not failed:
                failed.append(rows[0].id)
                raise DatabaseWriteFailed("the test: written, and not known")
            return rows

        if lost == "its append":
            engine.store.append = appending
        else:
            engine.store.claim = claiming
        run = await engine.run(chain("a", a=value(1)), timeout_s=60)
        assert (run.status, failed) == ("succeeded", [run.id])
        hold.free.set()
        assert (await engine.wait_finished(other, 60)).status == "succeeded"


async def test_a_dropped_run_is_freed_by_a_worker_that_has_no_other(tmp_path: Path) -> None:
    """Its lease is that of the worker, which lives on with each run that it claims."""
    async with engine_on(tmp_path / "weft.db", lease_ms=600_000) as engine:
        owned, append, failed = engine.parts.owned, engine.store.append, list[str]()
        owned.adopt = None

        async def appending(change: Append) -> Appended:
            if not failed:
                failed.append(change.run_id)
                raise DatabaseWriteFailed("the test: not written")
            return await append(change)

        engine.store.append = appending
        run = asyncio.create_task(engine.run(chain("a", a=value(1)), timeout_s=60))
        await until(lambda: failed and failed[0] not in owned.loops)
        await engine._worker._renew()
        owned.wake()
        assert (await run).status == "succeeded"
