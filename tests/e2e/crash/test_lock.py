"""Another process holds the write lock of the database, as a user's SQL shell may: for seconds, which only delays,
and for longer than the server waits, which it says. Either way it loses nothing and continues by itself."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.e2e.crash.client import EACH, Client, nap, sound
from tests.e2e.crash.conftest import ON_A_FILE, Servers
from tests.support.other_process import OtherProcess
from tests.support.service import Service
from tests.support.size import WHOLE
from tests.support.until import until

pytestmark = pytest.mark.proof

NEW = 20  # runs that are asked for while it is locked
NAP_S = 1.0
SHORT_S = 2.5  # below the 4 s that a request waits for its write
BUSY_MS = 500 if WHOLE else 200
TRIES = 51 if WHOLE else 7
TOO_LONG_S = 45.0 if WHOLE else 4.0  # 51 tries of half a second with pauses between: 38 s; 7 of 0.2 s: 2.5 s


@contextmanager
def locked(db: Path) -> Iterator[None]:
    other = OtherProcess(str(db))
    try:
        yield
    finally:
        other.let_go()


@ON_A_FILE
async def test_seconds_only_delay(servers: Servers, service: Service) -> None:
    """More than twice as long as a lease: who holds the runs keeps them all the same."""
    service.holds.add("/step/1")
    servers.allow(service)
    server = await servers.start()
    async with httpx.AsyncClient(base_url=server.url, timeout=60, trust_env=False) as http:
        client = Client(http)
        links = await client.begin(service, NAP_S)
        asked = [client.start(f"new-{n}", nap(NAP_S)) for n in range(NEW)] + [client.answer(link) for link in links]
        with locked(servers.file):
            began = time.monotonic()
            tasks = [asyncio.create_task(one) for one in asked]
            service.release()
            while time.monotonic() < began + SHORT_S:
                await client.status("nap-0")  # who waited for the lock would not come back: it is let go after this
                await asyncio.sleep(0.1)
            assert not any(task.done() for task in tasks), "it was acknowledged and cannot be on disk"
        for answer in await asyncio.gather(*tasks):
            assert answer.is_success, answer.text
        await client.ended()
    assert await server.stop(30) == 0
    sound(servers, client)
    assert len(service.calls) == EACH, "a call was made again, though its process lives"


@ON_A_FILE
async def test_a_request_that_waits_when_the_server_stops_gets_an_answer(servers: Servers, service: Service) -> None:
    """It is not known then whether it will be written; with the same key the next server does."""
    server = await servers.start()
    async with httpx.AsyncClient(base_url=server.url, timeout=60, trust_env=False) as http:
        client = Client(http)
        (await client.start("first", nap(0.01))).raise_for_status()
        await client.ended()  # nothing else waits for the lock
        with locked(servers.file):
            asked = asyncio.create_task(client.start("new", nap(0.01)))
            await asyncio.sleep(0.5)
            await client.status("first")  # asked later, on another connection: the server has both
            stopped = asyncio.create_task(server.stop(60))
            refused = await asked
            # Given up by the server, or by the writer that it stops: whichever comes first.
            assert refused.status_code == 503, refused.text
            assert refused.json()["code"] in ("server_stopping", "db_write_failed"), refused.text
            assert refused.headers["content-type"] == "application/problem+json"
            assert int(refused.headers["retry-after"]) > 0
            assert await stopped == 0
        server = await servers.start()
        (await client.start("new", nap(0.01))).raise_for_status()
        await client.ended()
    assert await server.stop(30) == 0
    sound(servers, client)


@ON_A_FILE
@pytest.mark.soak
@pytest.mark.timeout(0 if WHOLE else 120)
async def test_one_that_cannot_even_start_may_be_stopped(servers: Servers) -> None:
    server = await servers.start()
    assert await server.stop(30) == 0
    servers.alter(ALTERED_BUSY_MS="2000", ALTERED_TRIES="7")  # with pauses between 15 s, then it ends with 1
    with locked(servers.file):
        server = await servers.spawn()
        await until(lambda: _listens(servers.port))
        code = await server.stop(60)
    assert code in (0, -signal.SIGTERM), "it listens a moment before it listens to signals"
    assert servers.log.read_text() == ""


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@ON_A_FILE
async def test_what_is_too_long_is_reported_and_survived(servers: Servers, service: Service) -> None:
    service.holds.add("/step/1")
    servers.allow(service)
    servers.alter(ALTERED_BUSY_MS=str(BUSY_MS), ALTERED_TRIES=str(TRIES))
    server = await servers.start()
    async with httpx.AsyncClient(base_url=server.url, timeout=120, trust_env=False) as http:
        client = Client(http)
        links = await client.begin(service, NAP_S)
        with locked(servers.file):
            began = time.monotonic()
            first = asyncio.create_task(client.start("new-0", nap(NAP_S)))
            await asyncio.sleep(0.1)  # it is being tried; the others gather behind it
            rest = [asyncio.create_task(client.start(f"new-{n}", nap(NAP_S))) for n in range(1, NEW)]
            rest += [asyncio.create_task(client.answer(link)) for link in links]
            assert (await http.get("/healthz")).status_code == 200, "it waits for no write"
            ready = asyncio.create_task(http.get("/readyz"))
            service.holds.clear()  # what ended and could not be recorded is asked for again
            service.release()
            refused = await first
            refused_s = time.monotonic() - began
            assert (refused.status_code, refused.json()["code"]) == (503, "db_write_failed"), refused.text
            assert refused.headers["content-type"] == "application/problem+json"
            assert int(refused.headers["retry-after"]) > 0
            assert refused_s > BUSY_MS / 1000
            await client.status("nap-0")  # what is there can be read
            await asyncio.sleep(max(0.0, began + TOO_LONG_S - time.monotonic()))
        answers = await asyncio.gather(*rest, ready)
        assert {answer.status_code for answer in answers} <= {200, 202, 503}, [answer.text for answer in answers]
        assert (await http.get("/readyz")).status_code == 200
        for n in range(NEW):
            (await client.start(f"new-{n}", nap(NAP_S))).raise_for_status()
        for link in links:
            again = await client.answer(link)
            assert again.is_success or (again.status_code, again.json()["answered_by"]) == (409, "Ada"), again.text
        await client.ended()
    assert await server.stop(30) == 0
    sound(servers, client)
    print({"first 503 after s": round(refused_s, 1), "calls made again": len(service.calls) - EACH})
