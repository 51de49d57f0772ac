"""Nothing is counted further than COUNT_MAX, which is too many for a test: here it is three."""

from __future__ import annotations

from pathlib import Path

import pytest

from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics import waits
from tests.support.rows import change, owned_run, record, row, wait

MOST = 3


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "COUNT_MAX", MOST)
    monkeypatch.setattr(waits, "COUNT_TO_MAX", f" LIMIT {MOST}) AS counted")


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
