"""Callers who wait for runs of other processes: what they read while nothing happens, and that they notice the end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from executor.kernel.read import cursor as lookout
from executor.service.topics import runs
from tests.support.counted import counted
from tests.support.documents import in_a_row, value
from tests.support.runs import engine_on
from tests.support.until import until

WAITING = 30


async def test_runs_in_the_queue_are_looked_at_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None is read for itself until it has grown; another process on the file executes them then."""
    monkeypatch.setattr(lookout, "LOOK_S", 0.05)
    monkeypatch.setattr(runs, "WAIT_POLL_S", 60.0)
    monkeypatch.setattr(runs, "OWNED_POLL_S", 60.0)
    async with engine_on(tmp_path / "weft.db", work=False) as front:
        reads = counted(front.store, "get_run", monkeypatch)
        looks = counted(front.store, "last_seqs", monkeypatch)
        document = in_a_row("sets", {"a": value(1)})
        calls = [asyncio.create_task(front.run(document)) for _ in range(WAITING)]
        await until(lambda: looks["last_seqs"] >= 2)
        once = reads["get_run"]
        await until(lambda: looks["last_seqs"] >= 5)
        assert reads["get_run"] == once, "nothing has grown"
        async with engine_on(tmp_path / "weft.db"):
            ended = await asyncio.wait_for(asyncio.gather(*calls), 60)
        assert {(view.status, view.output) for view in ended} == {("succeeded", 1)}
