"""Steady traffic for as long as WEFT_SOAK_SECONDS says: what the server holds does not grow with what it has done.

`make check` gives it a moment, `make soak` ten minutes, `make soak SOAK_SECONDS=86400 ARGS=tests/load/test_soak.py` a
day.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from executor.kernel.store.sqlite.reading import open_reading
from executor.service.upkeep.findings import Evidence
from executor.service.upkeep.invariants import check
from tests.load.stream import open_stream
from tests.load.world import ask, ending, sleep
from tests.support.server import ServerProcess, free_port
from tests.support.size import WHOLE
from tests.support.until import until

SECONDS = float(os.environ.get("WEFT_SOAK_SECONDS") or 6)
WARM_S = min(1_800.0, SECONDS / 2)  # caches, connections and thread stacks are there by then
CLIENTS = 4
PAUSE_S = 0.1  # of a client between two runs
WAL_BYTES_MAX = 64 * 1024 * 1024
# 8 MiB of encoded frames, which a few thousand runs fill, and what the allocator does not give back; on top of it a
# megabyte an hour.
SLACK_BYTES = 12 * 1024 * 1024
BYTES_PER_HOUR = 1024 * 1024

pytestmark = [pytest.mark.proof, pytest.mark.soak, pytest.mark.timeout(0 if WHOLE else 120)]


def computing() -> dict[str, Any]:
    return ending(
        "computing",
        {
            "again": {"type": "loop", "params": {"mode": "for", "count": 3}},
            "double": {"type": "function", "parent": "again", "params": {"code": "return <loop.index> * 2"}},
            "text": {"type": "set", "params": {"value": "x" * 4_000}},
        },
    ) | {
        "edges": [
            {"source": "start", "target": "again"},
            {"source": "again", "handle": "body", "target": "double"},
            {"source": "again", "target": "text"},
            {"source": "text", "target": "end"},
        ]
    }


class Traffic:
    """Clients that start runs, follow some to their end, leave others, and answer what they are asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.runs: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._enough = asyncio.Event()

    def begin(self) -> None:
        self._enough.clear()
        self._tasks = [
            asyncio.create_task(self._client(random.Random(len(self.runs) + number)), name=f"client {number}")
            for number in range(CLIENTS)
        ]

    async def end(self) -> None:
        """When this returns, no run is under way and no connection is open."""
        self._enough.set()
        await asyncio.gather(*self._tasks)
        async with httpx.AsyncClient(base_url=self.url, timeout=30) as http, asyncio.timeout(60):
            while any(await self._answer_all(http)):
                await asyncio.sleep(0.1)

    def check(self) -> None:
        for task in self._tasks:
            if task.done():
                task.result()

    async def _client(self, choose: random.Random) -> None:
        async with httpx.AsyncClient(base_url=self.url, timeout=30) as http:
            while not self._enough.is_set():
                document = choose.choice([computing(), ask(), sleep(0.05)])
                answer = await http.post("/api/runs", json={"document": document})
                assert answer.status_code == 202, answer.text
                run: str = answer.json()["run"]
                self.runs.append(run)
                patience = choose.choice([1, 10_000])
                async with open_stream(self.url, run) as stream:
                    while patience > 0 and (frames := await stream.frames()):
                        patience -= len(frames)
                        if any(b'"type":"run.parked"' in frame.data for frame in frames):
                            await self._answer_all(http)
                assert (await http.get(f"/api/runs/{run}")).status_code == 200
                assert (await http.get("/api/runs", params={"limit": 50})).status_code == 200
                await asyncio.sleep(PAUSE_S)

    async def _answer_all(self, http: httpx.AsyncClient) -> list[int]:
        """Answers what is asked; how many runs are open, by status."""
        for wait in (await http.get("/api/waits", params={"limit": 1000})).json()["waits"]:
            if wait["kind"] == "approval":
                path = httpx.URL(wait["link"]).path
                answer = await http.post(path, json={"action": "approve"}, headers={"accept": "application/json"})
                assert answer.status_code in (200, 409), answer.text  # 409: another client was first
        counted = (await http.get("/api/runs", params={"limit": 1})).json()["counts"]
        return [counted[status] for status in ("queued", "running", "waiting")]


async def test_nothing_grows_with_what_was_done(tmp_path: Path) -> None:
    db = tmp_path / "weft.db"
    server = await ServerProcess.start(db, free_port(random.Random()), tmp_path / "log", WEFT_LOG="warning")
    await server.ready()
    traffic = Traffic(server.url)
    wal_max, sockets = 0, fds_of(server.pid).count("socket")

    async def go_on(seconds: float) -> None:
        nonlocal wal_max
        traffic.begin()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            traffic.check()
            wal_max = max(wal_max, db.with_name("weft.db-wal").stat().st_size)
            await asyncio.sleep(0.25)
        await traffic.end()
        await until(lambda: fds_of(server.pid).count("socket") <= sockets)

    try:
        await go_on(WARM_S)
        before, fds_before, runs_before = resident_of(server.pid), fds_of(server.pid), len(traffic.runs)
        await go_on(SECONDS - WARM_S)
        grown, fds = resident_of(server.pid) - before, fds_of(server.pid)
        assert await server.stop(timeout_s=60) == 0
    finally:
        await server.clean_up()
    seen = {
        "runs": len(traffic.runs),
        "rss_mb": round(before / 2**20),
        "grown_mb": round(grown / 2**20, 1),
        "files": len(fds),
        "wal_max_mb": round(wal_max / 2**20, 1),
        "load": os.getloadavg()[0],
    }
    print(seen)
    assert len(traffic.runs) - runs_before >= SECONDS - WARM_S, "too little traffic to show anything"
    assert sorted(fds) == sorted(fds_before), "every file and connection that was opened is closed again"
    assert wal_max < WAL_BYTES_MAX, seen
    assert grown <= SLACK_BYTES + BYTES_PER_HOUR * SECONDS / 3600, seen
    with closing(open_reading(db)) as connection:
        assert list(check(connection, evidence=Evidence(acknowledged=traffic.runs))) == []


def resident_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def fds_of(pid: int) -> list[str]:
    """What its open files are, without numbers that differ for each: `socket`, `pipe`, a path."""
    folder, found = Path(f"/proc/{pid}/fd"), []
    for name in os.listdir(folder):
        with suppress(FileNotFoundError):  # closed meanwhile
            found.append(os.readlink(folder / name).partition(":[")[0])
    return found
