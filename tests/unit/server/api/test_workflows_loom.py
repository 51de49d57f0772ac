"""All runs of a workflow in one picture: `GET /api/workflows/{name}/loom`."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from executor.service.topics import loom as topic

Json = dict[str, Any]
DOCUMENT: Json = {
    "format": "weft/1",
    "name": "orders",
    "blocks": {
        "start": {"type": "start"},
        "each": {"type": "loop", "params": {"mode": "each", "items": "<start.lines>"}},
        "line": {
            "type": "function",
            "parent": "each",
            "params": {"code": "if (<loop.item> < 0) throw new Error('no')"},
        },
        "ask": {"type": "approval", "params": {"title": "Pay?"}},
        "pay": {"type": "set", "params": {"value": 1}},
        "sorry": {"type": "set", "params": {"value": 2}},
    },
    "edges": [
        {"source": "start", "target": "each"},
        {"source": "each", "handle": "body", "target": "line"},
        {"source": "each", "target": "ask"},
        {"source": "each", "handle": "error", "target": "sorry"},
        {"source": "ask", "handle": "approve", "target": "pay"},
    ],
}


async def seen(client: httpx.AsyncClient, **query: int) -> Json:
    found = await client.get("/api/workflows/orders/loom", params=query)
    assert found.status_code == 200, found.text
    answer: Json = found.json()
    return answer


async def run(client: httpx.AsyncClient, lines: list[int], key: str) -> Json:
    headers = {"idempotency-key": key}
    body = {"input": {"lines": lines}}
    answer: Json = (await client.post("/api/workflows/orders/runs?wait=60", json=body, headers=headers)).json()
    return answer


def uses(loom: Json, at: int) -> dict[str, list[int]]:
    """Executions, failures and open ones of each block in a run."""
    return {loom["blocks"][use[0]]: use[1:4] for use in loom["runs"][at].get("uses", [])}


def exits(loom: Json, at: int) -> set[tuple[str, str, int]]:
    named = loom["runs"][at].get("exits", [])
    return {(loom["blocks"][block], loom["handles"][handle], times) for block, handle, times in named}


async def test_what_each_block_did_in_each_run(client: httpx.AsyncClient) -> None:
    assert (await client.post("/api/workflows", json=DOCUMENT)).status_code == 201
    assert await seen(client) == {"blocks": [], "handles": [], "runs": [], "complete": True}
    assert (await run(client, [1, 2], "A-1"))["status"] == "waiting"
    assert (await run(client, [1, -2], "A-2"))["status"] == "succeeded"
    loom = await seen(client)
    assert [(one["key"], one["status"]) for one in loom["runs"]] == [("A-1", "waiting"), ("A-2", "succeeded")]
    assert uses(loom, 0) == {"start": [1, 0, 0], "line": [2, 0, 0], "each": [1, 0, 0], "ask": [0, 0, 1]}
    assert uses(loom, 1) == {"start": [1, 0, 0], "line": [2, 1, 0], "each": [1, 1, 0], "sorry": [1, 0, 0]}
    assert ("each", "out", 1) in exits(loom, 0) and ("each", "error", 1) in exits(loom, 1)
    assert [state for _, state, _ in loom["runs"][0]["cells"]] == [topic.OK, topic.OK]
    assert [state for _, state, _ in loom["runs"][1]["cells"]] == [topic.OK, topic.FAILED]
    assert {loom["blocks"][cell[0]] for one in loom["runs"] for cell in one["cells"]} == {"each"}

    [wait] = (await client.get("/api/waits")).json()["waits"]
    await client.post(wait["link"], json={"action": "approve"}, headers={"accept": "application/json"})
    await client.get(f"/api/runs/{wait['run']}?wait=20")
    again = await seen(client)
    assert uses(again, 0)["ask"] == [1, 0, 0] and ("ask", "approve", 1) in exits(again, 0)


async def test_a_page_is_bounded_by_number_and_time(client: httpx.AsyncClient) -> None:
    await client.post("/api/workflows", json=DOCUMENT)
    for at in range(3):
        await run(client, [-1], f"K-{at}")
    assert [one["key"] for one in (await seen(client, limit=2))["runs"]] == ["K-1", "K-2"]
    created = [one["created_at_ms"] for one in (await seen(client))["runs"]]
    assert (await seen(client, until=created[0]))["runs"] == []
    assert len((await seen(client, since=created[0], until=created[2] + 1))["runs"]) == 3
    assert (await client.get("/api/workflows/orders/loom?limit=1001")).status_code == 400


async def test_what_one_request_has_no_time_for_the_next_one_reads(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.post("/api/workflows", json=DOCUMENT)
    for at in range(2):
        await run(client, [-1], f"K-{at}")
    monkeypatch.setattr(topic, "BUDGET_S", -1.0)
    assert await seen(client) == {"blocks": [], "handles": [], "runs": [], "complete": False}
    monkeypatch.undo()
    assert (await seen(client))["complete"] is True
    monkeypatch.setattr(topic, "BUDGET_S", -1.0)
    assert len((await seen(client))["runs"]) == 2, "they are kept"
