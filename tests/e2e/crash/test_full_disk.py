"""The disk takes no more under a running server: it says so, loses nothing it acknowledged, and goes on when there is
room again. A limit on the size of files stands for the disk: the kernel refuses the same writes, with an error that
SQLite takes for one of the disk, so that the answer may be 503 as well. What exactly a full disk gives is in
tests/faults/test_refused.py."""

from __future__ import annotations

import asyncio
import resource
from contextlib import closing
from typing import Any

import httpx

from executor.upkeep.findings import Evidence
from executor.upkeep.invariants import check, open_read_only
from tests.e2e.crash.conftest import Servers
from tests.e2e.crash.process import ServerProcess

ALL = 40  # runs
UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
DOCUMENT = {
    "format": "weft/1",
    "name": "steps",
    "blocks": {
        "start": {"type": "start"},
        "first": {"type": "set", "params": {"value": "<start.pad>"}},
        "nap": {"type": "wait", "params": {"seconds": 0.2}},
        "last": {"type": "set", "params": {"value": {"n": "<start.n>"}}},
    },
    "edges": [
        {"source": "start", "target": "first"},
        {"source": "first", "target": "nap"},
        {"source": "nap", "target": "last"},
    ],
}


def fill(server: ServerProcess) -> None:
    """No file of the process takes another byte."""
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))


async def submit(client: httpx.AsyncClient, n: int) -> httpx.Response:
    body = {"input": {"n": n, "pad": "x" * 20_000}}
    return await client.post(
        "/api/workflows/steps/runs", json=body, headers={"Idempotency-Key": f"run-{n}"}, timeout=60
    )


async def ended(client: httpx.AsyncClient, run: str) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            view: dict[str, Any] = (await client.get(f"/api/runs/{run}")).raise_for_status().json()
            if view["status"] not in ("queued", "running", "waiting"):
                return view
            await asyncio.sleep(0.05)


async def test_a_full_disk_is_told_and_survived(servers: Servers) -> None:
    server = await servers.start()
    acknowledged: dict[int, str] = {}
    async with httpx.AsyncClient(base_url=server.url) as client:
        (await client.post("/api/workflows", json={"document": DOCUMENT})).raise_for_status()
        for n in range(20):
            acknowledged[n] = (await submit(client, n)).raise_for_status().json()["run"]

        fill(server)
        answers = dict(enumerate(await asyncio.gather(*(submit(client, n) for n in range(20, ALL))), 20))
        assert not any(answer.is_success for answer in answers.values())
        for answer in answers.values():
            assert answer.status_code in (503, 507), answer.text
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["code"] in ("db_unavailable", "db_write_failed")
        assert (await client.get("/healthz", timeout=60)).status_code in (503, 507)
        assert (await client.get(f"/api/runs/{acknowledged[0]}")).is_success  # what is there can be read

        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, UNLIMITED)
        assert (await client.get("/healthz", timeout=60)).status_code == 200
        for n in range(ALL):
            again = (await submit(client, n)).raise_for_status().json()["run"]
            assert acknowledged.setdefault(n, again) == again
        for n, run in acknowledged.items():
            view = await ended(client, run)
            assert (view["status"], view["output"]) == ("succeeded", {"n": n})
    assert await server.stop(10) == 0
    with closing(open_read_only(servers.db)) as db:
        assert list(check(db, evidence=Evidence(acknowledged=list(acknowledged.values())))) == []
