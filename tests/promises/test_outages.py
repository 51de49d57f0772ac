"""Outages of the database: how soon requests hear of one, and how soon everything works again."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

pytest.importorskip("psycopg")

from tests.support.documents import document
from tests.support.postgres import as_url, by_its_clock, socket_of
from tests.support.postgres_proxy import Proxy
from tests.support.server import ServerProcess, free_port
from tests.support.until import until

pytestmark = pytest.mark.proof

RUN = {"document": document("sets", "start a", blocks={"a": {"type": "set"}})}
REFUSED_S = 20.0  # the pauses of a pool that double without a bound are 8 and 16 s by then
BACK_S = 4.0  # a second is promised; this machine may be busy
ANSWERED_S = 8.0  # five are promised
HEALTHY_S = 3.0  # one is promised


class Processes:
    """Of one database behind a proxy, certain to be gone afterwards."""

    def __init__(self, folder: Path, address: str) -> None:
        self._folder = folder
        self._environ = {"WEFT_SECRET_KEY": "k" * 32, "WEFT_DB": address}
        self._all: list[ServerProcess] = []

    async def start(self, *command: str, wait: bool = True, **environ: str) -> ServerProcess:
        port = free_port(random.Random())
        settings = {**self._environ, **environ}
        process = await ServerProcess.start(self._folder / "no.db", port, self.log, command=command, **settings)
        self._all.append(process)
        if wait:
            await process.ready()
        return process

    @property
    def log(self) -> Path:
        return self._folder / "log"

    async def clean_up(self) -> None:
        for process in self._all:
            await process.clean_up()


@pytest_asyncio.fixture
async def proxy(postgres: str) -> AsyncIterator[Proxy]:
    made = Proxy(socket_of(postgres))
    await made.start()
    yield made
    made.be_heard()
    await made.stop()


@pytest_asyncio.fixture
async def processes(tmp_path: Path, postgres: str, proxy: Proxy) -> AsyncIterator[Processes]:
    address = as_url(by_its_clock(postgres), host="127.0.0.1", port=str(proxy.port))
    made = Processes(tmp_path, address)
    yield made
    await made.clean_up()


async def timed(client: httpx.AsyncClient, method: str, path: str, **kwargs: object) -> tuple[float, httpx.Response]:
    began_s = time.monotonic()
    response = await client.request(method, path, **kwargs)  # type: ignore[arg-type]
    return time.monotonic() - began_s, response


async def test_all_that_uses_the_database_is_back_soon_after_it(processes: Processes, proxy: Proxy) -> None:
    server = await processes.start("serve", "--no-worker")
    worker = await processes.start("worker")
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
        assert (await client.get("/api/runs")).status_code == 200
        await proxy.refuse()
        until_s = time.monotonic() + REFUSED_S
        while time.monotonic() < until_s:
            assert (await client.get("/api/runs")).status_code == 503
            await asyncio.sleep(0.5)
        await proxy.accept()

        async def works() -> bool:
            return (await client.get("/api/runs")).status_code == 200

        began_s = time.monotonic()
        await until(works, within_s=60)
        reads_s = time.monotonic() - began_s
        ended = (await client.post("/api/runs?wait=30", json=RUN)).json()
        runs_s = time.monotonic() - began_s
        ready = (await client.get("/readyz")).status_code
    assert reads_s < BACK_S, f"reads came back after {reads_s:.1f} s"
    assert ended["status"] == "succeeded" and runs_s < 2 * BACK_S, f"a run took until {runs_s:.1f} s"
    assert ready == 200
    assert await worker.stop(60) == await server.stop(60) == 0


async def test_a_database_that_says_nothing_is_a_503_in_time(processes: Processes, proxy: Proxy) -> None:
    server = await processes.start("serve")
    worker = await processes.start("worker", "--metrics-port", str(port := free_port(random.Random())))
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
        assert (await client.get("/api/runs")).status_code == 200
        proxy.be_silent()
        answers = await asyncio.gather(
            *(timed(client, "POST", "/api/runs", json=RUN) for _ in range(5)),
            *(timed(client, "GET", "/api/runs") for _ in range(8)),
        )
        for took_s, answer in answers:
            assert answer.status_code == 503 and "Retry-After" in answer.headers, answer.text
            assert took_s < ANSWERED_S, f"{answer.request.method} was answered after {took_s:.1f} s"
        beside = f"http://127.0.0.1:{port}"
        for url, status in (
            ("/healthz", 200),
            ("/readyz", 503),
            ("/metrics", 200),
            (f"{beside}/healthz", 200),
            (f"{beside}/readyz", 503),
            (f"{beside}/metrics", 200),
        ):
            took_s, answer = await timed(client, "GET", url)
            assert (answer.status_code, took_s < HEALTHY_S) == (status, True), f"{url}: {answer.text} in {took_s:.1f} s"
            if url.endswith("/metrics"):
                assert "weft_database_up 0.0" in answer.text and "weft_build_info" in answer.text
        proxy.be_heard()

        async def starts() -> bool:
            return (await client.post("/api/runs", json=RUN)).status_code == 202

        began_s = time.monotonic()
        await until(starts, within_s=60)
        back_s = time.monotonic() - began_s
        assert back_s < BACK_S, f"a run could be started after {back_s:.1f} s"
    assert await worker.stop(60) == await server.stop(60) == 0


async def test_a_process_that_waits_for_its_database_answers_clients(processes: Processes, proxy: Proxy) -> None:
    await proxy.refuse()
    server = await processes.start("serve", "--no-worker", wait=False)
    beside = f"http://127.0.0.1:{(port := free_port(random.Random()))}"
    worker = await processes.start("worker", "--metrics-port", str(port), wait=False)
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:

        async def waits(url: str) -> bool:
            try:
                return (await client.get(url)).status_code == 200
            except httpx.ConnectError:
                return False

        await until(lambda: waits("/healthz"), within_s=60)
        await until(lambda: waits(f"{beside}/healthz"), within_s=60)
        asked = await client.post("/api/runs", json=RUN)
        assert (asked.status_code, asked.json()["code"]) == (503, "db_unavailable"), asked.text
        assert "Retry-After" in asked.headers
        assert (await client.get("/readyz")).status_code == (await client.get(f"{beside}/readyz")).status_code == 503
        await proxy.accept()
        await server.ready()
        await worker.ready()
        ended = (await client.post("/api/runs?wait=30", json=RUN)).json()
        assert ended["status"] == "succeeded", ended
    assert await worker.stop(60) == await server.stop(60) == 0
