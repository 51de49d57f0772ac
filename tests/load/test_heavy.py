"""Branches that compute, in other processes, while those are killed: every result is right and none is missing.

    WEFT_SOAK_SECONDS=1 python -m pytest tests/load/test_heavy.py -s

takes branches of 200 ms instead of 20, and prints how many times as fast they are as in the server: on a quiet machine
with two cores close to twice. The processor time, which is also printed, says more on a busy machine.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from executor.blocks.runners import far
from executor.open.embed import open_engine
from executor.open.engine import Engine
from tests.load.heavy import churn, rounds_of
from tests.support.dask_cluster import DaskCluster
from tests.support.size import WHOLE, size

CORES = 2
PROGRAM = far.__name__.encode()  # in the command of a child
BRANCHES = size(300, 1_000)
KILLS_MAX = BRANCHES // 20  # a busy machine may start children more slowly than they are killed
INLINE_BRANCHES = 100  # as a measure: the time of each is the same

MS = size(20, 200)  # that a branch computes

pytestmark = [pytest.mark.proof, pytest.mark.soak, pytest.mark.timeout(0 if WHOLE else 900)]


def fan(runner: str, count: int, rounds: int) -> dict[str, Any]:
    arguments = {"n": "<parallel.index>", "rounds": rounds}
    return {
        "format": "weft/1",
        "name": "heavy",
        "blocks": {
            "start": {"type": "start"},
            "all": {"type": "parallel", "params": {"count": count}},
            "one": {
                "type": "python",
                "parent": "all",
                "params": {"function": "churn", "arguments": arguments},
                "policy": {"runner": runner, "on_lost": "retry", "timeout_s": 600},
            },
        },
        "edges": [{"source": "start", "target": "all"}, {"source": "all", "target": "one", "handle": "body"}],
    }


async def seconds(engine: Engine, runner: str, count: int, rounds: int) -> tuple[float, str]:
    """Of a branch, and the run."""
    began = time.monotonic()
    run = await engine.run(fan(runner, count, rounds), timeout_s=3_000)
    took_s = time.monotonic() - began
    assert run.status == "succeeded", run.error
    return took_s / count, run.id


async def check(engine: Engine, run: str, rounds: int) -> Counter[str]:
    """That every branch succeeded once, with what an attempt of it computed. Why attempts were made again."""
    events = [event async for event in engine.stream(run)]
    of_branches = [e for e in events if (e.key or "").startswith("one@")]
    ends = {e.key: e for e in of_branches if e.type == "node.succeeded"}
    assert len(ends) == BRANCHES == sum(e.type == "node.succeeded" for e in of_branches)
    for n in random.Random(1).sample(range(BRANCHES), 50):
        assert ends[f"one@all[{n}]"].data["output"] == churn(n, rounds)
    again = [e for e in events if e.type == "retry.scheduled"]
    codes = Counter(e.data["error"]["code"] for e in again)
    assert set(codes) <= {"attempt_lost", "runner_unavailable"}  # killed at its work, or as it started
    starts = sum(e.type == "node.started" for e in of_branches)
    assert starts == BRANCHES + len(again)  # each of them is made once more, and no other
    return codes


async def test_on_a_cluster_whose_workers_are_killed(capsys: pytest.CaptureFixture[str]) -> None:
    rounds = rounds_of(MS)
    with DaskCluster(CORES) as cluster:
        async with open_engine(functions={"churn": churn}, dask=cluster.address) as engine:
            inline_s, _ = await seconds(engine, "inline", INLINE_BRANCHES, rounds)
            before = (time.process_time(), *cluster.computed_s())
            killing = asyncio.create_task(every(10, cluster.kill_worker))
            try:
                branch_s, run = await seconds(engine, "dask", BRANCHES, rounds)
            finally:
                killing.cancel()
            after = (time.process_time(), *cluster.computed_s())
            counted = await check(engine, run, rounds)
    tell(capsys, f"dask, {MS} ms: {inline_s / branch_s:.2f} times as fast as inline, {counted['attempt_lost']} lost")
    here, scheduler, workers = ((b - a) * 1000 / BRANCHES for a, b in zip(before, after, strict=True))
    tell(capsys, f"processor ms a branch: server {here:.1f}, scheduler {scheduler:.1f}, workers {workers:.1f} of {MS}")
    assert counted["attempt_lost"]


async def test_in_child_processes_that_are_killed(capsys: pytest.CaptureFixture[str]) -> None:
    rounds = rounds_of(MS)
    killed: list[int] = []

    def kill() -> None:
        children = children_of(os.getpid())
        if children and len(killed) < KILLS_MAX:
            killed.append(random.choice(children))
            os.kill(killed[-1], signal.SIGKILL)

    async with open_engine(functions={"churn": churn}, processes=CORES) as engine:
        inline_s, _ = await seconds(engine, "inline", INLINE_BRANCHES, rounds)
        killing = asyncio.create_task(every(max(0.5, MS / 20), kill))
        try:
            branch_s, run = await seconds(engine, "process", BRANCHES, rounds)
        finally:
            killing.cancel()
        counted = await check(engine, run, rounds)
    lost = counted["attempt_lost"]
    tell(capsys, f"process, {MS} ms: {inline_s / branch_s:.2f} times as fast as inline, {lost} lost")
    assert 0 < lost <= len(killed)  # a child between two calls loses none


async def every(seconds: float, kill: Any) -> None:
    await asyncio.sleep(min(3, seconds))
    while True:
        await asyncio.to_thread(kill)
        await asyncio.sleep(seconds)


def children_of(server: int) -> list[int]:
    """Return the processes in which functions run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            if parent == server and PROGRAM in command_of(int(path.parent.name)):
                found.append(int(path.parent.name))
    return found


def command_of(pid: int) -> bytes:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def tell(capsys: pytest.CaptureFixture[str], text: str) -> None:
    with capsys.disabled():
        print(f"\n{text}")
