"""A connector document from an OpenAPI description, over HTTP."""

from __future__ import annotations

from typing import Any

import httpx

from executor.blocks.connectors.validate import checked
from tests.support.documents import connector

PATH = "/api/connectors/openapi"
PETS: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Pets"},
    "paths": {"/pets/{id}": {"get": {"operationId": "readPet", "summary": "Read a pet"}}},
}


async def test_operations_are_listed_and_a_document_is_made(client: httpx.AsyncClient) -> None:
    listed = await client.post(PATH, json={"description": PETS})
    assert listed.status_code == 200, listed.text
    (one,) = listed.json()["operations"]
    assert (one["id"], one["title"], one["problem"], listed.json()["connector"]) == (
        "read_pet", "Read a pet", None, None,
    )  # fmt: skip
    asked = {"description": PETS, "operations": ["read_pet"]}
    nowhere = await client.post(PATH, json=asked)
    assert (nowhere.status_code, nowhere.json()["code"]) == (400, "openapi_invalid")
    made = await client.post(PATH, json={**asked, "base_url": "https://pets.example", "service": "zoo"})
    assert checked(made.json()["connector"]).service == "zoo"
    wrong = await client.post(PATH, json={"description": {"swagger": "2.0"}})
    assert (wrong.status_code, wrong.json()["pointer"]) == (400, "/openapi")


async def test_a_connector_is_added_replaced_listed_and_deleted(client: httpx.AsyncClient) -> None:
    document = connector("tea")
    made = await client.put("/api/connectors/tea", json={"document": document})
    assert (made.status_code, made.json()["type"], made.json()["operations"]) == (201, "connector.tea", 1)
    types = [one["type"] for one in (await client.get("/api/blocks")).json()["blocks"]]
    assert "connector.tea" in types
    again = await client.put("/api/connectors/tea", json={"document": {**document, "title": "Green tea"}})
    assert again.status_code == 200
    assert [one["title"] for one in (await client.get("/api/connectors")).json()["connectors"]] == ["Green tea"]
    assert (await client.get("/api/connectors/tea")).json()["document"]["title"] == "Green tea"
    wrong = await client.put("/api/connectors/tea", json={"document": {**document, "operations": {}}})
    assert wrong.status_code == 400 and wrong.json()["errors"][0]["pointer"] == "/operations"
    assert (await client.put("/api/connectors/slack", json={"document": connector("slack")})).status_code == 409
    assert (await client.delete("/api/connectors/tea")).status_code == 200
    assert (await client.delete("/api/connectors/tea")).status_code == 404
