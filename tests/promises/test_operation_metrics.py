"""The token of a monitoring system reads metrics, and nothing that a run holds."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from server.api import TABLE
from server.settings import Settings
from tests.support.application import application
from tests.support.documents import document

ADMIN = {"authorization": "Bearer the-token"}
FLOW = document("flow", "start a", blocks={"a": {"type": "set", "params": {"value": "a private value"}}})
CLOSED = [spec for spec in TABLE if not spec.public and spec.path != "/metrics"]


@asynccontextmanager
async def server(**place: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with application(Settings(secret_key="a secret for tests only", token="the-token", **place)) as (_, client):
        yield client


async def token(client: httpx.AsyncClient, role: str) -> dict[str, str]:
    made = await client.post("/api/tokens", json={"name": "prometheus", "role": role}, headers=ADMIN)
    assert made.status_code == 201, made.text
    return {"authorization": f"Bearer {made.json()['token']}"}


@pytest.mark.parametrize("database", ["SQLite", "PostgreSQL"])
async def test_it_reads_metrics_and_nothing_else(database: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    is_file = database == "SQLite"
    place = {"db_path": str(tmp_path / "weft.db")} if is_file else {"db_address": request.getfixturevalue("postgres")}
    async with server(**place) as client:
        run = (await client.post("/api/runs?wait=60", json={"document": FLOW}, headers=ADMIN)).json()["run"]
        mine = await token(client, "metrics")
        assert (await client.get(f"/api/runs/{run}", headers=await token(client, "viewer"))).status_code == 200
        metrics = await client.get("/metrics", headers=mine)
        assert metrics.status_code == 200 and "weft_runs_ended_total" in metrics.text
        assert "a private value" not in metrics.text
        for spec in CLOSED:
            path = re.sub(r"{(\w+)}", lambda found: run if found[1] == "id" else "a", spec.path)
            answer = await client.request(spec.method, path, headers=mine)
            assert answer.status_code == 403, (spec.method, path, answer.text)
            assert "yours is metrics" in answer.text


async def test_a_person_cannot_have_it(tmp_path: Path) -> None:
    async with server(db_path=str(tmp_path / "weft.db")) as client:
        for method, path in (("POST", "/api/users"), ("PUT", "/api/users/ada/role")):
            body = {"role": "metrics", **({"id": "ada"} if method == "POST" else {})}
            assert (await client.request(method, path, json=body, headers=ADMIN)).status_code == 422
