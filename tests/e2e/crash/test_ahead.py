"""kill -9 while a run is ahead of its journal: steps run again, and nothing that was done or shown outside is taken
back."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import httpx
import pytest

from tests.e2e.crash.conftest import Servers
from tests.e2e.crash.test_resume import ended
from tests.support.documents import document
from tests.support.journal import Journal, data_of, key_of, log_is_clean
from tests.support.server import ServerProcess
from tests.support.service import Service

pytestmark = pytest.mark.proof

ROUNDS = 60
KILLS = 4


def rounds(service: Service) -> dict[str, Any]:
    """Each round computes in three steps what no second try would compute again, then tells the service."""
    body = {"began": "<third.result.began>", "round": "<third.result.round>"}
    blocks: dict[str, Any] = {
        "round": {"type": "loop", "params": {"mode": "for", "count": ROUNDS}},
        "first": function("return {began: Date.now() + ':' + Math.random(), round: <loop.index>}"),
        "second": function("return {began: <first.result.began>, round: <first.result.round>}"),
        "third": function("return {began: <second.result.began>, round: <second.result.round>}"),
        "tell": {
            "type": "http",
            "params": {
                "method": "POST",
                "idempotency_header": "Idempotency-Key",
                "url": f"{service.url}/tell",
                "body": body,
            },
        },
    }
    edges = ["start round", "round body first", "first second", "second third", "third tell"]
    inside = {id: block if id == "round" else block | {"parent": "round"} for id, block in blocks.items()}
    return document("rounds", *edges, blocks=inside, settings={"durability": "ahead"})


def function(code: str) -> dict[str, Any]:
    return {"type": "function", "params": {"code": code}}


async def follow(server: ServerProcess, run: str, seen: dict[int, str]) -> None:
    """Until the server dies: every event as it was shown, by number."""
    try:
        async with (
            httpx.AsyncClient(base_url=server.url, timeout=60, trust_env=False) as client,
            client.stream("GET", f"/api/runs/{run}/events", headers={"accept": "text/event-stream"}) as stream,
        ):
            number, kind = 0, ""
            async for line in stream.aiter_lines():
                if line.startswith("id:"):
                    number = int(line[3:])
                elif line.startswith("event:"):
                    kind = line[6:].strip()
                elif line.startswith("data:") and number:
                    told = json.loads(line[5:])
                    what = f"{kind} {told.get('key') or ''}"
                    assert seen.setdefault(number, what) == what, "an event has changed"
                elif not line:
                    number, kind = 0, ""
    except httpx.HTTPError:
        pass


async def test_what_was_told_and_done_stays_when_a_run_that_is_ahead_dies(servers: Servers, service: Service) -> None:
    rng = random.Random("ahead")
    servers.allow(service)
    server = await servers.start()
    async with httpx.AsyncClient(base_url=server.url, timeout=60, trust_env=False) as client:
        run = (await client.post("/api/runs", json={"document": rounds(service)})).raise_for_status().json()["run"]
    seen: dict[int, str] = {}
    for kill in range(1, KILLS + 1):
        following = asyncio.create_task(follow(server, run, seen))
        async with asyncio.timeout(60):
            while len(service.calls) < kill * ROUNDS // (KILLS + 1):
                await asyncio.sleep(0.005)
        await asyncio.sleep(rng.random() * 0.03)
        await server.kill()
        await following
        server = await servers.start()
    following = asyncio.create_task(follow(server, run, seen))
    view = await ended(server, run)
    assert view["status"] == "succeeded", view["error"]
    await asyncio.wait_for(following, 60)
    assert await server.stop(30) == 0

    journal = Journal(servers.db)
    journal.is_sound()
    journal.is_dense()
    journal.results_are_recorded_once()
    log_is_clean(servers.log)
    rows = journal.events[run]
    assert seen == {row["seq"]: f"{row['type']} {key_of(row)}" for row in rows}
    results = {key_of(row): json.loads(row["output"]) for row in rows if row["type"] == "node.succeeded"}
    for number in range(ROUNDS):
        key = f"@round#{number}"
        computed = results[f"third{key}"]["result"]
        assert computed == results[f"first{key}"]["result"], "each step has what the one before it recorded"
        told = [call.body for call in service.calls if call.key == f"{run}:tell{key}"]
        assert told and all(body == computed for body in told), "what was told is what is recorded"
    assert any(data_of(row).get("error", {}).get("code") == "attempt_lost" for row in rows)
