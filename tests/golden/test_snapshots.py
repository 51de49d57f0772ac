"""Journals of earlier versions: wherever one is cut, a snapshot of its beginning and the rest come to what the whole
comes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from executor.kernel.store.sqlite.store import SQLiteStore
from tests.support.recorded import SCHEMAS, restore
from tests.support.snapshots import cuts_agree


@pytest.mark.parametrize("schema", SCHEMAS)
async def test_a_snapshot_of_any_event_and_the_rest_are_the_whole(schema: int, tmp_path: Path) -> None:
    store = SQLiteStore(restore(schema, tmp_path))
    await store.open()
    try:
        runs = await store.list_runs(limit=200)
        assert len(runs) > 10
        for row in runs:
            await cuts_agree(store, row.id)
    finally:
        await store.close()
