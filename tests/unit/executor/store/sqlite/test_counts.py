"""Nothing is counted further than COUNT_MAX, which is too many for a test: here it is three."""

from __future__ import annotations

from pathlib import Path

import pytest

from executor.store.sqlite import runs, waits
from executor.store.sqlite.store import SQLiteStore
from tests.support.rows import change, finish, new_run, owned_run, record, row, wait

MOST = 3


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (runs, waits):
        monkeypatch.setattr(module, "COUNT_MAX", MOST)
        monkeypatch.setattr(module, "COUNT_TO_MAX", f" LIMIT {MOST}) AS counted")


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


async def test_waits_are_counted_up_to_a_bound(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "weft.db")
    await store.open()
    run = await owned_run(store)
    for n in range(10):
        opened = wait(run.id, f"ask!{n}", kind="form" if n % 2 else "approval")
        await store.append(change(await row(store, run.id), record(), waits=(opened,)))
        if n < 5:
            await store.answer_wait(opened.token_hash, b"1", None, b"m", 0)
    assert await store.count_waits() == {"pending": MOST, "answered": MOST}
    assert await store.count_waits(kind="form") == {"pending": MOST, "answered": 2}
    assert await store.count_waits(kind="approval", workflow="expense") == {"pending": 2, "answered": MOST}
    assert await store.count_waits(workflow="other") == {}
    assert await store.count_waits(run.id) == {"pending": MOST, "answered": MOST}
    await store.close()
