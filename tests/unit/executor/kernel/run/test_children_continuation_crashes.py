"""A run that continues as new, whose process ends at each of its commits, before or after it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, get_args

import pytest

from executor.kernel.store.sqlite.store import SQLiteStore
from executor.open.engine import Engine
from executor.open.testing.crashes import When, killer
from executor.open.testing.process import DONE, in_child
from tests.support.clock import ManualClock
from tests.support.crashes import ends_at
from tests.support.documents import document, value
from tests.support.runs import engine_on

COMMITS_MAX = 20
# Two runs, each with a cleanup.
WORKFLOW = document(
    "twice",
    "start which",
    "which first again",
    "which second end",
    "start finally close",
    blocks={
        "which": {
            "type": "condition",
            "params": {"cases": [{"id": "first", "when": "<input.n> === 0"}, {"id": "second"}]},
        },
        "again": {"type": "continue_as_new", "params": {"input": {"n": 1}}},
        "end": value("<input.n>"),
        "close": {"type": "function", "params": {"code": "return 'closed'"}},
    },
    input={"type": "object", "properties": {"n": {"type": "integer"}}},
)
LEASE_MS = 15_000


async def played(engine: Engine, clock: ManualClock, is_over: Callable[[], bool] = lambda: False) -> bool:
    """Until the chain has ended (True), or `is_over`."""
    run: str | None = (await engine.submit(WORKFLOW, input={"n": 0}, idempotency_key="once")).run
    async with asyncio.timeout(60):
        while not is_over():
            assert run is not None
            view = await engine.runs.view(run)
            if view.status == "succeeded" and view.continued_as is None:
                return True
            run = view.continued_as or run
            clock.advance(1_000)
            await asyncio.sleep(0.005)
    return False


async def check(engine: Engine) -> None:
    """Two runs, or the first alone as long as it is open."""
    runs = await engine.runs.list()
    (submitted,) = [run.id for run in runs if run.idempotency_key == "once"]
    first, others = await engine.runs.view(submitted), [run.id for run in runs if run.id != submitted]
    assert (first.input, first.continues) == ({"n": 0}, None)
    assert others == ([first.continued_as] if first.continued_as else [])
    assert (first.status == "succeeded") == (first.continued_as is not None)
    for run in others:
        view = await engine.runs.view(run)
        assert (view.continues, view.continued_as, view.input) == (first.id, None, {"n": 1})


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_there_is_never_one_without_the_other(tmp_path: Path, after: bool) -> None:
    for commit in range(1, COMMITS_MAX):
        path, clock = tmp_path / f"{commit}.db", ManualClock()
        async with engine_on(path, clock=clock) as engine:
            ended = ends_at(engine, commit, after)
            over = await played(engine, clock, ended.is_set)
            await engine.stop_working(grace_s=0)
            await check(engine)
        if over:
            break
        clock.advance(LEASE_MS + 1)
        async with engine_on(path, clock=clock) as engine:
            assert await played(engine, clock)
            await check(engine)
            assert len(await engine.runs.list()) == 2, f"commit {commit}"
    else:
        raise AssertionError("the runs have more commits than were tried")
    assert commit > 4


@pytest.mark.proof  # forks a process for each commit
async def test_a_process_that_is_killed_at_each_commit(tmp_path: Path) -> None:
    for when in get_args(When):
        for commit in range(1, COMMITS_MAX):
            folder = tmp_path / f"{when}-{commit}"
            folder.mkdir()
            code = await in_child(process(folder, commit, when), folder)
            clock = ManualClock(1_800_000_000_000 + 100_000)  # behind the lease, before the time of the cleanup is over
            async with engine_on(folder / "weft.db", clock=clock) as engine:
                assert await played(engine, clock)
                await check(engine)
                assert len(await engine.runs.list()) == 2, folder.name
            if code == DONE:
                break
            assert code == -signal.SIGKILL, (folder / "error").read_text()
        assert commit > 4


def process(folder: Path, commit: int, when: When) -> Callable[[], Coroutine[Any, Any, None]]:
    kill = killer(commit, when)
    armed = False

    async def work() -> None:
        nonlocal armed
        clock = ManualClock()
        store = SQLiteStore(folder / "weft.db", fault=lambda point: kill(point) if armed else None)
        async with engine_on(store, clock=clock) as engine:
            armed = True
            await played(engine, clock)
            armed = False

    return work
