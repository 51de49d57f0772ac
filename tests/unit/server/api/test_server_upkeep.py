"""Deleting old runs over HTTP: what goes, what is refused, and what is left for those who ask."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from executor.open.engine import Engine
from tests.support.documents import document
from tests.unit.executor.service.upkeep.conftest import block

Json = dict[str, Any]


async def gc(client: httpx.AsyncClient, **body: Any) -> Json:
    """Counts at its end."""
    answer = await client.post("/api/upkeep/gc", json=body)
    assert answer.status_code == 202, answer.text
    job = answer.json()["job"]
    async with asyncio.timeout(60):
        while job["state"] == "running":
            await asyncio.sleep(0.01)
            job = (await client.get(f"/api/upkeep/gc/{job['id']}")).json()
    assert job["state"] == "done", job
    counts: Json = job["counts"]
    return counts


async def test_old_runs_go_and_open_ones_stay(
    client: httpx.AsyncClient,
    engine: Engine,
    hello: Json,
    asking: Json,
    started: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done, waiting = (await started(hello))["run"], (await started(asking))["run"]
    would = await gc(client, older_than_s=0, dry_run=True)
    assert (would["runs"], would["dry_run"]) == (1, True)
    assert (await client.get(f"/api/runs/{done}")).status_code == 200
    gone = await gc(client, older_than_s=0)
    assert (gone["runs"], gone["plans"], gone["documents"], gone["dry_run"]) == (1, 0, 0, False)
    assert gone["events"] == would["events"] > 3
    for path in ("", "/events", "/state", "/why", "/nodes/greet", "/graph", "/document"):
        assert (await client.get(f"/api/runs/{done}{path}")).status_code == 404, path
    assert (await client.get(f"/api/runs/{waiting}")).json()["status"] == "waiting"
    monkeypatch.setattr("executor.service.upkeep.gc.UNUSED_MS", -1)  # the hour is over
    gone = await gc(client)
    assert (gone["runs"], gone["plans"], gone["documents"]) == (0, 1, 1)


async def test_nothing_said_is_nothing_deleted(client: httpx.AsyncClient, hello: Json, started: Any) -> None:
    run = (await started(hello))["run"]
    assert (await gc(client))["runs"] == 0
    assert (await gc(client, older_than_s=3600))["runs"] == 0
    assert (await gc(client, keep=1))["runs"] == 0
    assert (await client.get(f"/api/runs/{run}")).status_code == 200


async def test_keep_alone_deletes_all_but_the_newest(client: httpx.AsyncClient, hello: Json, started: Any) -> None:
    runs = [(await started(hello))["run"] for _ in range(3)]
    assert (await gc(client, keep=1))["runs"] == 2
    left = (await client.get("/api/runs")).json()["runs"]
    assert [run["id"] for run in left] == [runs[-1]]


@pytest.mark.parametrize(
    "body", [{"older_than_s": -1}, {"keep": -1}, {"keep": 1.5}, {"older_than": 1}, {"older_than_s": "30d"}]
)
async def test_what_is_no_age(client: httpx.AsyncClient, body: Json) -> None:
    assert (await client.post("/api/upkeep/gc", json=body)).status_code == 422


async def test_it_needs_the_token(locked: httpx.AsyncClient) -> None:
    assert (await locked.post("/api/upkeep/gc", json={"older_than_s": 0})).status_code == 401


async def test_a_stream_whose_run_is_deleted_ends(
    client: httpx.AsyncClient, engine: Engine, started: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader has the first page when the run goes: its stream ends, and when it comes back there is none."""
    monkeypatch.setattr("executor.kernel.read.cursor.PAGE", 3)
    run = (await started(document("a", "start x", blocks={"x": block("set", value=1)})))["run"]
    cursor_of = engine.events.cursor

    def cursor(run: str, after: int = 0, bell: Any = None) -> Any:
        found = cursor_of(run, after, bell)
        take = found.next_records

        async def take_and_delete() -> Any:
            records = await take()
            await engine.store.delete_runs([run])
            return records

        monkeypatch.setattr(found, "next_records", take_and_delete)
        return found

    monkeypatch.setattr(engine.events, "cursor", cursor)
    answer = await client.get(f"/api/runs/{run}/events", headers={"accept": "text/event-stream"})
    assert answer.status_code == 200
    assert answer.text.count("id: ") == 3
    assert (await client.get(f"/api/runs/{run}/events")).status_code == 404
