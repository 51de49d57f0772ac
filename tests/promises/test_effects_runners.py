"""Effects elsewhere: what is lost before its function was called is neither an attempt nor a question."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from executor.open.embed import open_engine
from executor.open.engine import Engine
from tests.support.dask_cluster import DaskCluster
from tests.support.documents import document
from tests.support.runs import events_of
from tests.support.until import until


def work(folder: str, n: int) -> int:
    """Leaves a mark as it begins, and returns when it may."""
    with (Path(folder) / "begun").open("a") as file:
        file.write(f"{n} {os.getpid()}\n")
    while not (Path(folder) / "may-end").exists():
        time.sleep(0.02)
    return n


def begun(folder: Path) -> list[tuple[str, int]]:
    file = folder / "begun"
    lines = file.read_text().splitlines() if file.exists() else []
    return [(n, int(pid)) for n, _, pid in (line.partition(" ") for line in lines)]


def calls(folder: Path, runner: str, count: int) -> dict[str, Any]:
    blocks = {
        f"w{n}": {
            "type": "python",
            "params": {"function": "work", "arguments": {"folder": str(folder), "n": n}},
            "policy": {"runner": runner},
        }
        for n in range(count)
    }
    return document("calls", *(f"start {name}" for name in blocks), blocks=blocks)


async def questions(engine: Engine, run: str) -> list[str]:
    return [wait.block for wait in await engine.waits.list(run=run) if wait.kind == "attention"]


async def test_a_child_that_is_lost_before_the_call_asks_no_one(tmp_path: Path) -> None:
    async with open_engine(functions={"work": work}, processes=1) as engine:
        (tmp_path / "may-end").touch()
        first = await engine.run(calls(tmp_path, "process", 1), timeout_s=60)
        [(_, child)] = begun(tmp_path)
        os.kill(child, signal.SIGSTOP)  # it takes the next call, and does not come to it
        run = (await engine.submit(calls(tmp_path, "process", 1))).run
        await until(lambda: _started(engine, run))
        os.kill(child, signal.SIGKILL)
        view = await engine.wait_finished(run, 60)
        assert view is not None and (first.status, view.status) == ("succeeded", "succeeded")
        assert len(begun(tmp_path)) == 2 and len(await events_of(engine, run, "retry.scheduled")) == 1


async def _started(engine: Engine, run: str) -> bool:
    return "node.started" in (await events_of(engine, run, "node.started"))[1:]


async def test_a_child_that_is_lost_in_the_call_asks(tmp_path: Path) -> None:
    async with open_engine(functions={"work": work}, processes=1) as engine:
        run = (await engine.submit(calls(tmp_path, "process", 1))).run
        await until(lambda: bool(begun(tmp_path)))
        os.kill(begun(tmp_path)[0][1], signal.SIGKILL)
        await until(lambda: _asked(engine, run))
        assert len(begun(tmp_path)) == 1


async def _asked(engine: Engine, run: str) -> bool:
    return bool(await questions(engine, run))


@pytest.mark.proof
@pytest.mark.timeout(600)
async def test_a_lost_scheduler_asks_only_about_the_call_that_had_begun(tmp_path: Path) -> None:
    with DaskCluster(1) as cluster:
        port = int(cluster.address.rpartition(":")[2])
        async with open_engine(functions={"work": work}, dask=cluster.address) as engine:
            run = (await engine.submit(calls(tmp_path, "dask", 6))).run
            await until(lambda: bool(begun(tmp_path)), within_s=60)
            cluster.kill()
            await until(lambda: _retried(engine, run), within_s=60)
            (tmp_path / "may-end").touch()
            with DaskCluster(1, port):
                await until(lambda: len(begun(tmp_path)) == 6, within_s=120)
                view = await engine.wait_finished(run, 60)
                assert view is not None and view.status == "waiting"
            [asked] = await questions(engine, run)
            assert asked == f"w{begun(tmp_path)[0][0]}", "about the one that had begun"
            assert sorted(n for n, _ in begun(tmp_path)) == list("012345"), "each was called once"


async def _retried(engine: Engine, run: str) -> bool:
    return len(await events_of(engine, run, "retry.scheduled")) >= 5
