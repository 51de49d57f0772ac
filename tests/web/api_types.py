"""web/src/api/schemas.ts and checks.ts: what crosses HTTP as TypeScript, and checks of answers, from openapi.json.

To write it after a change of a struct: `npm --prefix web run types`. It is our own code because openapi-typescript
needs the programming interface of TypeScript 5, which the compiler in web/ no longer has.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from executor.kernel.core.events import Event
from server.api import TABLE
from server.http.openapi import openapi

OUT = Path(__file__).parents[2] / "web" / "src" / "api" / "schemas.ts"
HEAD = """\
// What crosses HTTP, made from openapi.json by `npm run types`: change the structs of the server, not this file.
// A field is optional where the server leaves it out of some answers, or where a request may leave it out.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }
"""
CHECKS = OUT.with_name("checks.ts")
CHECKS_HEAD = """\
// Checks of what the server answers, made from openapi.json by `npm run types`: change the structs of the server, not
// this file. A text with a fixed set of values may have another one, of a newer server.

import type * as api from './schemas'
import { any, flag, list, maybe, number, record, shape, text } from './check'
"""
_SCALARS = ("text", "number", "flag", "record")
_UNCHECKED = ("any", *(f"maybe({check})" for check in _SCALARS))
_REFERENCE = "#/components/schemas/"
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")


def module() -> str:
    """The whole file."""
    schemas: dict[str, Any] = openapi(TABLE)["components"]["schemas"]
    return "\n".join(
        [HEAD, _event_types(), *("\n".join(_interface(name, schemas[name])) + "\n" for name in sorted(schemas))]
    )


def _event_types() -> str:
    """A browser hears only the events that it asks for by name."""
    names = (str(event.__struct_config__.tag) for event in get_args(Event))
    return "export const EVENT_TYPES = [\n" + "".join(f"  '{name}',\n" for name in names) + "] as const\n"


def type_of(schema: Mapping[str, Any]) -> str:
    """The type of a schema as it stands in another. Raises ValueError for one that this module cannot read."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(_REFERENCE)
    if "const" in schema:
        return _literal(schema["const"])
    if "enum" in schema:
        return " | ".join(map(_literal, schema["enum"]))
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(map(type_of, schema["anyOf"])))
    kind = schema.get("type")
    if kind is None:
        return "Json"
    if kind == "array":
        of = type_of(schema.get("items", {}))
        return f"({of})[]" if " | " in of else f"{of}[]"
    if kind == "object":
        return _object(schema)
    if kind not in _PLAIN:
        raise ValueError(f"a schema of an unknown type: {schema}")
    return _PLAIN[kind]


def checks() -> str:
    """Return checks.ts: a check of each schema that an answer of success holds, after those that it uses."""
    described = openapi(TABLE)
    schemas: dict[str, Any] = described["components"]["schemas"]
    answers = [
        content["schema"]
        for operations in described["paths"].values()
        for operation in operations.values()
        for status, answer in operation["responses"].items()
        for kind, content in answer.get("content", {}).items()
        if kind in ("application/json", "application/problem+json") and status != "default"
    ]
    done: dict[str, str] = {}

    def add(name: str) -> None:
        if name not in done:
            done[name] = ""
            for used in _references(schemas[name]):
                add(used)
            fields = _checks_of(schemas[name])
            done[name] = f"export const {name} = /*#__PURE__*/ shape<api.{name}>({fields})"
            done[name] = done.pop(name)  # after those that it uses

    for name in (*(name for schema in answers for name in _references(schema)), "EventOnWire"):
        add(name)
    return CHECKS_HEAD + "\n" + "\n".join(done.values()) + "\n"


def check_of(schema: Mapping[str, Any]) -> str:
    """The check of a schema as it stands in another."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(_REFERENCE)
    values = [schema["const"]] if "const" in schema else schema.get("enum", ())
    if values:
        return "text" if all(isinstance(value, str) for value in values) else "any"
    if "anyOf" in schema:
        parts = list(dict.fromkeys(check_of(part) for part in schema["anyOf"] if part.get("type") != "null"))
        found = parts[0] if len(parts) == 1 else "any"
        if found == "any":
            return found
        return f"maybe({found})" if any(part.get("type") == "null" for part in schema["anyOf"]) else found
    kind = schema.get("type")
    if kind == "array":
        return f"list({check_of(schema.get('items', {}))})"
    if kind == "object":
        required = {name: of for name, of in schema.get("properties", {}).items() if name in schema.get("required", ())}
        return f"shape({_checks_of({**schema, 'properties': required})})" if required else "record"
    return {"string": "text", "integer": "number", "number": "number", "boolean": "flag"}.get(str(kind), "any")


def _checks_of(schema: Mapping[str, Any]) -> str:
    """Fields that may be missing or null are checked only if they hold others: pages show them or leave them out."""
    required = schema.get("required", ())
    checks = {name: check_of(of) for name, of in schema.get("properties", {}).items()}
    fields = (
        f"{name if _IDENTIFIER.fullmatch(name) else _literal(name)}: "
        + (check if name in required or check.startswith("maybe(") else f"maybe({check})")
        for name, check in checks.items()
        if check not in _UNCHECKED and (name in required or check not in _SCALARS)
    )
    return "{ " + ", ".join(fields) + " }"


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield str(schema["$ref"]).removeprefix(_REFERENCE)
        for part in schema.values():
            yield from _references(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _references(part)


def _interface(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    if schema.get("type") != "object":
        raise ValueError(f"{name} is not an object: {schema}")
    yield from _comment(schema, "")
    yield f"export interface {name} {{"
    for field, of in schema.get("properties", {}).items():
        yield from _comment(of, "  ")
        yield f"  {_field(schema, field)}: {type_of(of)}"
    yield "}"


def _object(schema: Mapping[str, Any]) -> str:
    of = schema.get("additionalProperties", True)
    if "properties" not in schema:
        return f"Record<string, {type_of(of)}>" if isinstance(of, dict) else "JsonObject"
    fields = [f"{_field(schema, name)}: {type_of(part)}" for name, part in schema["properties"].items()]
    if of is True:
        fields.append("[other: string]: unknown")
    return "{ " + "; ".join(fields) + " }"


def _field(schema: Mapping[str, Any], name: str) -> str:
    text = name if _IDENTIFIER.fullmatch(name) else _literal(name)
    return text if name in schema.get("required", ()) else f"{text}?"


def _literal(value: Any) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'" if isinstance(value, str) else json.dumps(value)


def _comment(schema: Mapping[str, Any], indent: str) -> Iterator[str]:
    text = inspect.cleandoc(schema.get("description", "")).replace("*/", "* /")
    if text:
        first, *others = text.splitlines()
        yield f"{indent}/** {first}" + ("" if others else " */")
        yield from (f"{indent} * {line}".rstrip() + (" */" if line is others[-1] else "") for line in others)


if __name__ == "__main__":
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(module(), encoding="utf-8")
    CHECKS.write_text(checks(), encoding="utf-8")
    sys.stdout.write(f"{OUT.name}, {CHECKS.name}: written\n")
