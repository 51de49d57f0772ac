"""The disk takes no more under a running server: it says so, loses nothing it acknowledged, and continues when there is
room again. Once on a disk that is full, where users may have one, and once with a limit on the size of files, which
needs nothing: the kernel refuses the same writes, with an error that SQLite takes for one of the disk, so that the
answer may be 503 as well."""

from __future__ import annotations

import asyncio
import itertools
import random
import resource
import time
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from executor.kernel.store.sqlite.reading import open_reading
from executor.service.upkeep.findings import Evidence
from executor.service.upkeep.invariants import check
from tests.e2e.crash.conftest import ON_A_FILE, Servers
from tests.support.api import ended
from tests.support.server import ServerProcess, free_port
from tests.support.size import WHOLE, size
from tests.support.small_disk import NoDisk, SmallDisk, small_disk
from tests.support.until import until

pytestmark = pytest.mark.proof

ALL = 40  # runs
MANY = size(120, 1_000)
DISK_BYTES = 64 * 1024 * 1024  # what they need is a third of it
PAD = 4_000
LEFT_BYTES = 300_000
FULL_S = 2.0  # so long nothing can be written
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


async def submit(client: httpx.AsyncClient, n: int, pad: int = 20_000) -> httpx.Response:
    body = {"input": {"n": n, "pad": "x" * pad}}
    return await client.post(
        "/api/workflows/steps/runs", json=body, headers={"Idempotency-Key": f"run-{n}"}, timeout=60
    )


@ON_A_FILE
async def test_a_full_disk_is_reported_and_survived(servers: Servers) -> None:
    server = await servers.start()
    acknowledged: dict[int, str] = {}
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
        (await client.post("/api/workflows", json={"document": DOCUMENT})).raise_for_status()
        for n in range(20):
            acknowledged[n] = (await submit(client, n)).raise_for_status().json()["run"]

        fill(server)
        answers = dict(enumerate(await asyncio.gather(*(submit(client, n) for n in range(20, ALL))), 20))
        assert not any(answer.is_success for answer in answers.values())
        for answer in answers.values():
            assert answer.status_code in (503, 507), answer.text
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["code"] in ("db_unavailable", "db_full", "db_write_failed")
        assert (await client.get("/readyz", timeout=60)).status_code in (503, 507)
        assert (await client.get(f"/api/runs/{acknowledged[0]}")).is_success  # what is there can be read

        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, UNLIMITED)
        assert (await client.get("/readyz", timeout=60)).status_code == 200
        for n in range(ALL):
            again = (await submit(client, n)).raise_for_status().json()["run"]
            assert acknowledged.setdefault(n, again) == again
        for n, run in acknowledged.items():
            view = await ended(client, run)
            assert (view["status"], view["output"]) == ("succeeded", {"n": n})
    assert await server.stop(30) == 0
    with closing(open_reading(servers.file)) as db:
        assert list(check(db, evidence=Evidence(acknowledged=list(acknowledged.values())))) == []


@pytest.mark.soak
@pytest.mark.timeout(0 if WHOLE else 180)
async def test_a_disk_that_fills_up_under_runs(tmp_path: Path) -> None:
    """Another program takes the room while runs begin and end, and gives it back later."""
    try:
        with small_disk(tmp_path / "disk", DISK_BYTES) as disk:
            await fill_and_free(disk, tmp_path)
    except NoDisk as error:
        pytest.skip(f"a disk of its own needs unshare(1) and namespaces for users: {error}")


async def fill_and_free(disk: SmallDisk, folder: Path) -> None:
    log = folder / "log"
    server = await ServerProcess.start(disk.folder / "weft.db", free_port(random.Random()), log, within=disk.within)
    try:
        await server.ready()
        async with httpx.AsyncClient(base_url=server.url, timeout=60, trust_env=False) as client:
            (await client.post("/api/workflows", json={"document": DOCUMENT})).raise_for_status()
            refused: list[int] = []
            acknowledged: dict[int, str] = {}
            numbers = itertools.count()
            freed_at: float | None = None

            async def start() -> None:
                """One run after the other: as long as the disk is full, there is always one that wants to begin."""
                while freed_at is None or len(acknowledged) < MANY:
                    n = next(numbers)
                    while not (answer := await submit(client, n, PAD)).is_success:
                        assert (answer.status_code, answer.json()["code"]) == (507, "db_full"), answer.text
                        refused.append(n)
                        await asyncio.sleep(0.2)
                    acknowledged[n] = answer.json()["run"]

            starting = [asyncio.create_task(start()) for _ in range(8)]
            while len(acknowledged) < MANY // 4:
                await asyncio.sleep(0.01)
            disk.fill(LEFT_BYTES)
            await until(lambda: refused)
            disk.fill()
            before = next(iter(acknowledged.values()))
            health: set[int] = set()
            full_at = time.monotonic()
            # It may well be 200 now and then: what is small fits into what the WAL has already.
            while time.monotonic() < full_at + FULL_S or 507 not in health:
                assert time.monotonic() < full_at + 60, health
                ready = await client.get("/readyz", timeout=60)
                # 503: a write that fails took longer than a second, on a busy machine.
                assert ready.status_code in (200, 507) or "no write within" in ready.text, ready.text
                health.add(ready.status_code)
                assert (await client.get(f"/api/runs/{before}", timeout=60)).is_success
                disk.fill()  # a WAL that begins again leaves room
                await asyncio.sleep(0.05)
            disk.free()
            freed_at = time.monotonic()
            assert (await client.get("/readyz", timeout=60)).status_code == 200
            async with asyncio.timeout(120):
                await asyncio.gather(*starting)
            for n, run in acknowledged.items():
                view = await ended(client, run)
                assert (view["status"], view["output"]) == ("succeeded", {"n": n})
            went_on_s = time.monotonic() - freed_at
        assert await server.stop(30) == 0
    finally:
        await server.clean_up()
    assert "Traceback" not in log.read_text(), log.read_text()[-4000:]
    disk.copy(folder / "left")
    with closing(open_reading(folder / "left" / "weft.db")) as db:
        assert list(check(db, evidence=Evidence(acknowledged=list(acknowledged.values())))) == []
    print(
        {"runs": len(acknowledged), "refused": len(refused), "all ended, s after there was room": round(went_on_s, 1)}
    )
