"""The operating system refuses every change of the files for a while: what the server answers, and what is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.kernel.store.sqlite.reading import open_reading
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.writer import Retry
from executor.open.engine import Engine
from executor.service.upkeep.findings import Evidence
from executor.service.upkeep.invariants import check
from server.app import create_app
from server.settings import Settings
from tests.support.adapter import connects
from tests.support.vfs import Op, Trouble, Vfs, trouble

pytestmark = pytest.mark.proof

DOCUMENT: dict[str, Any] = {
    "format": "weft/1",
    "name": "naps",
    "blocks": {
        "start": {"type": "start"},
        "nap": {"type": "wait", "params": {"seconds": 0.1}},
        "last": {"type": "set", "params": {"value": "<start.n>"}},
    },
    "edges": [{"source": "start", "target": "nap"}, {"source": "nap", "target": "last"}],
}


class World:
    """A server over files that refuse every change while `refuses` says how."""

    def __init__(self, db: Path) -> None:
        self.db = db
        self.refuses: Trouble | None = None
        self.refused = 0

    def before(self, op: Op) -> None:
        if self.refuses is not None and (self.refuses == "EIO" or op.kind == "write"):
            self.refused += 1
            raise trouble(self.refuses, op)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path / "weft.db")
    vfs = Vfs("weft-refused", before=made.before)
    yield made
    vfs.unregister()


@asynccontextmanager
async def serving(world: World) -> AsyncIterator[httpx.AsyncClient]:
    sandbox = Sandbox(threads=1)
    connect, connect_reader = connects("weft-refused")
    quick = Retry(attempts=2, base_ms=5, cap_ms=10)
    engine = await Engine.open(
        SQLiteStore(world.db, connect=connect, connect_reader=connect_reader, retry=quick),
        registry=Registry.load(sandbox=sandbox),
        services=Services(sandbox=sandbox, http=GuardedClient()),
        secret=b"a secret of more than sixteen bytes",
        lease_ms=1000,
    )
    app = create_app(Settings(db_path=str(world.db), secret_key="a secret for tests only"), engine)
    transport = httpx.ASGITransport(app=app)
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765", timeout=60) as client:
            yield client
    finally:
        await engine.close()


async def start(client: httpx.AsyncClient, n: int) -> httpx.Response:
    body = {"document": DOCUMENT, "input": {"n": n}}
    return await client.post("/api/runs", json=body, headers={"Idempotency-Key": f"run-{n}"})


@pytest.mark.parametrize(("kind", "statuses"), [("ENOSPC", {507}), ("EIO", {503})])
async def test_it_reports_it_and_continues_when_it_is_over(world: World, kind: Trouble, statuses: set[int]) -> None:
    async with serving(world) as client:
        runs = await refuse_for_a_while(world, client, kind, statuses)
    with closing(open_reading(world.db)) as db:
        assert list(check(db, evidence=Evidence(acknowledged=runs))) == []


async def refuse_for_a_while(world: World, client: httpx.AsyncClient, kind: Trouble, statuses: set[int]) -> list[str]:
    """Returns the runs that were acknowledged."""
    runs: dict[int, str] = {n: (await start(client, n)).raise_for_status().json()["run"] for n in range(5)}
    assert (await client.get("/readyz")).status_code == 200

    world.refuses = kind
    for n in range(5, 10):
        answer = await start(client, n)
        assert answer.status_code in statuses, answer.text
        assert answer.json()["code"] in ("db_unavailable", "db_full", "db_write_failed")
    assert (await client.get("/readyz")).status_code in statuses
    assert (await client.get(f"/api/runs/{runs[0]}")).is_success  # what is there can be read
    await asyncio.sleep(0.3)  # the runs are due, and cannot write down that they go on
    assert world.refused > 0

    world.refuses = None
    assert (await client.get("/readyz")).status_code == 200
    for n in range(10):
        run = (await start(client, n)).raise_for_status().json()["run"]
        assert runs.setdefault(n, run) == run
    async with asyncio.timeout(60):
        for n, run in runs.items():
            while (view := (await client.get(f"/api/runs/{run}")).json())["status"] in ("queued", "running", "waiting"):
                await asyncio.sleep(0.02)
            assert (view["status"], view["output"]) == ("succeeded", n)
    return list(runs.values())
