"""Runs of runs under kill -9: one child for each wait, no end of a child is lost, answers reach the right run."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.crash.conftest import Servers
from tests.support.documents import document
from tests.support.journal import Journal, log_is_clean
from tests.support.place import Place
from tests.support.server import ServerProcess
from tests.support.service import Service
from tests.support.spoil import taken_apart
from tests.support.until import until

pytestmark = pytest.mark.proof

DAY_MS = 24 * 3600 * 1000
KILLS = int(os.environ.get("WEFT_CRASH_KILLS", "50")) // 5
SEED = int(os.environ.get("WEFT_CRASH_SEED") or random.SystemRandom().randrange(10**6))
PARENTS, CHILDREN = 8, 3


def step(service: Service, name: str, body: Any = None) -> dict[str, Any]:
    return {
        "type": "http",
        "params": {
            "method": "POST",
            "idempotency_header": "Idempotency-Key",
            "url": f"{service.url}/{name}",
            "body": body,
        },
    }


async def get(server: ServerProcess, path: str) -> dict[str, Any]:
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
        response = await client.get(path)
        assert response.status_code == 200, response.text
        return dict(response.json())


async def post(server: ServerProcess, path: str, body: Any) -> dict[str, Any]:
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
        response = await client.post(path, json=body)
        assert response.status_code in (200, 202), response.text
        return dict(response.json())


def let_days_pass(place: Place, days: int) -> None:
    """Whatever happened in this database happened so many days earlier. On PostgreSQL events stay as they are."""
    times = {
        "run_details": ("created_at_ms", "started_at_ms"),
        "heads": ("started_at_ms", "due_ms"),
        "workers": ("until_ms",),
        "waits": ("opened_at_ms",),
    }
    changes = [
        f"UPDATE {table} SET " + ", ".join(f"{column} = {column} - {days * DAY_MS}" for column in columns)
        for table, columns in times.items()
    ]
    if isinstance(place, Path):
        with closing(sqlite3.connect(place, isolation_level=None)) as connection:
            with taken_apart(connection):
                connection.execute(f"UPDATE loose_events SET at_ms = at_ms - {days * DAY_MS}")
            for change in changes:
                connection.execute(change)
        return
    import psycopg

    with psycopg.connect(place) as session:
        for change in changes:
            session.execute(change.encode())


async def test_killed_at_every_step_and_answered_days_later(servers: Servers, service: Service) -> None:
    servers.allow(service)
    service.holds |= {"/before", "/inside", "/last", "/after"}
    child = document(
        "child",
        "start out inside",
        "inside out ask",
        "ask out last",
        "last out end",
        blocks={
            "inside": step(service, "inside"),
            "ask": {"type": "approval", "params": {"title": "Go on?", "actions": ["yes"]}},
            "last": step(service, "last", {"by": "<ask.answered_by>"}),
            "end": {"type": "set", "params": {"value": {"by": "<ask.answered_by>"}}},
        },
    )
    parent = document(
        "parent",
        "start out before",
        "before out call",
        "call out after",
        "after out end",
        blocks={
            "before": step(service, "before"),
            "call": {"type": "run_workflow", "params": {"definition": child}},
            "after": step(service, "after", {"by": "<call.by>"}),
            "end": {"type": "set", "params": {"value": "<call.by>"}},
        },
    )
    server = await servers.start()
    run = (await post(server, "/api/runs", {"document": parent}))["run"]

    async def killed_during(name: str) -> None:
        """The server dies in this call; the next one makes it again and gets its answer."""
        nonlocal server
        await until(lambda: any(call.path == name for call in service.held()))
        await server.kill()
        before = len(service.calls)
        server = await servers.start()
        await until(lambda: any(call.path == name for call in service.calls[before:]))
        service.release()

    await killed_during("/before")
    await killed_during("/inside")
    waiting: dict[str, Any] = {}
    async with asyncio.timeout(60):
        while not (waiting.get("child_waits") and waiting["status"] == "waiting" and not waiting["children_active"]):
            await asyncio.sleep(0.05)
            waiting = await get(server, f"/api/runs/{run}")
    await server.kill()
    let_days_pass(servers.db, 5)

    server = await servers.start()
    view = await get(server, f"/api/runs/{run}")
    (wait,), (listed,) = view["child_waits"], view["children"]
    assert (view["status"], listed["status"], wait["run"]) == ("waiting", "waiting", listed["run"])
    assert wait["age_s"] > 4.9 * DAY_MS / 1000
    token = wait["link"].rpartition("/")[2]
    await post(server, f"/api/resume/{token}", {"action": "yes", "by": "Ada"})
    await killed_during("/last")
    await killed_during("/after")
    async with asyncio.timeout(60):
        while (view := await get(server, f"/api/runs/{run}"))["status"] != "succeeded":
            await asyncio.sleep(0.05)
    assert view["output"] == "Ada"
    assert await server.stop(30) == 0

    journal = Journal(servers.db)
    journal.is_sound()
    journal.is_dense()
    journal.all_succeeded()
    journal.results_are_recorded_once()
    assert sorted(journal.runs) == sorted([run, listed["run"]])
    assert journal.started(run)["call"] == 1
    assert {(path, len(keys)) for path, keys in _keys(service).items()} == {(name, 1) for name in service.holds}
    log_is_clean(servers.log)


def _keys(service: Service) -> dict[str, set[str]]:
    """By path the idempotency keys of its calls: one, however often it was called."""
    keys: dict[str, set[str]] = {}
    for call in service.calls:
        keys.setdefault(call.path, set()).add(call.key)
    return keys


@pytest.mark.timeout(120 + 8 * KILLS)
async def test_each_wait_has_one_child_over_many_kills(servers: Servers, service: Service) -> None:
    print(f"WEFT_CRASH_SEED={SEED} WEFT_CRASH_KILLS={KILLS * 5}")
    choose = random.Random(SEED)
    servers.allow(service)
    child = document(
        "child",
        "start out one",
        "one out two",
        "two out end",
        blocks={
            "one": step(service, "one"),
            "two": step(service, "two"),
            "end": {"type": "set", "params": {"value": "<input.n>"}},
        },
    )
    parent = document(
        "parent",
        "start out fan",
        "fan body call",
        "fan out end",
        blocks={
            "fan": {"type": "parallel", "params": {"count": CHILDREN}},
            "call": {
                "type": "run_workflow",
                "parent": "fan",
                "params": {"definition": child, "input": {"n": "<parallel.index>"}},
            },
            "end": {"type": "set", "params": {"value": "<fan.results>"}},
        },
    )
    server = await servers.start()
    runs = []
    for number in range(KILLS):
        if number < PARENTS:
            runs.append((await post(server, "/api/runs", {"document": parent}))["run"])
        await asyncio.sleep(choose.uniform(0, 0.15))
        await server.kill()
        server = await servers.start()
    async with asyncio.timeout(90):
        for run in runs:
            while (view := await get(server, f"/api/runs/{run}"))["status"] != "succeeded":
                assert view["status"] in ("queued", "running", "waiting"), view["error"]
                await asyncio.sleep(0.1)
            assert view["output"] == [[n] for n in range(CHILDREN)]
    assert await server.stop(30) == 0

    journal = Journal(servers.db)
    journal.is_sound()
    journal.is_dense()
    journal.all_succeeded()
    journal.results_are_recorded_once()
    children = Counter(row["parent_run_id"] for row in journal.runs.values() if row["parent_run_id"])
    assert children == dict.fromkeys(runs, CHILDREN)
    assert {path: len(keys) for path, keys in _keys(service).items()} == dict.fromkeys(
        ("/one", "/two"), CHILDREN * len(runs)
    )
    log_is_clean(servers.log)
