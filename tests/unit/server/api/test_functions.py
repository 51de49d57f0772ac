"""Queries and updates over HTTP, by the clients and the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import Result
from starlette.applications import Starlette

from executor.open.engine import Engine
from server.client import ApiError, AsyncClient
from server.settings import Settings
from tests.support.durable_stock import stock

BASE = "http://127.0.0.1:8765"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    functions = ("tests.support.durable_stock",)
    return Settings(db_path=str(tmp_path / "weft.db"), secret_key="a secret for tests only", functions=functions)


@pytest.fixture
async def run(client: httpx.AsyncClient) -> str:
    asked = {"document": stock.document(), "input": {"goods": ["tea"]}}
    started = await client.post("/api/runs", json=asked)
    assert started.status_code == 202, started.text
    return str(started.json()["run"])


@pytest.fixture
def api(app: Starlette) -> AsyncClient:
    return AsyncClient(BASE, "", transport=httpx.ASGITransport(app=app))


async def test_an_update_and_a_query(client: httpx.AsyncClient, engine: Engine, run: str) -> None:
    here = f"/api/runs/{run}"
    first = await client.post(f"{here}/updates/add?wait=30", json={"value": "cup", "id": "1"})
    assert first.status_code == 200
    assert first.json() == {"run": run, "name": "add", "id": "1", "answered": True, "answer": 2}
    again = await client.post(f"{here}/updates/add?wait=30", json={"value": "cup"}, headers={"idempotency-key": "1"})
    assert again.json() == first.json()
    counted = await client.post(f"{here}/queries/count", json={"arguments": {"of": "c"}})
    assert counted.json() == {"run": run, "name": "count", "answer": 1}
    assert (await client.get(here)).json()["state"] == {"goods": ["tea", "cup"]}
    assert (await client.get(f"{here}/state")).json()["state"] == {"goods": ["tea", "cup"]}
    refused = await client.post(f"{here}/updates/add?wait=30", json={"value": "stop"})
    assert (refused.status_code, refused.json()["code"], refused.json()["detail"]) == (409, "update_refused", "stopped")
    await engine.wait_finished(run, 30)
    assert (await client.post(f"{here}/queries/count", json={})).json()["answer"] == 2


async def test_what_cannot_be(client: httpx.AsyncClient, run: str) -> None:
    for path, body, status, code in (
        (f"{run}/queries/nope", {}, 404, "query_not_found"),
        (f"{run}/updates/nope", {}, 404, "update_not_found"),
        (f"{run}/updates/add", {"value": 5}, 400, "update_invalid"),
        (f"{run}/updates/add", {"value": "a", "id": ""}, 422, "body_invalid"),
        (f"{run}/queries/count", {"arguments": {"no": 1}}, 400, "arguments_invalid"),
        (f"{run}/queries/count", {"arguments": []}, 422, "body_invalid"),
        (f"{run}/signals/weft:update:add", {}, 400, "signal_name_reserved"),
        (f"{'0' * 32}/queries/count", {}, 404, "run_not_found"),
    ):
        answer = await client.post(f"/api/runs/{path}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (status, code), path


async def test_an_update_that_waits_for_its_answer(locked: httpx.AsyncClient, engine: Engine, run: str) -> None:
    path, bearer = f"/api/runs/{run}/updates/add", {"authorization": "Bearer the-token"}
    assert (await locked.post(path, json={"value": "cup"})).status_code == 401
    pending = await locked.post(path, json={"value": "cup", "id": "1"}, headers=bearer)
    assert pending.json()["id"] == "1"
    assert pending.status_code == (200 if pending.json()["answered"] else 202)
    rows = await engine.store.read_audit()
    assert [row.action for row in rows] == ["POST /api/runs/{id}/updates/{name}"]
    answered = await locked.post(f"{path}?wait=30", json={"value": "cup", "id": "1"}, headers=bearer)
    assert answered.json()["answer"] == 2


async def test_by_the_client(api: AsyncClient, run: str) -> None:
    assert await api.update(run, "add", "cup", id="1", seconds=30) == 2
    assert await api.update(run, "add", "cup", id="1") == 2
    assert await api.query("count", run, of="t") == 1
    with pytest.raises(ApiError) as refused:
        await api.update(run, "add", "stop")
    assert refused.value.code == "update_refused"


async def test_by_the_command_line(weft: Callable[..., Any], run: str) -> None:
    answered: Result = await weft("update", run, "add", '"cup"', "--id", "1")
    assert (answered.exit_code, answered.stdout) == (0, "2\n")
    assert (await weft("query", run, "count", '{"of": "c"}')).stdout == "1\n"
    assert 'published: {"goods": ["tea", "cup"]}' in (await weft("state", run)).stdout
    assert f"weft update {run} add JSON" in (await weft("inbox", "--kind", "signal")).stdout
    events = (await weft("events", run)).stdout
    assert "update.answered" in events and "node.state" in events
    refused: Result = await weft("update", run, "add", '"stop"')
    assert refused.exit_code and refused.stderr == "Error: stopped\n"
