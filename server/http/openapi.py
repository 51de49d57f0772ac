"""openapi.json, version 3.1, from the route table and the structs it names. Nothing is written twice, so nothing can
drift."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import orjson
from msgspec import UNSET, Struct, inspect

from server.http.errors import PROBLEM_JSON, phrase
from server.http.request import INTEGER_MAX, Parameter, parameters_of
from server.http.response import Problem
from server.http.table import Link, Param, RouteSpec

_OTHER = {
    "text/event-stream": {"description": "Server-sent events; `data` of each is an EventOnWire."},
    "*/*": {"type": "string", "format": "binary"},
}
_BYTES = {"type": "string", "format": "binary"}
_VARIABLE = re.compile(r"\{(\w+)\}")


def openapi(table: Sequence[RouteSpec], locked: bool = False) -> dict[str, Any]:
    """Return the OpenAPI document. `locked`: the server has a token, so routes that are not public need a
    credential."""
    shown = [spec for spec in table if spec.documented]
    answers = (spec.answer if isinstance(spec.answer, tuple) else (spec.answer,) for spec in shown)
    named = [Problem, *(t for spec, answer in zip(shown, answers, strict=True) for t in (spec.body, *answer))]
    types = list({id(t): t for t in named if t is not None}.values())
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    for name, always in _always_sent(shown).items():
        components[name]["required"] = [field for field in components[name]["properties"] if field in always]
    schema_of = {id(type): schema for type, schema in zip(types, schemas, strict=True)}
    ids = {(spec.method, spec.path): _operation_id(spec) for spec in shown}
    paths: dict[str, Any] = {}
    for spec in shown:
        operation = paths.setdefault(spec.path, {})[spec.method.lower()] = _operation(spec, schema_of, locked)
        for status in _successes(spec) if spec.links else ():
            operation["responses"][str(status)]["links"] = dict(_link(link, ids) for link in spec.links)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "weft",
            "version": "1",
            "description": "Store workflows, run them durably, follow their events and answer their waits.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "Required unless WEFT_TOKEN is off."}
            },
        },
    }


def _always_sent(shown: Iterable[RouteSpec]) -> dict[str, set[str]]:
    """The fields that every answer has, by name of a struct in answers. msgspec treats a field with a default as
    optional, as in a body; an answer leaves it out only if it is UNSET or the struct omits defaults."""
    answers: set[type[Struct]] = set()
    bodies: set[type[Struct]] = set()
    for spec in shown:
        for one in spec.answer if isinstance(spec.answer, tuple) else (spec.answer,):
            _add_structs(inspect.type_info(one), answers)
        _add_structs(inspect.type_info(spec.body), bodies)
    return {
        one.__name__: {field.encode_name for field in msgspec.structs.fields(one) if field.default is not UNSET}
        for one in answers - bodies
        if not one.__struct_config__.omit_defaults
    }


def _add_structs(info: inspect.Type, found: set[type[Struct]]) -> None:
    if isinstance(info, inspect.StructType):
        if info.cls in found:
            return
        found.add(info.cls)
        for field in info.fields:
            _add_structs(field.type, found)
    for name in ("type", "item_type", "key_type", "value_type"):
        if isinstance(inner := getattr(info, name, None), inspect.Type):
            _add_structs(inner, found)
    for name in ("types", "item_types"):
        for inner in getattr(info, name, ()):
            _add_structs(inner, found)


def openapi_bytes(table: Sequence[RouteSpec], locked: bool = False) -> bytes:
    return orjson.dumps(openapi(table, locked))


def _operation(spec: RouteSpec, schema_of: dict[int, Any], locked: bool) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _operation_id(spec),
        "summary": spec.summary,
        "tags": [spec.tag],
        "security": [] if spec.public else [{"token": []}] if locked else [{}, {"token": []}],
        "responses": _responses(spec, schema_of),
    }
    if spec.handler.__doc__:
        operation["description"] = " ".join(spec.handler.__doc__.split())
    described = {param.name for param in spec.params if param.where == "path"}
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _VARIABLE.findall(spec.path)
        if name not in described
    ]
    parameters += [_parameter(param) for param in spec.params]
    if spec.query is not None:
        parameters += [_query_parameter(parameter) for parameter in parameters_of(spec.query)]
    if parameters:
        operation["parameters"] = parameters
    if spec.body is not None:
        operation["requestBody"] = {
            "required": _needs_body(spec.body, schema_of),
            "content": {"application/json": {"schema": _schema(spec.body, schema_of)}},
        }
    elif spec.takes is not None:
        operation["requestBody"] = {"required": False, "content": {spec.takes: {"schema": _BYTES}}}
    return operation


def _responses(spec: RouteSpec, schema_of: dict[int, Any]) -> dict[str, Any]:
    content = {
        media: {"schema": _schema(spec.answer, schema_of)}
        if media == "application/json" and spec.answer is not None
        else {"schema": _OTHER.get(media, {"type": "string"})}
        for media in spec.media
    }
    refused: dict[str, Any] = {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    if "text/html" in spec.media:  # links that people follow answer errors as pages
        refused["text/html"] = {"schema": {"type": "string"}}
    responses: dict[str, Any] = {}
    for status in _successes(spec):
        responses[str(status)] = (
            {"description": phrase(status)}
            if status in spec.empty
            else {"description": spec.summary, "content": content}
        )
    for status in sorted(_refusals(spec)):
        responses[str(status)] = {"description": phrase(status), "content": refused}
    responses["default"] = {"description": "Refused", "content": refused}
    return responses


def _successes(spec: RouteSpec) -> list[int]:
    return [spec.status, *(status for status in spec.statuses if status < 400)]


def _refusals(spec: RouteSpec) -> set[int]:
    """The errors that the route names, and those that follow from its token, parameters, body or path."""
    found = {status for status in spec.statuses if status >= 400}
    if not spec.public:
        found |= {401, 403}
    if spec.params or spec.query is not None:
        found.add(400)
    if spec.method != "GET":
        found.add(415)
    if "{" in spec.path and not spec.always:
        found.add(404)
    if spec.takes is not None:
        found |= {408, 413}
    if spec.body is not None:
        found |= {400, 408, 413, 422}
    return found


def _needs_body(body: Any, schema_of: dict[int, Any]) -> bool:
    """Return whether a body is required. A missing body counts as `{}`, which is enough for structs without required
    members. Other shapes require JSON, or accept anything."""
    if isinstance(body, type) and issubclass(body, Struct):
        return any(field.required for field in msgspec.structs.fields(body))
    return "type" in schema_of[id(body)]


def _link(link: Link, ids: dict[tuple[str, str], str]) -> tuple[str, dict[str, Any]]:
    operation = ids[link.method, link.path]
    return operation, {"operationId": operation, "parameters": link.parameters}


def _parameter(param: Param) -> dict[str, Any]:
    """Describe a parameter. Numbers without bounds have those of server/http/request.py."""
    number = param.schema.get("type") == "integer"
    return {
        "name": param.name,
        "in": param.where,
        "description": param.summary,
        "required": param.required,
        "schema": {"minimum": 0, "maximum": INTEGER_MAX, **param.schema} if number else param.schema,
    }


def _query_parameter(parameter: Parameter) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": parameter.name,
        "in": "query",
        "description": parameter.description,
        "required": parameter.required,
        "schema": parameter.schema,
    }
    if not parameter.required:
        described["allowEmptyValue"] = True  # which counts as absent
    return described


def _schema(answer: Any, schema_of: dict[int, Any]) -> Any:
    if isinstance(answer, tuple):
        return {"anyOf": [schema_of[id(one)] for one in answer]}
    return schema_of[id(answer)]


def _operation_id(spec: RouteSpec) -> str:
    words = re.findall(r"\w+", spec.path.removeprefix("/api").replace(".json", ""))
    prefix = ["api"] if spec.path.startswith("/api/openapi") or spec.path.startswith("/api/resume") else []
    return "_".join([spec.method.lower(), *prefix, *words]) or spec.method.lower()
