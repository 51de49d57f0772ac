from __future__ import annotations

import importlib.metadata
import re
from typing import Any

import httpx
import orjson
import pytest

from server.api import TABLE
from server.http.openapi import openapi, openapi_bytes


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_every_documented_route_is_there_and_nothing_else() -> None:
    document = openapi(TABLE)
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert described == {(spec.method, spec.path) for spec in TABLE if spec.documented}


def test_every_reference_leads_somewhere() -> None:
    document = orjson.loads(openapi_bytes(TABLE))
    names = {reference.removeprefix("#/components/schemas/") for reference in references(document)}
    assert names <= set(document["components"]["schemas"])


def test_no_content_has_no_content_type() -> None:
    events = openapi(TABLE)["paths"]["/api/runs/{id}/events"]["get"]
    assert events["responses"]["204"] == {"description": "No Content"}
    assert "text/event-stream" in events["responses"]["200"]["content"]


def test_operation_ids_are_unique() -> None:
    document = openapi(TABLE)
    ids = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert len(ids) == len(set(ids))


def test_path_parameters_are_declared() -> None:
    for path, methods in openapi(TABLE)["paths"].items():
        for operation in methods.values():
            declared = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
            assert declared == {part[1:-1] for part in path.split("/") if part.startswith("{")}


def parameter(path: str, method: str, name: str) -> dict[str, Any]:
    parameters = openapi(TABLE)["paths"][path][method]["parameters"]
    (found,) = (p for p in parameters if p["name"] == name)
    return dict(found)


@pytest.mark.parametrize("path", ["/api/schedules/{id}", "/api/webhooks/{id}"])
def test_what_may_be_an_id_is_said(path: str) -> None:
    found = parameter(path, "put", "id")
    assert (found["in"], found["required"]) == ("path", True)
    assert re.search(found["schema"]["pattern"], "every-day_1.0")
    assert not re.search(found["schema"]["pattern"], "every day")


def test_what_is_read_of_headers_and_texts_is_said() -> None:
    """As patterns that every reader of JSON Schema knows: no groups but plain ones."""
    rev = parameter("/api/drafts/{id}", "put", "If-Match")["schema"]
    assert rev["examples"] == ['"3"']
    assert [bool(re.search(rev["pattern"], text)) for text in ('"3"', 'W/"3"', "3", '"0"', "")] == [True, True] + [
        False
    ] * 3
    cron = parameter("/api/cron", "get", "expr")["schema"]
    stored = openapi(TABLE)["components"]["schemas"]["ScheduleSpec"]["properties"]["cron"]
    assert cron == stored
    assert [bool(re.search(cron["pattern"], text)) for text in ("0 9 * * MON-FRI", "0 9 * *", "")] == [
        True,
        False,
        False,
    ]
    hook = openapi(TABLE)["components"]["schemas"]["WebhookSpec"]["properties"]
    assert [bool(re.search(hook["headers"]["items"]["pattern"], text)) for text in ("X-Event", "X Event", "")] == [
        True,
        False,
        False,
    ]
    for pattern in (rev["pattern"], cron["pattern"], hook["headers"]["items"]["pattern"]):
        assert "(?" not in pattern


def test_public_routes_ask_for_nothing() -> None:
    paths = openapi(TABLE)["paths"]
    assert paths["/resume/{token}"]["post"]["security"] == []
    assert {"token": []} in paths["/api/runs"]["post"]["security"]


async def test_it_is_served_in_both_places(client: httpx.AsyncClient) -> None:
    first, second = await client.get("/openapi.json"), await client.get("/api/openapi.json")
    assert first.json() == second.json()
    assert first.json()["openapi"] == "3.1.0"


async def test_the_version_is_that_of_the_distribution(client: httpx.AsyncClient) -> None:
    told = (await client.get("/api/version")).json()
    assert told == {"version": importlib.metadata.version("weft"), "signed_in": False, "read_only": False}
