"""Many or large runs proceed in small steps, so that other runs and requests are served in between."""

from __future__ import annotations

import asyncio
import gc
from itertools import pairwise
from pathlib import Path

import pytest

from executor.kernel.run.loop import INLINE_BATCH_BYTES, RunLoop
from executor.kernel.store.run_rows import Append, Appended
from executor.kernel.store.sqlite.store import SQLiteStore
from tests.support.documents import document
from tests.support.runs import engine_on
from tests.support.until import until

LARGE = 300_000


async def test_large_outputs_are_committed_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, up to 256 of them were gathered for one commit."""
    sizes: list[int] = []
    append = SQLiteStore.append

    async def watched(self: SQLiteStore, change: Append) -> Appended:
        sizes.append(sum(len(data) for _, data in change.blobs))
        return await append(self, change)

    monkeypatch.setattr(SQLiteStore, "append", watched)
    looped = document(
        "looped",
        "start loop",
        "loop body make",
        blocks={
            "loop": {"type": "loop", "params": {"mode": "for", "count": 20}},
            "make": {"type": "set", "params": {"value": "x" * LARGE}, "parent": "loop"},
        },
    )
    async with engine_on(tmp_path / "weft.db") as engine:
        view = await engine.run(looped)
    assert view.status == "succeeded"
    assert sum(sizes) > 20 * LARGE
    # The container's output comes in one piece with its last iteration.
    assert sorted(sizes)[-2] <= INLINE_BATCH_BYTES + LARGE + 2


async def test_others_are_served_while_many_runs_are_ready(tmp_path: Path) -> None:
    """A request needs some passes of the event loop; there are many while the runs make their steps."""
    blocks = {f"s{n}": {"type": "set", "params": {"value": n}} for n in range(5)}
    chain = document("chain", *(f"{source} {target}" for source, target in pairwise(["start", *blocks])), blocks=blocks)
    passes, ended = 0, False

    async def other() -> None:
        nonlocal passes
        while not ended:
            await asyncio.sleep(0)
            passes += 1

    async with engine_on(tmp_path / "weft.db") as engine:
        beside = asyncio.create_task(other())
        views = await asyncio.gather(*(engine.run(chain) for _ in range(200)))
        ended = True
        await beside
    assert {view.status for view in views} == {"succeeded"}
    assert passes >= 200


async def test_a_run_that_left_memory_leaves_nothing_to_the_collector(tmp_path: Path) -> None:
    """Before, what an attempt says referred to itself, and to the whole run: half a second of collecting garbage."""
    looped = document(
        "looped",
        "start loop",
        "loop body make",
        blocks={
            "loop": {"type": "parallel", "params": {"mode": "count", "count": 20}},
            "make": {"type": "wait", "params": {"seconds": 0}, "parent": "loop"},
        },
    )
    async with engine_on(tmp_path / "weft.db") as engine:
        gc.collect()
        others = _run_loops()
        gc.disable()
        try:
            assert (await engine.run(looped)).status == "succeeded"
            await until(lambda: not (any(found not in others for found in _run_loops())))
        finally:
            gc.enable()


def _run_loops() -> list[RunLoop]:
    return [found for found in gc.get_objects() if isinstance(found, RunLoop)]
