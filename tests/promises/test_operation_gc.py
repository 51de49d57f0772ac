"""A deletion of old runs does not depend on the client that asked for it, and how far it is can be asked."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from executor.errors import DatabaseWriteFailed
from executor.kernel.store.sqlite.reading import open_reading
from executor.open.engine import Engine
from executor.service.upkeep import gc as collecting
from executor.service.upkeep.doctor import examine
from server.settings import Settings
from tests.support.application import application
from tests.support.documents import document
from tests.support.server import ROOT, ServerProcess, free_port

KEY = "a secret for tests only"
RUNS = 8
FLOW = document("flow", "start a", blocks={"a": {"type": "set", "params": {"value": 5}}})
Json = dict[str, Any]


def at(**place: Any) -> AbstractAsyncContextManager[tuple[Engine, httpx.AsyncClient]]:
    return application(Settings(secret_key=KEY, **place))


async def make_runs(engine: Engine) -> None:
    for _ in range(RUNS):
        await engine.wait_finished((await engine.submit(FLOW)).run, 60)


async def begin(client: httpx.AsyncClient, **body: Any) -> Json:
    answer = await client.post("/api/upkeep/gc", json={"older_than_s": 0, **body})
    assert answer.status_code == 202, answer.text
    found: Json = answer.json()
    return found


async def job(client: httpx.AsyncClient, id: str) -> Json:
    answer = await client.get(f"/api/upkeep/gc/{id}")
    found: Json = answer.raise_for_status().json()
    return found


async def until(client: httpx.AsyncClient, id: str, reached: Callable[[Json], bool]) -> Json:
    async with asyncio.timeout(60):
        while not reached(found := await job(client, id)):
            await asyncio.sleep(0.01)
    return found


def is_over(job: Json) -> bool:
    return bool(job["state"] != "running")


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A deletion that takes 1.6 seconds."""
    monkeypatch.setattr(collecting, "RUNS_PER_BATCH", 1)
    monkeypatch.setattr(collecting, "PAUSE_S", 0.2)


@pytest.mark.usefixtures("one_by_one")
async def test_it_is_answered_at_once_with_its_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with at(db_path=str(tmp_path / "weft.db")) as (engine, client):
        await make_runs(engine)
        would = await begin(client, dry_run=True)
        would_go = (await until(client, would["job"]["id"], is_over))["counts"]
        seen, delete = asyncio.Event(), engine.store.delete_runs

        async def after_a_look(*args: Any) -> Any:
            if part_is_deleted.is_set():
                await seen.wait()
            part_is_deleted.set()
            return await delete(*args)

        part_is_deleted = asyncio.Event()
        monkeypatch.setattr(engine.store, "delete_runs", after_a_look)
        begun = await begin(client)
        id = begun["job"]["id"]
        assert begun["created"] and begun["job"]["state"] == "running" and begun["job"]["counts"]["runs"] < RUNS
        part = await until(client, id, lambda job: job["counts"]["runs"] > 0)
        assert part["counts"]["runs"] < RUNS and part["state"] == "running"
        again = await begin(client, older_than_s=99, keep=3)
        assert not again["created"] and again["job"]["id"] == id and again["job"]["keep"] == 0
        seen.set()
        done = await until(client, id, is_over)
        assert done["state"] == "done" and done["counts"] == {**would_go, "dry_run": False}
        assert done["counts"]["runs"] == RUNS
        after = await begin(client)
        assert after["created"] and after["job"]["id"] != id
        assert await job(client, id) == done, "the process knows those before, too"
        gone = await client.get("/api/upkeep/gc/another")
        assert (gone.status_code, gone.json()["code"]) == (404, "gc_not_found")


async def test_a_request_after_the_end_of_one_begins_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with at(db_path=str(tmp_path / "weft.db")) as (engine, client):
        stored, put = asyncio.Event(), engine.store.put_upkeep_note

        async def put_late(kind: str, data: bytes, at_ms: int) -> None:
            if b'"done"' in data:
                await stored.wait()
            await put(kind, data, at_ms)

        monkeypatch.setattr(engine.store, "put_upkeep_note", put_late)
        id = (await begin(client))["job"]["id"]
        await until(client, id, is_over)
        after = asyncio.create_task(begin(client))
        await asyncio.sleep(0.1)  # for the request to come while the end is not stored
        stored.set()
        assert (await after)["created"]


@pytest.mark.usefixtures("one_by_one")
async def test_every_process_shows_it(postgres: str) -> None:
    pytest.importorskip("psycopg")
    async with at(db_address=postgres) as (engine, client), at(db_address=postgres) as (_, other):
        await make_runs(engine)
        begun = await begin(client)
        id = begun["job"]["id"]
        elsewhere = await begin(other, keep=1)
        assert not elsewhere["created"] and elsewhere["job"]["id"] == id
        assert (await until(other, id, is_over))["counts"]["runs"] == RUNS


@pytest.mark.usefixtures("one_by_one")
async def test_a_server_that_stops_says_so(tmp_path: Path) -> None:
    place = {"db_path": str(tmp_path / "weft.db")}
    async with at(**place) as (engine, client):
        await make_runs(engine)
        id = (await begin(client))["job"]["id"]
        part = await until(client, id, lambda job: job["counts"]["runs"] > 0)
        assert part["state"] == "running"
    async with at(**place) as (_, client):
        assert (await job(client, id))["state"] == "interrupted"
        rest = await until(client, (await begin(client))["job"]["id"], is_over)
        assert rest["state"] == "done" and 0 < rest["counts"]["runs"] < RUNS


async def test_one_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with at(db_path=str(tmp_path / "weft.db")) as (engine, client):
        await make_runs(engine)

        async def fails(*_: object) -> None:
            raise DatabaseWriteFailed("the disk is on fire")

        monkeypatch.setattr(engine.store, "delete_runs", fails)
        failed = await until(client, (await begin(client))["job"]["id"], is_over)
        assert (failed["state"], failed["error"]) == ("failed", "the disk is on fire")


def wait_a_minute(database: Path) -> None:
    """As if the last note were a minute older."""
    with closing(sqlite3.connect(database)) as db, db:
        [(data,)] = db.execute("SELECT data FROM upkeep WHERE name = 'gc'")
        note = json.loads(data)
        note["updated_at_ms"] -= 60_000
        db.execute("UPDATE upkeep SET data = ? WHERE name = 'gc'", [json.dumps(note).encode()])


async def test_a_killed_server_leaves_nothing_by_half(tmp_path: Path) -> None:
    database, port = tmp_path / "weft.db", free_port(random.Random())
    async with at(db_path=str(database)) as (engine, _):
        await make_runs(engine)
    altered: Json = {"WEFT_SECRET_KEY": KEY}

    async def start(**more: str) -> ServerProcess:
        module = "tests.e2e.crash.altered"
        server = await ServerProcess.start(database, port, tmp_path / "log", module, **altered, **more)
        await server.ready()
        return server

    server = await start(ALTERED_GC_S="1.5")
    try:
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            id = (await begin(client))["job"]["id"]
            await until(client, id, lambda job: job["counts"]["runs"] > 1)
            await asyncio.sleep(2.5)  # a note has been written meanwhile, or the deletion is over
            await server.kill()
        server = await start()
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            left = (await job(client, id))["state"]
            wait_a_minute(database)
            killed = await job(client, id)
            assert left == "running" and killed["state"] == "interrupted" and killed["counts"]["runs"] < RUNS
            rest = await until(client, (await begin(client))["job"]["id"], is_over)
            assert rest["state"] == "done" and (await client.get("/api/runs")).json()["runs"] == []
        with closing(open_reading(database)) as reading:
            assert examine(reading, reading.clock_ms()).healthy
    finally:
        await server.clean_up()


async def test_the_command_follows_it_and_may_leave(tmp_path: Path) -> None:
    database = tmp_path / "weft.db"
    async with at(db_path=str(database)) as (engine, _):
        await make_runs(engine)
    server = await ServerProcess.start(
        database,
        free_port(random.Random()),
        tmp_path / "log",
        "tests.e2e.crash.altered",
        WEFT_SECRET_KEY=KEY,
        ALTERED_GC_S="0.5",
    )
    try:
        await server.ready()
        command = [sys.executable, "-m", "server", "--url", server.url, "gc", "--older-than", "0s"]
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
        )
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            while len((await client.get("/api/runs")).json()["runs"]) == RUNS:
                await asyncio.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = await process.communicate()
        assert b"The server continues" in errors, errors
        followed = await asyncio.create_subprocess_exec(
            *command, "--keep", "1", cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        output, errors = await followed.communicate()
        assert output.startswith(b"8 runs with ") and b"is at work already" in errors, (output, errors)
        assert b"so far" in errors
    finally:
        await server.clean_up()
