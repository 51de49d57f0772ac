"""A response has the output that authors of Sim know, and the first of several ends the run."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

REPLY = {"status": 201, "headers": {"X-Kind": "order"}, "body": {"sum": 7}}


async def test_its_output_is_data_status_headers_and_that_of_the_run_its_body(client: httpx.AsyncClient) -> None:
    run = await ran(client, {"reply": {"type": "response", "params": REPLY}}, ["reply"])
    assert run["output"] == {"sum": 7}
    assert run["response"] == REPLY
    node = (await client.get(f"/api/runs/{run['id']}/nodes/reply")).json()
    assert node["output"] == {"data": {"sum": 7}, "status": 201, "headers": {"X-Kind": "order"}}


async def test_of_two_that_are_reached_at_once_the_second_does_not_start(client: httpx.AsyncClient) -> None:
    blocks = {name: {"type": "response", "params": {"body": name}} for name in ("one", "two")}
    run = await ran(client, blocks, ["one", "two"])
    assert run["output"] == "one"
    told = await client.get(f"/api/runs/{run['id']}/events", headers={"accept": "application/json"})
    events = told.json()["events"]
    assert [event["key"] for event in events if event["type"] == "node.started"] == ["start", "one"]


async def ran(client: httpx.AsyncClient, blocks: dict[str, Any], after_start: list[str]) -> dict[str, Any]:
    document = {
        "format": "weft/1",
        "name": "replies",
        "blocks": {"start": {"type": "start"}, **blocks},
        "edges": [{"source": "start", "target": name} for name in after_start],
    }
    started = await client.post("/api/runs", json={"document": document})
    run = started.json()["run"]
    async with asyncio.timeout(60):
        while (view := (await client.get(f"/api/runs/{run}")).json())["status"] != "succeeded":
            assert view["status"] in ("queued", "running"), view
            await asyncio.sleep(0.02)
    return dict(view)
