"""Servers on one database, each of them frozen again and again for longer than its lease: every result once, and what a
frozen one held is taken over soon."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sqlite3
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, suppress
from pathlib import Path

import httpx
import pytest

from tests.support.journal import Journal, data_of
from tests.support.server import ServerProcess, free_port
from tests.support.service import Service, chain, serve
from tests.support.size import WHOLE, size
from tests.support.until import until

SERVERS, RUNS, STOPS = size(2, 4), size(80, 2_000), size(10, 200)
STEPS, LEASE_S = 3, 1.0
TAKEOVER_S = LEASE_S + size(5, 1)  # after the freeze; a sample is taken on machines that have other things to do
TAKEOVER_MAX_S = LEASE_S + size(30, 5)
CALL_S = 0.3  # each call is held about this long, so that a freeze finds some of them under way

pytestmark = [pytest.mark.proof, pytest.mark.soak, pytest.mark.timeout(0 if WHOLE else 180)]


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    async with serve() as made:
        made.holds.update(f"/step/{number}" for number in range(1, STEPS + 1))
        yield made


async def test_each_result_is_recorded_once_whichever_server_is_frozen(tmp_path: Path, service: Service) -> None:
    db, chance = tmp_path / "weft.db", random.Random(4)
    environ = {"WEFT_LEASE_MS": str(round(LEASE_S * 1000)), "WEFT_ALLOW_PRIVATE": service.place, "WEFT_LOG": "warning"}
    logs = [tmp_path / f"{number}.log" for number in range(SERVERS)]
    servers: list[ServerProcess] = []
    stops: list[float] = []
    for log in logs:
        server = await ServerProcess.start(db, free_port(random.Random()), log, **environ)
        servers.append(server)
        await server.ready()
    releasing = asyncio.create_task(_answer(service))
    pairs = [servers[first : first + 2] for first in range(0, SERVERS, 2)]
    freezing = [asyncio.create_task(_freeze(pair, chance, stops)) for pair in pairs]
    try:
        acknowledged = await _submit(servers, chain(service.url, STEPS), chance, stops)
        await until(lambda: not (_over(db) < RUNS or len(stops) < STOPS), within_s=120 + RUNS * STEPS / 10)
    finally:
        for task in freezing:
            task.cancel()
        await asyncio.gather(*freezing, return_exceptions=True)
        releasing.cancel()
        for server in servers:
            server.thaw()
    assert {await server.stop(60) for server in servers} == {0}

    journal = Journal(db)
    journal.is_sound()
    journal.is_dense()
    journal.all_succeeded()
    journal.results_are_recorded_once()
    assert sorted(journal.runs) == sorted(acknowledged), "a run was lost, or made twice"
    recorded = [
        json.loads(row["output"])["body"]["serial"]
        for rows in journal.events.values()
        for row in rows
        if row["type"] == "node.succeeded" and row["node"].startswith("step")
    ]
    assert len(recorded) == len(set(recorded)) == RUNS * STEPS
    epochs = sum(row["epoch"] > 1 for row in journal.runs.values())
    refused = sum("lost the lease to another worker" in log.read_text() for log in logs)
    assert epochs, "no run changed its owner: nothing was tested"
    taken_over_s = sorted(_taken_over(journal, stops))
    print(
        {
            "servers": SERVERS,
            "runs": RUNS,
            "stops": len(stops),
            "attempts taken over": len(taken_over_s),
            "after s (median, slowest)": (round(statistics.median(taken_over_s), 2), round(taken_over_s[-1], 2)),
            "changed hands": epochs,
            "calls made again": len(service.calls) - len(recorded),
            "processes that were refused": refused,
            "load": os.getloadavg()[0],
        }
    )
    assert statistics.median(taken_over_s) <= TAKEOVER_S
    assert taken_over_s[-1] <= TAKEOVER_MAX_S


def _taken_over(journal: Journal, stops: list[float]) -> Iterator[float]:
    """Seconds from the last freeze before it, for each attempt that another server found lost."""
    for rows in journal.events.values():
        for row in rows:
            if row["type"] == "retry.scheduled" and data_of(row)["error"]["code"] == "attempt_lost":
                yield min(row["at_ms"] / 1000 - at for at in stops if at <= row["at_ms"] / 1000)


async def _answer(service: Service) -> None:
    """Each call after a moment, as the world does."""
    while True:
        await asyncio.sleep(CALL_S)
        service.release()


async def _freeze(servers: list[ServerProcess], chance: random.Random, stops: list[float]) -> None:
    """One after the other, for more than a lease, in the middle of whatever it does. `stops`: when, in Unix seconds."""
    while True:
        for server in servers:
            await asyncio.sleep(chance.uniform(0.2, 1.0))
            server.freeze()
            stops.append(time.time())
            try:
                await asyncio.sleep(LEASE_S * chance.uniform(1.2, 2.0))
            finally:
                server.thaw()


async def _submit(
    servers: list[ServerProcess], document: object, chance: random.Random, stops: list[float]
) -> list[str]:
    """Ids of all runs, spread over all stops. What a frozen server does not answer is asked again, of any server, with
    the same key."""
    gate = asyncio.Semaphore(20)

    async def one(number: int) -> str:
        while len(stops) < number * STOPS // RUNS:
            await asyncio.sleep(0.05)
        async with gate:
            while True:
                server = chance.choice(servers)
                with suppress(httpx.TransportError):
                    answer = await client.post(
                        f"{server.url}/api/runs",
                        json={"document": document},
                        headers={"idempotency-key": f"run-{number}"},
                    )
                    assert answer.status_code in (200, 202), answer.text
                    return str(answer.json()["run"])

    async with httpx.AsyncClient(timeout=1.5) as client:
        return await asyncio.gather(*(one(number) for number in range(RUNS)))


def _over(db: Path) -> int:
    with closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM runs WHERE status = 'succeeded'").fetchone()
        assert isinstance(count, int)
        return count
