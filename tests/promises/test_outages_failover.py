"""The primary of a PostgreSQL cluster dies, its standby is promoted, and weft continues there."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

pytest.importorskip("psycopg")

import psycopg

from tests.support.documents import document
from tests.support.postgres import Primary, Standby, as_url, socket_of
from tests.support.server import ServerProcess, free_port
from tests.support.until import until

pytestmark = pytest.mark.proof

RUN = {
    "document": document(
        "waits", "start a", "a b", blocks={"a": {"type": "wait", "params": {"seconds": 0.2}}, "b": {"type": "set"}}
    )
}
BEFORE, AFTER = 20, 10  # acknowledged runs
BACK_S = 15.0  # with the promotion; a second or two are promised, and this machine may be busy
IS_FOLLOWED = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = %s"


@pytest.fixture(params=["synchronous", "asynchronous"])
def cluster(request: pytest.FixtureRequest) -> Iterator[tuple[Primary, Standby, bool]]:
    synchronous = request.param == "synchronous"
    primary, standby = Primary(*(["synchronous_standby_names=*"] if synchronous else [])), None
    try:
        primary.start()
        standby = Standby(primary)
        standby.start()
        yield primary, standby, synchronous
    finally:
        if standby is not None:
            standby.remove()
        primary.remove()


async def test_runs_continue_on_a_promoted_standby(cluster: tuple[Primary, Standby, bool], tmp_path: Path) -> None:
    primary, standby, synchronous = cluster
    await _followed(primary, synchronous)
    with psycopg.connect(primary.address, autocommit=True) as session:
        session.execute("CREATE DATABASE weft")
    hosts = ",".join(str(socket_of(each.address).parent) for each in (standby, primary))
    address = as_url(primary.address, dbname="weft", host=hosts)
    settings = {"WEFT_SECRET_KEY": "k" * 32, "WEFT_DB": address, "WEFT_LEASE_MS": "3000"}
    log = tmp_path / "log"
    processes = [
        await ServerProcess.start(tmp_path / "no.db", free_port(random.Random()), log, command=command, **settings)
        for command in (("serve", "--no-worker"), ("worker",))
    ]
    try:
        for process in processes:
            await process.ready()
        async with httpx.AsyncClient(base_url=processes[0].url, timeout=60) as client:
            acknowledged: list[str] = []
            submitting = asyncio.create_task(_submit(client, acknowledged))
            await until(lambda: len(acknowledged) >= BEFORE, meanwhile=lambda: _check(submitting))
            primary.kill()
            killed_s, before = time.monotonic(), len(acknowledged)
            await asyncio.to_thread(standby.promote)
            await until(lambda: len(acknowledged) > before, meanwhile=lambda: _check(submitting))
            back_s = time.monotonic() - killed_s
            await until(lambda: len(acknowledged) >= before + AFTER, meanwhile=lambda: _check(submitting))
            submitting.cancel()
            ends = [await client.get(f"/api/runs/{run}?wait=60") for run in acknowledged]
        print(f"the first run was acknowledged {back_s:.2f} s after the death of the primary")
        assert back_s < BACK_S
        found = [end for end in ends if end.status_code == 200]
        assert all(end.json()["status"] == "succeeded" for end in found)
        lost = [end for end in ends if end.status_code != 200]
        assert all(end.status_code == 404 for end in lost)
        assert len(ends) - len(lost) >= AFTER
        if synchronous:
            assert not lost, "a synchronous standby has all that was acknowledged"
        assert await processes[1].stop(60) == await processes[0].stop(60) == 0
    finally:
        for process in processes:
            await process.clean_up()


async def _followed(primary: Primary, synchronous: bool) -> None:
    def is_followed() -> bool:
        with psycopg.connect(primary.address, autocommit=True) as session:
            return session.execute(IS_FOLLOWED, ["sync" if synchronous else "async"]).fetchone() == (1,)

    await until(is_followed)


async def _submit(client: httpx.AsyncClient, acknowledged: list[str]) -> None:
    n = 0
    while True:
        n += 1
        key = {"idempotency-key": f"run-{n}"}
        while (answer := await client.post("/api/runs", json=RUN, headers=key)).is_server_error:
            await asyncio.sleep(0.1)
        assert answer.status_code == 202, answer.text
        acknowledged.append(answer.json()["run"])
        await asyncio.sleep(0.02)


def _check(task: asyncio.Task[None]) -> None:
    """It submits for as long as it is not cancelled."""
    if task.done():
        task.result()
