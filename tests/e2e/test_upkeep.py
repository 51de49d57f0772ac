"""Looking after a database whose server is at work: doctor, backup and restore, gc, from processes of their own."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from executor.kernel.store.sqlite.reading import open_reading
from executor.service.upkeep.findings import Evidence
from executor.service.upkeep.invariants import check
from tests.support import command
from tests.support.server import ROOT, SyncServerProcess
from tests.support.until import until

Start = Callable[..., SyncServerProcess]
pytestmark = pytest.mark.timeout(300)  # many processes, one after the other
# Some work, a pause that outlasts a kill, a loop, a branch of its own; and some work again.
FLOW: dict[str, Any] = {
    "format": "weft/1",
    "name": "busy",
    "variables": {"n": 0},
    "blocks": {
        "start": {"type": "start"},
        "loop": {"type": "loop", "params": {"mode": "for", "count": 3}},
        "add": {
            "type": "variables",
            "parent": "loop",
            "params": {"assign": [{"name": "n", "op": "increment", "value": 1}]},
        },
        "fan": {"type": "parallel", "params": {"count": 2}},
        "work": {"type": "function", "parent": "fan", "params": {"code": "return 1"}},
        "rest": {"type": "wait", "params": {"seconds": 2.5}},
        "end": {"type": "set", "params": {"value": {"n": "<workflow.n>", "i": "<input.i>"}}},
    },
    "edges": [
        {"source": "start", "target": "loop"},
        {"source": "start", "target": "fan"},
        {"source": "loop", "handle": "body", "target": "add"},
        {"source": "fan", "handle": "body", "target": "work"},
        {"source": "loop", "target": "rest"},
        {"source": "fan", "target": "rest"},
        {"source": "rest", "target": "end"},
    ],
}


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=90, trust_env=False) as client:
        yield client


async def weft(*arguments: str, code: int = 0) -> str:
    """A process of its own; what it said to stdout."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "server", *arguments),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 90)
    assert process.returncode == code, (arguments, out.decode(), err.decode())
    return out.decode()


async def in_process(*arguments: str, code: int = 0) -> str:
    """In the process of the tests, which is quicker."""
    ran = await asyncio.to_thread(command.weft, *arguments, environ={})
    assert ran.returncode == code, (arguments, ran)
    return ran.stdout


def still(task: asyncio.Task[None]) -> None:
    assert not task.done(), task


class Load:
    """Starts runs one after the other until it is stopped, or the server does not answer any more. `acknowledged`:
    (run, when the answer was here). `deleted`: how many are gone since."""

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self._client, self._url = client, url
        self.acknowledged: list[tuple[str, float]] = []
        self.deleted = 0
        self.stopped = False

    async def run(self) -> None:
        i = 0
        while not self.stopped:
            body = {"document": FLOW, "input": {"i": i}}
            try:
                answer = await self._client.post(f"{self._url}/api/runs", json=body)
            except httpx.TransportError:
                return
            assert answer.status_code == 202, answer.text
            self.acknowledged.append((answer.json()["run"], time.monotonic()))
            i += 1


def findings(db: Path, acknowledged: list[str]) -> list[Any]:
    with closing(open_reading(db)) as connection:
        return list(check(connection, evidence=Evidence(acknowledged=acknowledged)))


async def all_ended(client: httpx.AsyncClient, url: str, timeout_s: float = 120) -> dict[str, int]:
    async with asyncio.timeout(timeout_s):
        while True:
            counts = (await client.get(f"{url}/api/runs?limit=1")).json()["counts"]
            if not any(counts[status] for status in ("queued", "running", "waiting")):
                return dict(counts)
            await asyncio.sleep(0.1)


async def test_a_backup_made_under_load_continues_after_a_disaster(
    start_server: Start, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    server = start_server(WEFT_LEASE_MS="1000")
    db, copy = tmp_path / "weft.db", tmp_path / "safe" / "copy.db"
    copy.parent.mkdir()
    load = Load(client, server.url)
    loading = asyncio.create_task(load.run())
    await until(lambda: len(load.acknowledged) > 5, meanwhile=lambda: still(loading))
    began = time.monotonic()
    assert "open" in await weft("backup", str(copy), "--db", str(db))
    before = [run for run, at in load.acknowledged if at < began]
    await until(lambda: len(load.acknowledged) > len(before), meanwhile=lambda: still(loading))
    await weft("doctor", "--db", str(db))  # a live database, under load, is sound
    refused = await weft("restore", str(copy), "--db", str(db), "--force", code=4)
    assert refused == ""  # a server has it open
    server.kill()
    await loading

    shutil.copy(tmp_path / "weft.key", copy.parent / "weft.key")
    for path in tmp_path.glob("weft.db*"):  # the disk is gone
        path.unlink()
    await weft("restore", str(copy), "--db", str(db))
    assert findings(db, before) == []

    server = start_server(WEFT_LEASE_MS="1000")
    counts = await all_ended(client, server.url)
    assert counts["succeeded"] >= len(before) and counts["failed"] == counts["cancelled"] == 0
    for run in before:
        assert (await client.get(f"{server.url}/api/runs/{run}")).json()["output"]["n"] == 3
    assert findings(db, before) == []
    assert server.stop() == 0
    await weft("doctor", "--db", str(db))


async def test_the_doctor_finds_nothing_while_runs_come_and_go(
    start_server: Start, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    """Each look at a run is one moment of it: what is half done is never seen."""
    server = start_server()
    load = Load(client, server.url)
    loading = asyncio.create_task(load.run())
    collecting = asyncio.create_task(_collect(client, server.url, load))
    looks = 0
    end = time.monotonic() + 3
    async with asyncio.timeout(90):
        while time.monotonic() < end or looks <= 5 or load.deleted <= 10:
            assert not loading.done() and not collecting.done(), (loading, collecting)
            found = await asyncio.to_thread(findings, tmp_path / "weft.db", [])
            assert found == []
            looks += 1
    load.stopped = True
    await loading
    await collecting
    assert server.stop() == 0


async def _collect(client: httpx.AsyncClient, url: str, load: Load) -> None:
    """Delete whatever has ended, all the time."""
    while not load.stopped:
        answer = await client.post(f"{url}/api/upkeep/gc", json={"older_than_s": 0})
        job = answer.raise_for_status().json()["job"]
        while job["state"] == "running":
            await asyncio.sleep(0.1)
            job = (await client.get(f"{url}/api/upkeep/gc/{job['id']}")).raise_for_status().json()
        assert job["state"] == "done", job
        load.deleted += job["counts"]["runs"]


async def test_gc_sql_state_and_diff_from_the_command_line(
    start_server: Start, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    server = start_server(WEFT_RETENTION_DAYS="1")
    url, db = ("--url", server.url), ("--db", str(tmp_path / "weft.db"))
    runs = []
    for i in (1, 2):
        answer = await client.post(f"{server.url}/api/runs?wait=60", json={"document": FLOW, "input": {"i": i}})
        runs.append(answer.json()["run"])
    await all_ended(client, server.url)
    shown = await in_process(*url, "state", runs[0], "--at", "2")
    assert shown.startswith(f"{runs[0]}  running  event 2 of ") and "n = 0" in shown
    assert "end  " in await in_process(*url, "diff", *runs, code=1)
    assert json.loads(await in_process(*url, "diff", runs[0], runs[0], "--json"))["same"]
    assert "waits for" in await in_process(*url, "why", runs[0], "rest", "--at", "4")
    query = "SELECT count(*) AS n FROM events WHERE run_id = '{}'"
    (counted,) = (await in_process("sql", *db, "--format", "json", query.format(runs[0]))).splitlines()
    assert json.loads(counted)["n"] > 20
    assert (await in_process(*url, "gc")).startswith("0 runs")
    assert (await in_process(*url, "gc", "--keep", "1", "--dry-run")).startswith("1 run with ")
    assert (await in_process(*url, "gc", "--keep", "1")).startswith("1 run with ")
    assert (await client.get(f"{server.url}/api/runs/{runs[0]}")).status_code == 404
    assert (await client.get(f"{server.url}/api/runs/{runs[1]}")).status_code == 200
    assert server.stop() == 0
    assert (await in_process("gc", *db, "--older-than", "0s", "--vacuum")).startswith("1 run with ")
    await in_process("doctor", *db)
