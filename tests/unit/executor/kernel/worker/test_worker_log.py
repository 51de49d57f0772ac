"""What an outage does to many runs is one line of the log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from executor.errors import DatabaseWriteFailed, Fenced
from executor.kernel.store.run_rows import Append, Appended
from tests.support.blocks import Hold
from tests.support.documents import chain
from tests.support.runs import engine_on, until_event
from tests.support.until import until

RUNS = 20


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (lambda: Fenced("the test: fenced"), "lost the lease"),
        (lambda: DatabaseWriteFailed("the test"), "database failed"),
    ],
    ids=["fenced", "not written"],
)
async def test_what_happens_to_many_runs_is_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Callable[[], Exception], said: str
) -> None:
    caplog.set_level(logging.WARNING)
    failed: list[str] = []
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        runs = [(await engine.submit(chain("a", a={"type": "hold"}))).run for _ in range(RUNS)]
        for run in runs:
            await until_event(engine, run, "node.started", "a")
        append = engine.store.append

        async def appending(change: Append) -> Appended:
            if len(failed) < RUNS:
                failed.append(change.run_id)
                raise error()
            return await append(change)

        engine.store.append = appending
        hold.free.set()
        await until(lambda: len(failed) == RUNS)
        await until(lambda: any(said in record.getMessage() for record in caplog.records))
        lines = _lines(caplog, said)
    assert len(lines) == 1, lines


def _lines(caplog: pytest.LogCaptureFixture, said: str) -> list[Any]:
    return [record.getMessage() for record in caplog.records if said in record.getMessage()]
