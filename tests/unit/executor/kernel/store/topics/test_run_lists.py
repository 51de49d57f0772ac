"""Nothing is counted further than COUNT_MAX, which is too many for a test: here it is three."""

from __future__ import annotations

from pathlib import Path

import pytest

from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics import run_lists
from tests.support.rows import finish, new_run, owned_run

MOST = 3


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lists, "COUNT_MAX", MOST)
    monkeypatch.setattr(run_lists, "COUNT_TO_MAX", f" LIMIT {MOST}) AS counted")


async def test_runs_are_counted_up_to_a_bound(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "weft.db")
    await store.open()
    for n in range(5):
        await finish(store, await owned_run(store, f"ended-{n}"))
        await store.create_run(new_run(f"open-{n}", draft_id="d" if n < 2 else None))
    await finish(store, await owned_run(store, "failed"), "failed")
    assert await store.count_runs() == {"succeeded": MOST, "queued": MOST, "failed": 1}
    assert await store.count_runs("expense") == await store.count_runs()
    assert await store.count_runs(draft="d") == {"queued": 2}
    assert await store.count_runs("other") == await store.count_runs(draft="e") == {}
    await store.close()
