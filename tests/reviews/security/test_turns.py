"""Many or large runs proceed in small steps, so that other runs and requests have their turn in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from executor.runtime.run import INLINE_BATCH_BYTES
from executor.store.base import Append, Appended
from executor.store.sqlite import SQLiteStore
from tests.unit.executor.children.given import document, engine_on

LARGE = 300_000


async def test_b07_large_outputs_are_committed_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
