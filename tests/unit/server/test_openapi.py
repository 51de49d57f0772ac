from __future__ import annotations

import importlib.metadata
from typing import Any

import httpx
import orjson

from server.openapi import openapi, openapi_bytes
from server.routes import TABLE


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


def test_operation_ids_are_unique() -> None:
    document = openapi(TABLE)
    ids = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert len(ids) == len(set(ids))


def test_path_parameters_are_declared() -> None:
    for path, methods in openapi(TABLE)["paths"].items():
        for operation in methods.values():
            declared = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
            assert declared == {part[1:-1] for part in path.split("/") if part.startswith("{")}


def test_public_routes_ask_for_nothing() -> None:
    paths = openapi(TABLE)["paths"]
    assert paths["/resume/{token}"]["post"]["security"] == []
    assert {"token": []} in paths["/api/runs"]["post"]["security"]


async def test_it_is_served_in_both_places(client: httpx.AsyncClient) -> None:
    first, second = await client.get("/openapi.json"), await client.get("/api/openapi.json")
    assert first.json() == second.json()
    assert first.json()["openapi"] == "3.1.0"


async def test_the_version_is_that_of_the_distribution(client: httpx.AsyncClient) -> None:
    assert (await client.get("/api/version")).json() == {"version": importlib.metadata.version("weft")}
