"""openapi.json, version 3.1, from the route table and the structs it names. Nothing is written twice, so nothing can
drift."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import orjson

from server.errors import PROBLEM_JSON
from server.routes.table import Param, RouteSpec

_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "Stable, for machines."},
        "detail": {"type": "string", "description": "For people."},
        "pointer": {"type": "string", "description": "RFC 6901 pointer into the request body."},
        "hint": {"type": "string"},
        "diagnostics": {"type": "array", "items": {"$ref": "#/components/schemas/Diagnostic"}},
    },
}
_VARIABLE = re.compile(r"\{(\w+)\}")


def openapi(table: Sequence[RouteSpec]) -> dict[str, Any]:
    shown = [spec for spec in table if spec.documented]
    structs = list({id(t): t for spec in shown for t in (spec.body, spec.answer) if isinstance(t, type)}.values())
    schemas, components = msgspec.json.schema_components(structs, ref_template="#/components/schemas/{name}")
    schema_of = {id(struct): schema for struct, schema in zip(structs, schemas, strict=True)}
    paths: dict[str, Any] = {}
    for spec in shown:
        paths.setdefault(spec.path, {})[spec.method.lower()] = _operation(spec, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "weft",
            "version": "1",
            "description": "Store workflows, run them durably, follow their events, answer what they ask.",
        },
        "paths": paths,
        "components": {
            "schemas": {**components, "Problem": _PROBLEM},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "Needed when the server has WEFT_TOKEN."}
            },
        },
    }


def openapi_bytes(table: Sequence[RouteSpec]) -> bytes:
    return orjson.dumps(openapi(table))


def _operation(spec: RouteSpec, schema_of: dict[int, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _operation_id(spec),
        "summary": spec.summary,
        "tags": [spec.tag],
        "security": [] if spec.public else [{}, {"token": []}],
        "responses": _responses(spec, schema_of),
    }
    if spec.handler.__doc__:
        operation["description"] = " ".join(spec.handler.__doc__.split())
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _VARIABLE.findall(spec.path)
    ] + [_parameter(param) for param in spec.params]
    if parameters:
        operation["parameters"] = parameters
    if spec.body is not None:
        operation["requestBody"] = {"content": {"application/json": {"schema": _schema(spec.body, schema_of)}}}
    return operation


def _responses(spec: RouteSpec, schema_of: dict[int, Any]) -> dict[str, Any]:
    content = {
        media: {"schema": _schema(spec.answer, schema_of)}
        if media == "application/json" and spec.answer is not None
        else {"schema": {"type": "string"}}
        for media in spec.media
    }
    problem = {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    responses: dict[str, Any] = {str(spec.status): {"description": spec.summary, "content": content}}
    for status in spec.statuses:
        responses[str(status)] = (
            {"description": spec.summary, "content": content}
            if status < 400
            else {"description": "Refused", "content": problem}
        )
    responses["default"] = {"description": "Refused", "content": problem}
    return responses


def _parameter(param: Param) -> dict[str, Any]:
    return {
        "name": param.name,
        "in": param.where,
        "description": param.summary,
        "required": False,
        "schema": param.schema,
    }


def _schema(given: Any, schema_of: dict[int, Any]) -> Any:
    return schema_of[id(given)] if isinstance(given, type) else given


def _operation_id(spec: RouteSpec) -> str:
    words = re.findall(r"\w+", spec.path.removeprefix("/api").replace(".json", ""))
    prefix = ["api"] if spec.path.startswith("/api/openapi") or spec.path.startswith("/api/resume") else []
    return "_".join([spec.method.lower(), *prefix, *words]) or spec.method.lower()
