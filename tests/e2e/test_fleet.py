"""A fleet: servers without a worker, and workers, as real processes on one database."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import httpx_sse
import pytest
import pytest_asyncio

pytest.importorskip("psycopg")

from tests.support.documents import document
from tests.support.server import ServerProcess, free_port
from tests.support.service import Call, Service, chain, serve
from tests.support.until import until

pytestmark = pytest.mark.proof

RUNS = 8
STEPS = 40
ASKING = document(
    "asks", "start ask", blocks={"ask": {"type": "approval", "params": {"title": "Go on?", "actions": ["approve"]}}}
)
HELD = "/step/2"
SHARED = {"WEFT_SECRET_KEY": "k" * 32, "WEFT_LEASE_MS": "2000"}


class Fleet:
    """Processes on one database that are certain to be gone afterwards. `name` of a worker is what its runs read as
    WEFT_BASE_URL."""

    def __init__(self, folder: Path, database: str, service: Service) -> None:
        self._folder = folder
        self._environ = {**SHARED, "WEFT_DB": database, "WEFT_ALLOW_PRIVATE": service.place}
        self._processes: list[ServerProcess] = []

    async def server(self, *options: str) -> ServerProcess:
        return await self._start(("serve", "--no-worker", *options))

    async def worker(self, name: str, *options: str) -> ServerProcess:
        return await self._start(("worker", *options), WEFT_BASE_URL=f"http://{name}")

    async def _start(self, command: Sequence[str], **environ: str) -> ServerProcess:
        log, port = self._folder / "log", free_port(random.Random())
        all_of_it = {**self._environ, **environ}
        process = await ServerProcess.start(self._folder / "no.db", port, log, command=command, **all_of_it)
        self._processes.append(process)
        await process.ready()
        return process

    async def clean_up(self) -> None:
        for process in self._processes:
            await process.clean_up()


@pytest_asyncio.fixture
async def service() -> AsyncIterator[Service]:
    async with serve() as made:
        yield made


@pytest.fixture(params=["postgres", "sqlite"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "weft.db")
    from tests.support.postgres import by_its_clock

    return by_its_clock(str(request.getfixturevalue("postgres")))


@pytest_asyncio.fixture
async def fleet(tmp_path: Path, database: str, service: Service) -> AsyncIterator[Fleet]:
    made = Fleet(tmp_path, database, service)
    yield made
    await made.clean_up()


async def test_runs_of_workers_that_are_killed_or_stopped_end_elsewhere(fleet: Fleet, service: Service) -> None:
    front = await fleet.server()
    service.holds.add(HELD)
    async with httpx.AsyncClient(base_url=front.url, timeout=60) as client:
        runs = [await _submit(client, service) for _ in range(RUNS)]
        assert not service.calls, "a server without a worker executed a run"
        first = await fleet.worker("first")
        await until(lambda: len(_held_of("first", service)) == RUNS)
        second = await fleet.worker("second")
        await first.kill()
        await until(lambda: len(_held_of("second", service)) == RUNS)
        third = await fleet.worker("third", "--metrics-port", "0")
        assert await second.stop(60) == 0  # its handlers wait for an answer: they are cancelled after their grace
        ended_s = time.monotonic()
        await until(lambda: len(_held_of("third", service)) == RUNS)
        print(f"all runs of a worker that ended are elsewhere after {time.monotonic() - ended_s:.2f} s")
        service.holds.clear()
        service.release()
        for run in runs:
            ended = await _end(client, run)
            assert ended["status"] == "succeeded", ended
    keys = [call.key for call in service.calls if call.path == HELD]
    assert len(keys) == 3 * RUNS and len(set(keys)) == RUNS, "an effect was repeated under another key"
    assert await third.stop(60) == await front.stop(60) == 0


async def test_any_server_streams_answers_and_shows_live(postgres: str, tmp_path: Path, service: Service) -> None:
    """What a worker does is seen at servers that execute nothing, as soon as it is committed."""
    from tests.support.postgres import by_its_clock

    fleet = Fleet(tmp_path, by_its_clock(postgres), service)
    try:
        await fleet.worker("worker")
        first, second = await fleet.server(), await fleet.server()
        async with (
            httpx.AsyncClient(base_url=first.url, timeout=60) as client,
            httpx.AsyncClient(base_url=second.url, timeout=60) as other,
        ):
            run = await _submit(client, service, STEPS)
            late_ms = [late async for event, late in _followed(other, run) if event["type"] == "node.succeeded"]
            late_ms.sort()
            print(
                f"a follower elsewhere: p50 {late_ms[len(late_ms) // 2]} ms, p90 {late_ms[len(late_ms) * 9 // 10]} ms"
            )
            assert late_ms[len(late_ms) // 2] < 500, "found by looks, not by messages"
            everything = [event async for event, _ in _followed(client, run)]
            resumed = [event async for event, _ in _followed(other, run, last=str(everything[4]["seq"]))]
            assert resumed == everything[5:]

            asked = await client.post("/api/runs?wait=30", json={"document": ASKING})
            assert asked.json()["status"] == "waiting", asked.text
            (wait,) = (await other.get("/api/waits", params={"run": asked.json()["run"]})).json()["waits"]
            link = httpx.URL(wait["link"]).path
            assert (await other.post(link, json={"action": "approve", "fields": {}})).status_code == 200
            began = asyncio.get_running_loop().time()
            assert (await _end(client, asked.json()["run"]))["status"] == "succeeded"
            assert asyncio.get_running_loop().time() - began < 4, "its worker found the answer by a look"
    finally:
        await fleet.clean_up()


async def _followed(
    client: httpx.AsyncClient, run: str, last: str | None = None
) -> AsyncIterator[tuple[dict[str, Any], int]]:
    """Events with the milliseconds after which each came; all clocks are those of this machine."""
    headers = {} if last is None else {"Last-Event-ID": last}
    async with httpx_sse.aconnect_sse(client, "GET", f"/api/runs/{run}/events", headers=headers) as source:
        async for frame in source.aiter_sse():
            if not frame.data:  # how soon to come back
                continue
            event = frame.json()
            yield event, time.time_ns() // 1_000_000 - event["at_ms"]


def _held_of(worker: str, service: Service) -> list[Call]:
    return [call for call in service.calls if call.path == HELD and call.server == f"http://{worker}"]


async def _submit(client: httpx.AsyncClient, service: Service, steps: int = 3) -> str:
    response = await client.post("/api/runs", json={"document": chain(service.url, steps)})
    assert response.status_code in (200, 201, 202), response.text
    return str(response.json()["run"])


async def _end(client: httpx.AsyncClient, run: str) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            found: dict[str, Any] = (await client.get(f"/api/runs/{run}")).json()
            if found["status"] in ("succeeded", "failed", "cancelled"):
                return found
            await asyncio.sleep(0.05)
