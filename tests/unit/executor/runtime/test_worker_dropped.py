"""A run that a worker owns and does not have in memory is free again soon, though the worker lives and has others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from executor.errors import DatabaseWriteFailed
from executor.store.rows import Append, Appended, RunRow
from tests.support.blocks import Hold
from tests.support.documents import chain, value
from tests.support.runs import engine_on, until_event


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
            engine.store.append = appending  # type: ignore[method-assign]
        else:
            engine.store.claim = claiming  # type: ignore[method-assign]
        run = await engine.run(chain("a", a=value(1)), timeout_s=60)
        assert (run.status, failed) == ("succeeded", [run.id])
        hold.free.set()
        assert (await engine.wait_finished(other, 60)).status == "succeeded"
