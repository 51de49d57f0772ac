"""The machine's clock is set, or runs wild, under real servers: nothing fires early, twice or not at all, runs under
way go on, and what is new is begun at once. `altered.Wall` is the clock; time that only passes stays as it is."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import httpx
import pytest

from tests.e2e.crash.altered import Wall
from tests.e2e.crash.client import EACH, Client, nap, sound
from tests.e2e.crash.conftest import ON_A_FILE, Servers
from tests.support.journal import Journal, data_of
from tests.support.server import free_port
from tests.support.service import Service
from tests.support.size import WHOLE
from tests.support.until import until

MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
NAP_S = HOUR_S / 2
LEASE_S = 3.0  # a busy machine lets a server wait for a second now and then
SOON_S = 45.0  # an idle server looks at its database every 5 s; the machine may have other things to do. Not a minute:
# so long, at most, a server that starts leaves leases of another time alone.
FAST = 100.0

pytestmark = [pytest.mark.proof, pytest.mark.soak, pytest.mark.timeout(0 if WHOLE else 180)]


@pytest.fixture
def wall(tmp_path: Path, servers: Servers, service: Service) -> Wall:
    """Of all servers that are started."""
    service.holds.add("/step/1")
    servers.allow(service)
    servers.alter(ALTERED_CLOCK=str(tmp_path / "clock"), WEFT_LEASE_MS=str(round(LEASE_S * 1000)))
    return Wall(tmp_path / "clock")


async def every(http: httpx.AsyncClient, cron: str, catch_up: str) -> None:
    """Runs of `tick`."""
    params = {"cron": cron, "overlap": "allow", "catch_up": catch_up}
    blocks = {"at": {"type": "schedule", "params": params}}
    document = {"format": "weft/1", "name": "tick", "blocks": blocks, "edges": []}
    (await http.post("/api/workflows", json={"document": document})).raise_for_status()


def ticks(db: Path) -> dict[str, tuple[int, int]]:
    """By run of the schedule: its moment, and when it was started. A server may be at work on the file."""
    with closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT id, input FROM runs WHERE workflow = 'tick'").fetchall()
    inputs = {run: json.loads(text) for run, text in rows}
    return {run: (given["scheduled_at"], given["fired_at"]) for run, given in inputs.items()}


def ticked(db: Path, least: int) -> bool:
    """There are so many runs of the schedule, and all of them are over."""
    with closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT status FROM runs WHERE workflow = 'tick'").fetchall()
    return len(rows) >= least and all(status == "succeeded" for (status,) in rows)


def judged(servers: Servers, client: Client) -> tuple[Journal, list[int]]:
    """That nothing is lost, early or double. Returns the moments of the schedule."""
    moments = ticks(servers.file)
    journal = sound(servers, client, list(moments))
    for run, rows in journal.events.items():
        naps = [row for row in rows if row["node"] == "nap"]
        due_ms = [data_of(row)["due_ms"] for row in naps if row["type"] == "wait.opened"]
        fired_ms = [row["at_ms"] for row in naps if row["type"] == "wait.closed"]
        assert len(due_ms) == len(fired_ms) <= 1, run
        assert fired_ms >= due_ms, "a timer was early"
    assert all(due_ms <= at_ms for due_ms, at_ms in moments.values()), "a schedule was early"
    dues = sorted(due_ms for due_ms, _ in moments.values())
    assert len(dues) == len(set(dues)), "a moment of a schedule started two runs"
    return journal, dues


@ON_A_FILE
@pytest.mark.parametrize("step_s", [-HOUR_S, DAY_S, *([HOUR_S, -DAY_S] if WHOLE else [])])
async def test_a_clock_that_is_set_under_a_server(servers: Servers, service: Service, wall: Wall, step_s: int) -> None:
    """Set, and some time later set right again."""
    server = await servers.start()
    async with httpx.AsyncClient(base_url=server.url, timeout=90, trust_env=False) as http:
        client = Client(http)
        await every(http, "0 * * * *", "one")
        links = await client.begin(service, NAP_S)

        wall.step(step_s)
        assert (await client.answer(links[0])).is_success
        (await client.start("new-1", nap(0.1))).raise_for_status()
        await client.ended("new-1", SOON_S)
        if step_s > 0:
            await client.ended("nap", SOON_S)
        else:
            assert len([key for key in await client.those("waiting") if key.startswith("nap")]) == EACH, "it is early"

        wall.step(-step_s)
        for link in links[1:]:
            assert (await client.answer(link)).is_success
        (await client.start("new-2", nap(0.1))).raise_for_status()
        for done in ("ask", "new-2"):
            await client.ended(done, SOON_S)
        service.release()
        await client.ended("call", SOON_S)
        if step_s < 0:
            assert len([key for key in await client.those("waiting") if key.startswith("nap")]) == EACH, "it is early"
        wall.step(HOUR_S)
        await client.ended("nap", SOON_S)
        await until(lambda: ticked(servers.file, 1), within_s=SOON_S)
    assert await server.stop(30) == 0
    journal, dues = judged(servers, client)
    assert len(service.calls) == EACH, "a call was made again, though its process lives"
    assert {journal.runs[client.runs[f"call-{n}"]]["epoch"] for n in range(EACH)} == {1}
    assert dues


@ON_A_FILE
@pytest.mark.parametrize("step_s", [-2 * MINUTE_S, DAY_S, *([HOUR_S, -HOUR_S, -DAY_S] if WHOLE else [])])
async def test_a_clock_that_is_set_while_no_server_runs(
    servers: Servers, service: Service, wall: Wall, step_s: int
) -> None:
    """Killed, so that its leases are of the other time. None of them may hold a run up for longer than a minute."""
    server = await servers.start()
    async with httpx.AsyncClient(base_url=server.url, timeout=90, trust_env=False) as http:
        client = Client(http)
        await every(http, "0 * * * *", "one")
        links = await client.begin(service, NAP_S)
        await server.kill()
        wall.step(step_s)

        server = await servers.start()
        await until(lambda: len(service.calls) >= 2 * EACH, within_s=SOON_S)
        for link in links:
            assert (await client.answer(link)).is_success
        (await client.start("new", nap(0.1))).raise_for_status()
        for done in ("ask", "new"):
            await client.ended(done, SOON_S)
        service.release()
        await client.ended("call", SOON_S)
        if step_s < 0:
            assert len([key for key in await client.those("waiting") if key.startswith("nap")]) == EACH, "it is early"
            wall.step(HOUR_S - step_s)
        await client.ended("nap", SOON_S)
    assert await server.stop(30) == 0
    judged(servers, client)
    assert len(service.calls) == 2 * EACH


@ON_A_FILE
async def test_a_clock_that_runs_a_hundred_times_too_fast(servers: Servers, service: Service, wall: Wall) -> None:
    """A lease of a minute is one of 0.6 s then, and renewed too late. The one server keeps its runs all the same."""
    servers.alter(WEFT_LEASE_MS="60000")
    server = await servers.start()
    async with httpx.AsyncClient(base_url=server.url, timeout=90, trust_env=False) as http:
        client = Client(http)
        await every(http, "* * * * *", "all")
        await client.begin(service, 5 * MINUTE_S)
        wall.run(FAST)
        began_ms = wall.now_ms()
        await client.ended("nap", 3 + SOON_S)
        service.release()
        await client.ended("call", SOON_S)
        wall.run(1.0)
        ended_ms = wall.now_ms()
        for link in await client.links():
            assert (await client.answer(link)).is_success
        await client.ended("ask", SOON_S)
        minutes = (ended_ms - began_ms) // 60_000
        wall.run(0.0)  # no other minute begins between the last look and the stop
        await until(lambda: ticked(servers.file, minutes), within_s=SOON_S)
    assert await server.stop(30) == 0
    _, dues = judged(servers, client)
    assert {later - earlier for earlier, later in pairwise(dues)} == {60_000}, "a minute is missing"
    assert len(service.calls) == EACH


@ON_A_FILE
async def test_a_clock_that_is_set_under_two_servers(servers: Servers, service: Service, wall: Wall) -> None:
    """Ahead, so that each sees the other's leases ended. Who is quicker may take runs away: then their calls are made
    again, and the result of one of them counts."""
    server = await servers.start()
    other = await servers.start(port=free_port(random.Random()))
    async with httpx.AsyncClient(base_url=server.url, timeout=90, trust_env=False) as http:
        client = Client(http)
        await client.begin(service, NAP_S)
        for step_s in (HOUR_S, -HOUR_S, DAY_S, -DAY_S):
            wall.step(step_s)
            await asyncio.sleep(2 * LEASE_S)
        service.holds.clear()
        service.release()
        await client.ended("call", 2 * SOON_S)
        for link in await client.links():
            assert (await client.answer(link)).is_success
        wall.step(HOUR_S)
        await client.ended("", 2 * SOON_S)
    assert (await server.stop(30), await other.stop(30)) == (0, 0)
    judged(servers, client)
    print({"calls made again": len(service.calls) - EACH})
