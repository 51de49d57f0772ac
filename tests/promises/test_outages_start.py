"""A process that starts before its database waits for it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

pytest.importorskip("psycopg")

from server.settings import Settings
from tests.support.postgres import as_url, by_its_clock, socket_of
from tests.support.postgres_proxy import Proxy
from tests.support.server import ServerProcess, free_port

KINDS = {"server": ("serve",), "worker": ("worker", "--metrics-port", "0")}
DOWN = "waiting for"


async def logged(log: Path, words: str) -> None:
    """Return when the log has them."""
    async with asyncio.timeout(60):
        while words not in log.read_text():
            await asyncio.sleep(0.05)


def behind(postgres: str, port: int) -> str:
    return as_url(postgres, host="127.0.0.1", port=str(port), options="")


@pytest.mark.parametrize("command", KINDS.values(), ids=KINDS)
async def test_it_waits_for_its_database_and_then_starts(command: Sequence[str], postgres: str, tmp_path: Path) -> None:
    choose = random.Random()
    port, log = free_port(choose), tmp_path / "log"
    process = await ServerProcess.start(behind(postgres, port), free_port(choose), log, command=command)
    proxy = Proxy(socket_of(postgres), port=port)
    try:
        await logged(log, DOWN)
        await proxy.start()
        await process.ready(60)
        if command == KINDS["server"]:
            async with httpx.AsyncClient(base_url=process.url, timeout=60) as client:
                assert (await client.get("/readyz")).status_code == 200
        assert await process.stop(60) == 0
        assert log.read_text().count(DOWN) == 1, "one line for all tries of a minute"
    finally:
        await process.clean_up()
        await proxy.stop()


@pytest.mark.parametrize("command", KINDS.values(), ids=KINDS)
async def test_a_stop_ends_the_wait(command: Sequence[str], postgres: str, tmp_path: Path) -> None:
    choose = random.Random()
    log = tmp_path / "log"
    process = await ServerProcess.start(behind(postgres, free_port(choose)), free_port(choose), log, command=command)
    try:
        await logged(log, DOWN)
        assert await process.stop(60) == 0
    finally:
        await process.clean_up()


@pytest.mark.parametrize("command", KINDS.values(), ids=KINDS)
async def test_what_does_not_pass_ends_it_at_once(command: Sequence[str], postgres: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    missing = by_its_clock(as_url(postgres, dbname="missing"))
    process = await ServerProcess.start(missing, free_port(random.Random()), log, command=command)
    try:
        assert not await process.started(60) and process.exit_code == 1
        assert 'database "missing" does not exist' in log.read_text() and DOWN not in log.read_text()
        assert Settings(db_address=missing).database in log.read_text()
    finally:
        await process.clean_up()


async def test_a_silent_database_keeps_neither_metrics_nor_liveness(postgres: str, tmp_path: Path) -> None:
    """Prometheus gives up after ten seconds, and a supervisor sooner: both are answered by the process alone."""
    choose = random.Random()
    proxy = Proxy(socket_of(postgres))
    await proxy.start()
    process = await ServerProcess.start(behind(postgres, proxy.port), free_port(choose), tmp_path / "log")
    try:
        await process.ready(60)
        async with httpx.AsyncClient(base_url=process.url, timeout=9) as client:
            assert "weft_database_up 1.0" in (await client.get("/metrics")).text
            proxy.be_silent()
            for _ in range(2):  # the numbers of the database may be five seconds old
                asked = await client.get("/metrics")
                assert asked.status_code == 200 and (await client.get("/healthz")).status_code == 200
                if "weft_database_up 0.0" in asked.text:
                    break
                await asyncio.sleep(5.5)
            assert "weft_database_up 0.0" in asked.text
            assert (await client.get("/readyz")).status_code == 503
            proxy.be_heard()
    finally:
        await process.clean_up()
        await proxy.stop()
