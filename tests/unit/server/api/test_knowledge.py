from __future__ import annotations

import base64
from typing import Any

import httpx
import pytest

from executor.open.engine import Engine
from server.scripted_model import ScriptedModel
from tests.support.runs import ended

DRINKS = "/api/knowledge/drinks"


@pytest.fixture(autouse=True)
def model(engine: Engine) -> None:
    """A model in this process: the server of these tests reaches no other."""
    endpoints = engine.parts.services.endpoints
    made = type(endpoints)({"DEV": ScriptedModel()})
    endpoints._by_name |= {"dev": made.find("dev:m")[0]}


async def created(client: httpx.AsyncClient) -> Any:
    answer = await client.post("/api/knowledge", json={"name": "drinks", "model": "dev:words", "description": "Tea"})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def added(client: httpx.AsyncClient, engine: Engine, **body: Any) -> Any:
    answer = await client.put(f"{DRINKS}/documents", json={"name": "tea.md", **body})
    assert answer.status_code == 202, answer.text
    await ended(engine, answer.json()["run"])
    return answer.json()


async def test_a_collection_is_made_filled_searched_and_deleted(client: httpx.AsyncClient, engine: Engine) -> None:
    made = await created(client)
    assert (made["name"], made["chunk_chars"], made["documents"]) == ("drinks", 1600, 0)
    document = await added(client, engine, text="Green tea at 80 degrees", title="Tea", source="https://example.com/t")
    assert (document["version"], document["media_type"], document["state"]) == (1, "text/markdown", "pending")
    [listed] = (await client.get(f"{DRINKS}/documents")).json()["documents"]
    assert (listed["state"], listed["embedded"], listed["chunks"]) == ("visible", 1, 1)
    [found] = (await client.post(f"{DRINKS}/search", json={"query": "green tea"})).json()["results"]
    assert (found["title"], found["source"], found["position"]) == ("Tea", "https://example.com/t", 0)
    assert (await client.get("/api/knowledge")).json()["collections"][0]["documents"] == 1
    page = base64.b64encode(b"<p>Black tea</p>").decode()
    assert (await added(client, engine, data=page, media_type="text/html"))["version"] == 2
    assert (await client.get(DRINKS)).json()["chunks"] == 1
    removed = await client.delete(f"{DRINKS}/documents", params={"name": "tea.md"})
    assert removed.json() == {"name": "tea.md", "deleted": True}
    assert (await client.delete(f"{DRINKS}/documents", params={"name": "tea.md"})).status_code == 404
    assert (await client.post(f"{DRINKS}/search", json={"query": "tea", "mode": "text"})).json() == {"results": []}
    assert (await client.delete(DRINKS)).json() == {"name": "drinks", "deleted": True}
    assert (await client.get(DRINKS)).status_code == 404


async def test_collections_are_the_choices_of_the_block(client: httpx.AsyncClient) -> None:
    await created(client)
    for text, names in (("TEA", ["drinks"]), ("", ["drinks"]), ("bread", [])):
        asked = {"field": "collection", "params": {}, "search": text}
        answer = await client.post("/api/blocks/knowledge/choices", json=asked)
        assert [one["value"] for one in answer.json()["choices"]] == names, answer.text


async def test_pages_of_documents(client: httpx.AsyncClient, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.api.knowledge.PAGE", 2)
    await created(client)
    for n in range(3):
        await added(client, engine, name=f"d{n}", text=f"text {n}")
    first = (await client.get(f"{DRINKS}/documents")).json()
    assert ([one["name"] for one in first["documents"]], first["next"]) == (["d0", "d1"], "d1")
    second = (await client.get(f"{DRINKS}/documents", params={"after": first["next"]})).json()
    assert ([one["name"] for one in second["documents"]], second["next"]) == (["d2"], None)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"name": "a"}, "document_invalid"),
        ({"name": "a", "text": "x", "data": ""}, "document_invalid"),
        ({"name": " ", "text": "x"}, "document_invalid"),
        ({"name": "a", "text": " "}, "knowledge_empty"),
        ({"name": "a", "data": base64.b64encode(b"\xff").decode()}, "knowledge_unreadable"),
        ({"name": "a.json", "text": "{"}, "knowledge_unreadable"),
    ],
)
async def test_what_is_no_document_is_refused(client: httpx.AsyncClient, body: dict[str, Any], code: str) -> None:
    await created(client)
    refused = await client.put(f"{DRINKS}/documents", json=body)
    assert (refused.status_code, refused.json()["code"]) == (400, code) and refused.json()["detail"]


async def test_a_name_that_is_taken_and_a_model_that_is_not_known(client: httpx.AsyncClient) -> None:
    await created(client)
    again = await client.post("/api/knowledge", json={"name": "drinks", "model": "dev:words"})
    assert (again.status_code, again.json()["code"]) == (409, "collection_exists")
    unknown = await client.post("/api/knowledge", json={"name": "b", "model": "nowhere:m"})
    assert (unknown.status_code, unknown.json()["code"], unknown.json()["pointer"]) == (400, "model_unknown", "/model")
