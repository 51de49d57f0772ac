"""A run whose worker was killed is not simply `running`: it is stale, since a given time, until another one has it."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.command import weft
from tests.support.documents import document
from tests.support.endpoints import Request, Server, http
from tests.support.place import Place
from tests.support.server import ServerProcess, free_port
from tests.support.until import until


@asynccontextmanager
async def silent() -> AsyncIterator[Server]:
    """Receives requests and answers them at its end."""
    answered = asyncio.Event()

    async def handle(request: Request) -> bytes:
        await answered.wait()
        return b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"

    async with http(handle) as server:
        yield server
        answered.set()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sqlite":
        return tmp_path / "weft.db"
    address: str = request.getfixturevalue("postgres")
    return address


async def test_a_run_whose_owner_was_killed_is_stale_until_another_one_has_it(place: Place, tmp_path: Path) -> None:
    choose = random.Random()
    servers: list[ServerProcess] = []

    async def started(pools: str) -> ServerProcess:
        environ = {"WEFT_LEASE_MS": "1000", "WEFT_ALLOW_PRIVATE": service.place, "WEFT_POOLS": pools}
        server = await ServerProcess.start(place, free_port(choose), tmp_path / "log", **environ)
        servers.append(server)
        await server.ready()
        return server

    async with silent() as service:
        calls = document("calls", "start get", blocks={"get": {"type": "http", "params": {"url": service.url}}})
        asks = document("asks", "start ask", blocks={"ask": {"type": "approval", "params": {"title": "Go on?"}}})
        try:
            owner, reader = await started("default"), await started("other")  # which leaves these runs alone
            async with httpx.AsyncClient(base_url=reader.url, timeout=60) as client:

                async def start(body: dict[str, Any]) -> str:
                    run: str = (await client.post("/api/runs", json={"document": body})).json()["run"]
                    return run

                async def seen(run: str) -> tuple[Any, Any]:
                    """As it is alone and in the list; asked again if it changed between."""
                    while True:
                        alone, listed, again = [
                            (await client.get(path)).json()
                            for path in (f"/api/runs/{run}", "/api/runs", f"/api/runs/{run}")
                        ]
                        (row,) = (each for each in listed["runs"] if each["id"] == run)
                        before, in_list, after = (
                            (each["stale"], each["stale_since_ms"]) for each in (alone, row, again)
                        )
                        if before == after:
                            assert in_list == before
                            return before

                parked, run = await start(asks), await start(calls)

                async def is_asleep() -> bool:
                    return bool((await client.get(f"/api/runs/{parked}")).json()["status"] == "waiting")

                await until(lambda: service.seen)
                await until(is_asleep)
                assert await seen(run) == (False, None)
                killed_ms = time.time() * 1000
                await owner.kill()

                async def is_stale() -> Any:
                    return (await seen(run))[0]

                await until(is_stale, within_s=20)
                since_ms = (await seen(run))[1]
                assert -1500 < since_ms - killed_ms < 2500, "when its lease of a second was over"
                await asyncio.sleep(0.3)
                assert await seen(run) == (True, since_ms)
                assert await seen(parked) == (False, None), "it has no worker, and needs none"
                environ = {"WEFT_URL": reader.url}
                listed = await asyncio.to_thread(weft, "runs", environ=environ)
                lines = {line.split()[0]: line for line in listed.stdout.splitlines()}
                assert "stale: its worker stopped responding" in lines[run] and "stale" not in lines[parked]
                why = await asyncio.to_thread(weft, "why", run, environ=environ)
                assert "the worker of the run stopped responding at " in why.stdout
                assert (
                    "another one will continue it" in why.stdout
                    and "stopped" not in (await asyncio.to_thread(weft, "why", parked, environ=environ)).stdout
                )

                await started("default")

                async def goes_on() -> bool:
                    return not (await seen(run))[0]

                await until(goes_on, within_s=20)
                assert await seen(run) == (False, None)
        finally:
            for server in servers:
                await server.clean_up()
