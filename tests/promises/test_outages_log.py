"""An outage of the database is one line of the log of each process, however many runs, requests and tasks notice it."""

from __future__ import annotations

import asyncio
import random
import re
from pathlib import Path
from typing import Final

import httpx
import pytest

pytest.importorskip("psycopg")

from tests.support.documents import in_a_row
from tests.support.postgres import as_url, by_its_clock, socket_of
from tests.support.postgres_proxy import Proxy
from tests.support.server import ServerProcess, free_port

pytestmark = pytest.mark.proof

NAPS: Final = {
    "document": in_a_row("naps", {f"nap{n}": {"type": "wait", "params": {"seconds": 0.5}} for n in range(60)})
}
RUNS: Final = 20
AWAY_S, AFTER_S = 20.0, 8.0
LINE: Final = re.compile(r"\d{4}-\d\d-\d\d ")
OUTAGE: Final = "the database failed: "
OTHERS: Final = ("the bus does not work", "the bus works again", "lost the lease", "the event loop")


@pytest.mark.parametrize("how", ["refuses", "says nothing"])
async def test_an_outage_is_one_line(how: str, postgres: str, tmp_path: Path) -> None:
    proxy = Proxy(socket_of(postgres))
    await proxy.start()
    settings = {
        "WEFT_DB": as_url(by_its_clock(postgres), host="127.0.0.1", port=str(proxy.port)),
        "WEFT_SECRET_KEY": "k" * 32,
        "WEFT_LEASE_MS": "4000",
    }
    processes: dict[str, ServerProcess] = {}
    try:
        for command in ("serve", "worker"):
            port, log = free_port(random.Random()), tmp_path / command
            processes[command] = await ServerProcess.start(
                tmp_path / "no.db", port, log, command=(command,), **settings
            )
            await processes[command].ready()
        async with httpx.AsyncClient(base_url=processes["serve"].url, timeout=60) as client:
            for _ in range(RUNS):
                (await client.post("/api/runs", json=NAPS)).raise_for_status()
            await asyncio.sleep(1)
            before = {command: (tmp_path / command).stat().st_size for command in processes}
            asking = asyncio.create_task(_ask(client))
            if how == "refuses":
                await proxy.refuse()
                await asyncio.sleep(AWAY_S)
                await proxy.accept()
            else:
                proxy.be_silent()
                await asyncio.sleep(AWAY_S)
                proxy.be_heard()
            await asyncio.sleep(AFTER_S)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        for command in processes:
            lines = (tmp_path / command).read_bytes()[before[command] :].decode().splitlines()
            assert len([line for line in lines if OUTAGE in line]) == 1, lines
            assert all(LINE.match(line) for line in lines), lines
            assert [line for line in lines if OUTAGE not in line and not any(each in line for each in OTHERS)] == []
            assert len(lines) <= 1 + len(OTHERS), lines
    finally:
        for process in processes.values():
            await process.clean_up()
        proxy.be_heard()
        await proxy.stop()


async def _ask(client: httpx.AsyncClient) -> None:
    while True:
        await client.get("/api/runs")
        await client.post("/api/runs", json=NAPS)
        await client.get("/metrics")
        await asyncio.sleep(0.1)
