"""Environment names: which there are, who reads them, and never a value."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from executor.open.engine import Engine
from server.app import build_engine
from server.settings import Settings
from tests.support.documents import document

Json = dict[str, Any]


@pytest.fixture
async def engine(settings: Settings) -> AsyncIterator[Engine]:
    env = {"API_KEY": "value-of-the-key", "REGION": "value-of-the-region", "UNUSED": "value-of-unused"}
    engine = await build_engine(replace(settings, env=env, not_secret=("REGION",)))
    yield engine
    await engine.close()


def reading(name: str, *urls: str) -> Json:
    return document(name, blocks={f"b{n}": {"type": "http", "params": {"url": url}} for n, url in enumerate(urls)})


async def test_names_are_set_or_not_secret_or_not(client: httpx.AsyncClient) -> None:
    response = await client.get("/api/env")
    assert response.json()["env"] == [
        {"name": "API_KEY", "set": True, "secret": True, "used_by": []},
        {"name": "REGION", "set": True, "secret": False, "used_by": []},
        {"name": "UNUSED", "set": True, "secret": True, "used_by": []},
        {"name": "WEFT_BASE_URL", "set": True, "secret": False, "used_by": []},
    ]
    assert "value-of" not in response.text


async def test_who_reads_them(client: httpx.AsyncClient) -> None:
    await client.post("/api/workflows", json=reading("old", "http://x/${OLD_NAME}"))
    await client.post("/api/workflows", json=reading("old", "http://x/${API_KEY}", "http://${REGION}/${API_KEY}"))
    broken = {**reading("new", "${MISSING}"), "edges": "none"}
    draft = (await client.post("/api/drafts", json={"document": broken})).json()
    names = {name["name"]: name for name in (await client.get("/api/env")).json()["env"]}
    workflow = {"kind": "workflow", "id": "old", "name": "old", "version": 2, "rev": None}
    assert names["API_KEY"]["used_by"] == [workflow | {"blocks": ["b0", "b1"]}]
    assert names["REGION"]["used_by"] == [workflow | {"blocks": ["b1"]}]
    use = {"kind": "draft", "id": draft["id"], "name": "new", "version": None, "rev": 1, "blocks": ["b0"]}
    assert names["MISSING"] == {"name": "MISSING", "set": False, "secret": True, "used_by": [use]}
    assert "OLD_NAME" not in names, "only the newest version counts"
    assert names["UNUSED"]["used_by"] == []

    changed = {"document": reading("new", "${OTHER}")}
    await client.put(f"/api/drafts/{draft['id']}", json=changed, headers={"if-match": '"1"'})
    names = {name["name"]: name for name in (await client.get("/api/env")).json()["env"]}
    assert "MISSING" not in names and names["OTHER"]["used_by"][0]["rev"] == 2
    assert (await client.get("/api/env")).json()["env"] == list(names.values()), "the second time from memory"
    await client.delete(f"/api/drafts/{draft['id']}")
    assert "OTHER" not in (await client.get("/api/env")).text
