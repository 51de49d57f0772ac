"""Schedules over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest


@pytest.fixture
async def stored(client: httpx.AsyncClient, hello: dict[str, Any]) -> str:
    assert (await client.post("/api/workflows", json=hello)).status_code == 201
    return "hello"


SPEC = {"workflow": "hello", "cron": "0 9 * * MON-FRI", "tz": "Europe/Berlin", "input": {"name": "Ada"}}


async def test_from_making_to_deleting(client: httpx.AsyncClient, stored: str) -> None:
    made = await client.put("/api/schedules/mornings", json=SPEC)
    assert made.status_code == 201, made.text
    body = made.json()
    assert (body["id"], body["origin"], body["enabled"], body["overlap"]) == ("mornings", "api", True, "skip")
    assert len(body["upcoming_ms"]) == 5 and body["upcoming_ms"][0] == body["next_run_at_ms"]
    assert (body["fires"], body["error"], body["last_run_id"]) == ([], None, None)

    changed = await client.put("/api/schedules/mornings", json={**SPEC, "cron": "0 10 * * *", "overlap": "queue"})
    assert changed.status_code == 200
    assert (changed.json()["cron"], changed.json()["overlap"]) == ("0 10 * * *", "queue")
    assert changed.json()["next_run_at_ms"] != body["next_run_at_ms"]

    off = await client.post("/api/schedules/mornings/disable")
    assert (off.status_code, off.json()["enabled"], off.json()["upcoming_ms"]) == (200, False, [])
    on = await client.post("/api/schedules/mornings/enable")
    assert (on.status_code, on.json()["enabled"], len(on.json()["upcoming_ms"])) == (200, True, 5)
    listed = (await client.get("/api/schedules")).json()["schedules"]
    assert [one["id"] for one in listed] == ["mornings"] and "fires" not in listed[0]
    assert (await client.get("/api/schedules", params={"workflow": "other"})).json() == {"schedules": []}

    deleted = await client.delete("/api/schedules/mornings")
    assert (deleted.status_code, deleted.json()) == (200, {"id": "mornings", "deleted": True})
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/enable"), ("POST", "/disable"), ("POST", "/run")):
        gone = await client.request(method, f"/api/schedules/mornings{path}")
        assert (gone.status_code, gone.json()["code"]) == (404, "schedule_not_found"), path


async def test_a_run_now(client: httpx.AsyncClient, stored: str) -> None:
    await client.put("/api/schedules/mornings", json={**SPEC, "enabled": False})
    started = await client.post("/api/schedules/mornings/run")
    assert started.status_code == 202
    run = started.json()["run"]
    assert started.headers["location"] == started.json()["urls"]["self"] == f"/api/runs/{run}"
    shown = (await client.get("/api/schedules/mornings")).json()
    assert shown["last_run_id"] == run
    assert [(fire["outcome"], fire["run"]) for fire in shown["fires"]] == [("started", run)]
    async for _ in _events(client, run):
        pass
    assert (await client.get(f"/api/runs/{run}")).json()["output"] == {"greeting": "hello Ada"}


async def _events(client: httpx.AsyncClient, run: str) -> Any:
    async with client.stream("GET", f"/api/runs/{run}/events", headers={"accept": "text/event-stream"}) as stream:
        async for line in stream.aiter_lines():
            yield line


@pytest.mark.parametrize(
    ("change", "status", "code", "pointer"),
    [
        ({"cron": "* * *"}, 422, "cron_invalid", "/cron"),
        ({"tz": "Mars/Olympus"}, 422, "timezone_unknown", "/tz"),
        ({"workflow": "other"}, 404, "workflow_not_found", None),
        ({"version": 9}, 404, "workflow_not_found", None),
        ({"trigger": "greet"}, 422, "document_invalid", ""),
        ({"input": {"name": 5}}, 422, "input_invalid", "/input/name"),
        ({"input": 5}, 422, "body_invalid", "/input"),
        ({"overlap": "maybe"}, 422, "body_invalid", "/overlap"),
        ({"catch_up": "some"}, 422, "body_invalid", "/catch_up"),
        ({"color": "red"}, 422, "body_invalid", ""),
    ],
)
async def test_what_is_refused(
    client: httpx.AsyncClient, stored: str, change: dict[str, Any], status: int, code: str, pointer: str | None
) -> None:
    refused = await client.put("/api/schedules/mornings", json={**SPEC, **change})
    assert (refused.status_code, refused.json()["code"]) == (status, code), refused.text
    assert refused.json().get("pointer") == pointer
    assert (await client.get("/api/schedules")).json() == {"schedules": []}


async def test_those_of_a_document_are_changed_there(client: httpx.AsyncClient) -> None:
    document = {
        "format": "weft/1",
        "name": "nightly",
        "blocks": {"night": {"type": "schedule", "params": {"cron": "0 3 * * *"}}},
        "edges": [],
    }
    assert (await client.post("/api/workflows", json=document)).status_code == 201
    path = "/api/schedules/nightly:night"
    assert (await client.get(path)).json()["origin"] == "document"
    for method, body in (("PUT", {"workflow": "nightly", "cron": "* * * * *"}), ("DELETE", None)):
        refused = await client.request(method, path, json=body)
        assert (refused.status_code, refused.json()["code"]) == (409, "declared_by_document")
    assert (await client.post(f"{path}/disable")).json()["enabled"] is False


async def test_a_preview(client: httpx.AsyncClient) -> None:
    answer = await client.get("/api/cron", params={"expr": "30 2 * * *", "tz": "Europe/Berlin"})
    assert answer.status_code == 200
    upcoming = answer.json()["upcoming_ms"]
    assert len(upcoming) == 5 and upcoming == sorted(set(upcoming))
    assert (await client.get("/api/cron", params={"expr": "* * * * *"})).json()["tz"] == "UTC"
    for query, status, code in (
        ({}, 400, "bad_request"),
        ({"expr": "nonsense"}, 422, "cron_invalid"),
        ({"expr": "* * * * *", "tz": "Nowhere"}, 422, "timezone_unknown"),
    ):
        refused = await client.get("/api/cron", params=query)
        assert (refused.status_code, refused.json()["code"]) == (status, code)
