"""A connector from an OpenAPI description: descriptions as they are found, the one of this server, and nonsense."""

from __future__ import annotations

import copy
import time
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executor.blocks.connectors import openapi
from executor.blocks.connectors.block import ConnectorBlock, request_of
from executor.blocks.connectors.validate import checked
from executor.errors import BadRequest, LimitExceeded

Json = dict[str, Any]
PETS: Json = {  # as in the examples of the specification
    "openapi": "3.0.3",
    "info": {"title": "Swagger Petstore", "version": "1.0.0"},
    "servers": [{"url": "https://{region}.petstore.example/v1/", "variables": {"region": {"default": "eu"}}}],
    "security": [{"key": []}],
    "paths": {
        "/pets": {
            "parameters": [{"$ref": "#/components/parameters/trace"}],
            "get": {
                "summary": "List all pets",
                "operationId": "listPets",
                "tags": ["pets"],
                "parameters": [
                    {
                        "name": "limit",
                        "in": "query",
                        "schema": {"type": "integer", "format": "int32", "maximum": 100, "default": 20},
                    },
                    {"name": "tags", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                ],
                "responses": {
                    "200": {
                        "content": {
                            "application/json": {
                                "schema": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}}
                            }
                        }
                    }
                },
            },
            "post": {
                "summary": "Create a pet",
                "operationId": "createPets",
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
                },
                "responses": {"201": {"description": "created"}},
            },
        },
        "/pets/{petId}": {
            "get": {
                "summary": "Info for a specific pet",
                "operationId": "showPetById",
                "security": [{"login": []}],
                "parameters": [{"name": "petId", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {"200": {"$ref": "#/components/responses/pet"}},
            },
            "put": {
                "operationId": "uploadFile",
                "requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {}}}},
                "responses": {},
            },
            "patch": {
                "operationId": "renamePet",
                "requestBody": {
                    "content": {
                        "application/x-www-form-urlencoded": {
                            "schema": {"type": "object", "properties": {"name": {"type": "string"}}}
                        }
                    }
                },
                "responses": {},
            },
        },
    },
    "components": {
        "parameters": {"trace": {"name": "X-Trace", "in": "header", "schema": {"type": "string"}}},
        "responses": {
            "pet": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}},
        },
        "schemas": {
            "Named": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
            "Pet": {
                "allOf": [{"$ref": "#/components/schemas/Named"}],
                "properties": {
                    "id": {"type": "integer", "readOnly": True},
                    "tag": {"type": "string", "nullable": True, "enum": ["cat", "dog"]},
                    "age": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
                    "parent": {"$ref": "#/components/schemas/Pet"},
                },
            },
        },
        "securitySchemes": {
            "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "login": {"type": "http", "scheme": "basic"},
        },
    },
}


def test_what_a_description_offers() -> None:
    found = openapi.operations(openapi.parse(orjson.dumps(PETS)))
    assert [(one.id, one.method, one.path, one.problem is None) for one in found] == [
        ("list_pets", "GET", "/pets", True),
        ("create_pets", "POST", "/pets", True),
        ("show_pet_by_id", "GET", "/pets/{petId}", True),
        ("upload_file", "PUT", "/pets/{petId}", False),
        ("rename_pet", "PATCH", "/pets/{petId}", True),
    ]
    assert (found[0].title, found[0].tag) == ("List all pets", "pets")


def test_the_document_of_chosen_operations() -> None:
    document = openapi.connector(PETS, ["list_pets", "create_pets", "rename_pet"])
    assert (document["service"], document["base_url"]) == ("swagger_petstore", "https://eu.petstore.example/v1")
    assert document["auth"] == {"kind": "header", "name": "X-Key", "title": "API key"}
    listing, creating = document["operations"]["list_pets"], document["operations"]["create_pets"]
    assert listing["query"] == {"limit": "{{limit}}", "tags": "{{tags}}"}
    assert listing["headers"] == {"X-Trace": "{{x_trace}}"}
    assert listing["fields"]["limit"] == {
        "title": "limit", "type": "integer", "format": "int32", "maximum": 100, "description": "Default: 20",
    }  # fmt: skip
    assert creating["body"] == {
        "name": "{{name}}", "tag": "{{tag}}", "age": "{{age}}", "parent": "{{parent}}",
    }  # fmt: skip
    assert creating["required"] == ["name"]
    assert creating["fields"]["tag"]["enum"] == ["cat", "dog", None]
    assert listing["output"]["items"]["properties"]["parent"]["properties"]["name"] == {"type": "string"}
    connector = checked(document)
    params = {"credential": "k", "name": "Rex", "age": "3"}
    assert request_of(connector, connector.operations["create_pets"], params) == {
        "method": "POST",
        "url": "https://eu.petstore.example/v1/pets",
        "headers": {"X-Key": "k"},
        "query": {},
        "body": {"name": "Rex", "age": 3},
        "timeout_s": 30,
    }
    params = {"credential": "k", "pet_id": "a/b", "name": "x"}
    renamed = request_of(connector, connector.operations["rename_pet"], params)
    assert renamed["url"].endswith("/pets/a%2Fb")
    assert renamed["headers"]["Content-Type"] == "application/x-www-form-urlencoded"


def test_fields_of_one_name_and_two_kinds_get_two_names() -> None:
    description = copy.deepcopy(PETS)
    limit = {"name": "limit", "in": "query", "schema": {"type": "string"}}
    description["paths"]["/pets/{petId}"]["get"]["parameters"].append(limit)
    made = openapi.connector(description, ["list_pets", "show_pet_by_id"])["operations"]
    assert made["show_pet_by_id"]["query"] == {"limit": "{{limit_2}}"}


def test_auth_and_address_of_one_operation() -> None:
    made = openapi.connector(PETS, ["show_pet_by_id"], service="pets", base_url="http://127.0.0.1:9/api/")
    assert (made["service"], made["base_url"], made["auth"]["kind"]) == ("pets", "http://127.0.0.1:9/api", "basic")


@pytest.mark.parametrize(
    ("change", "chosen", "said"),
    [
        ({"openapi": "2.0"}, [], "not an OpenAPI 3 description"),
        ({"paths": []}, [], "has no paths"),
        ({}, [], "choose 1 to 50"),
        ({}, ["nope"], "there is no operation 'nope'"),
        ({}, ["upload_file"], "sends files"),
        ({"servers": [{"url": "/v1"}]}, ["list_pets"], "has no address of the service"),
        ({"servers": [{"url": "file:///etc"}]}, ["list_pets"], "has no address of the service"),
    ],
)
def test_what_cannot_be_imported(change: Json, chosen: list[str], said: str) -> None:
    with pytest.raises(BadRequest, match=said) as caught:
        openapi.connector(openapi.known({**PETS, **change}), chosen)
    assert caught.value.code == "openapi_invalid" and caught.value.hint


def test_circles_and_other_files_end() -> None:
    description = copy.deepcopy(PETS)
    schemas = description["components"]["schemas"]
    schemas["Pet"] = {"$ref": "#/components/schemas/Cat"}
    schemas["Cat"] = {"$ref": "#/components/schemas/Pet"}
    description["paths"]["/pets"]["get"]["parameters"] = [{"$ref": "https://evil.example/parameters.json#/limit"}]
    description["components"]["parameters"]["trace"] = {"$ref": "#/components/parameters/trace"}
    made = openapi.connector(description, ["list_pets", "create_pets"])["operations"]
    assert made["list_pets"] == {
        "title": "List all pets", "method": "GET", "path": "/pets", "output": {"type": "array", "items": {}},
    }  # fmt: skip
    assert made["create_pets"]["body"] == "{{body}}"
    # Each property leads to all others: without bounds, more parts than there are atoms.
    names = [f"S{n}" for n in range(40)]
    for name in names:
        properties = {other: {"$ref": f"#/components/schemas/{other}"} for other in names}
        schemas[name] = {"type": "object", "properties": properties, "allOf": [{"$ref": "#/components/schemas/S1"}] * 9}
    schemas["Pet"] = schemas["S0"]
    began_s = time.process_time()
    with pytest.raises(LimitExceeded, match="takes too long to read") as caught:
        openapi.connector(description, ["list_pets", "create_pets"])
    assert time.process_time() - began_s < 5
    assert caught.value.code == "openapi_too_large" and caught.value.hint


def test_the_description_of_this_server() -> None:
    from server.api import TABLE
    from server.http.openapi import openapi as describe

    description = openapi.parse(orjson.dumps(describe(TABLE, True)))
    offered = openapi.operations(description)
    usable = [one.id for one in offered if one.problem is None]
    assert len(usable) > 60 and "post_runs" in usable
    for start in range(0, len(usable), 20):
        made = openapi.connector(description, usable[start : start + 20], base_url="http://127.0.0.1:8765")
        assert made["auth"]["kind"] in ("bearer", "none")
        ConnectorBlock(checked(made))
    runs = openapi.connector(description, ["post_runs"], base_url="http://127.0.0.1:8765")["operations"]["post_runs"]
    assert runs["body"]["input"] == "{{input}}" and runs["required"] == ["document"]


_words = st.sampled_from(
    ["get", "post", "parameters", "requestBody", "content", "application/json", "schema", "$ref", "properties", "name",
     "in", "path", "query", "header", "required", "allOf", "items", "type", "object", "string", "enum", "title",
     "#/components/schemas/Pet", "#/paths", "security", "responses", "200", "{{x}}", "$mime", "operation", "\ud7ff"]
)  # fmt: skip
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _words | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words | st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def _places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [at] if at else []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        found += _places(item, (*at, key))
    return found


PLACES = _places(PETS)


@settings(derandomize=True, database=None, deadline=None)
@given(changes=st.lists(st.tuples(st.sampled_from(PLACES), _json), min_size=1, max_size=4))
def test_any_description_gives_a_right_document_or_a_refusal(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    description = copy.deepcopy(PETS)
    for (*steps, last), value in changes:
        at: Any = description
        for step in steps:
            at = at[step] if isinstance(at, dict) and step in at else at
        if isinstance(at, dict) and isinstance(last, str):
            at[last] = value
    try:
        known = openapi.parse(orjson.dumps(description))
        usable = [one.id for one in openapi.operations(known) if one.problem is None]
        made = openapi.connector(known, usable[:50])
    except BadRequest as error:
        assert error.hint
        return
    spec = ConnectorBlock(checked(made)).spec
    assert spec.type.startswith("connector.")


@settings(derandomize=True, database=None, deadline=None)
@given(data=st.binary(max_size=200) | _json.map(orjson.dumps))
def test_bytes_that_are_no_description_are_refused(data: bytes) -> None:
    with pytest.raises(BadRequest):
        openapi.parse(data)


@pytest.mark.parametrize(
    "shared",
    [
        {"summary": "long text " * 300_000},
        {"tags": ["long " * 600_000]},
        {"$ref": "#/" + "a/" * 1_500_000},
        {"requestBody": {"content": {f"image/{n}": {} for n in range(100_000)}}},
    ],
)
def test_what_many_operations_share_is_not_read_again_for_each(shared: Json) -> None:
    paths = {f"/p{n}": {"$ref": "#/components/pathItems/all"} for n in range(1_000)}
    item = {"post": shared} if "$ref" not in shared else shared
    description = {"openapi": "3.1.0", "info": {}, "paths": paths, "components": {"pathItems": {"all": item}}}
    began = time.process_time()
    found = openapi.operations(description)
    assert time.process_time() - began < 2
    assert len(found) == (0 if "$ref" in shared else 1_000)
