"""Runs of runs and cached results over HTTP."""

from __future__ import annotations

from typing import Any

import httpx

from tests.support.documents import in_a_row

Json = dict[str, Any]


async def test_a_parent_shows_its_children_and_what_they_wait_for(
    client: httpx.AsyncClient, asking: Json, started: Any
) -> None:
    call = {"type": "run_workflow", "params": {"definition": asking, "input": {"text": "t"}}}
    parent = await started(in_a_row("parent", {"b": call}))
    assert parent["status"] == "waiting"
    view = (await client.get(f"/api/runs/{parent['run']}")).json()
    (child,), (wait,) = view["children"], view["child_waits"]
    assert child.items() >= {"workflow": "asking", "status": "waiting", "key": "b", "attempt": 1}.items()
    assert (wait["run"], wait["kind"], view["children_active"]) == (child["run"], "approval", 0)
    assert next(node["child"] for node in view["nodes"] if node["key"] == "b") == child["run"]
    below = (await client.get(f"/api/runs/{child['run']}")).json()
    assert below["parent"] == {"run": parent["run"], "key": "b"}
    listed = (await client.get("/api/runs", params={"parent": parent["run"]})).json()["runs"]
    assert [(run["id"], run["parent_run_id"]) for run in listed] == [(child["run"], parent["run"])]
    own = [wait for wait in view["waits"] if wait["kind"] == "child"]
    assert [wait["request"]["run"] for wait in own] == [child["run"]] and "link" not in own[0]

    answered = await client.post(wait["link"], json={"action": "approve", "fields": {"amount": 3}, "by": "Ada"})
    assert answered.status_code == 200, answered.text
    async with client.stream("GET", f"/api/runs/{parent['run']}/events") as events:
        assert "run.finished" in (await events.aread()).decode()
    view = (await client.get(f"/api/runs/{parent['run']}")).json()
    assert (view["status"], view["output"]["amount"]) == ("succeeded", 3)


async def test_cancelling_a_parent_cancels_its_child(client: httpx.AsyncClient, asking: Json, started: Any) -> None:
    call = {"type": "run_workflow", "params": {"definition": asking}}
    parent = (await started(in_a_row("parent", {"b": call})))["run"]
    child = (await client.get(f"/api/runs/{parent}")).json()["children"][0]["run"]
    assert (await client.post(f"/api/runs/{parent}/cancel", json={})).status_code == 202
    async with client.stream("GET", f"/api/runs/{child}/events") as events:
        assert "run.finished" in (await events.aread()).decode()
    assert (await client.get(f"/api/runs/{child}")).json()["status"] == "cancelled"


async def test_cached_results_are_forgotten_when_asked(client: httpx.AsyncClient, started: Any) -> None:
    work = {"type": "function", "params": {"code": "return 1"}, "policy": {"cache": {"scope": "global"}}}

    async def cached() -> bool:
        run = await started(in_a_row("cached", {"b": work}))
        nodes = (await client.get(f"/api/runs/{run['run']}")).json()["nodes"]
        return any(node.get("cached") for node in nodes)

    assert [await cached(), await cached()] == [False, True]
    assert (await client.delete("/api/cache?workflow=other")).json() == {"cleared": 0}
    assert (await client.delete("/api/cache?workflow=cached")).json() == {"cleared": 1}
    assert await cached() is False
    assert (await client.delete("/api/cache")).json() == {"cleared": 1}


async def test_clearing_the_cache_needs_the_token(locked: httpx.AsyncClient) -> None:
    assert (await locked.delete("/api/cache")).status_code == 401
