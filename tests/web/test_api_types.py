"""web/src/api/schemas.ts is what the server's structs are now; and what the generator makes of a schema."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.api_types import CHECKS, OUT, check_of, checks, module, type_of

TEXT: dict[str, Any] = {"type": "string"}
NULL: dict[str, Any] = {"type": "null"}


def test_the_stored_file_is_what_the_server_answers_now() -> None:
    assert OUT.read_text(encoding="utf-8") == module(), "run `npm --prefix web run types`"
    assert CHECKS.read_text(encoding="utf-8") == checks(), "run `npm --prefix web run types`"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, "Json"),
        ({"type": "integer", "minimum": 1}, "number"),
        ({"$ref": "#/components/schemas/Why"}, "Why"),
        ({"enum": ["a", "it's", 1, None]}, "'a' | 'it\\'s' | 1 | null"),
        ({"const": True}, "true"),
        ({"anyOf": [TEXT, NULL]}, "string | null"),
        ({"type": "array"}, "Json[]"),
        ({"type": "array", "items": {"anyOf": [TEXT, NULL]}}, "(string | null)[]"),
        ({"type": "object"}, "JsonObject"),
        ({"type": "object", "additionalProperties": TEXT}, "Record<string, string>"),
        (
            {"type": "object", "properties": {"a": TEXT, "b-c": TEXT}, "required": ["a"]},
            "{ a: string; 'b-c'?: string; [other: string]: unknown }",
        ),
        ({"type": "object", "properties": {"a": TEXT}, "additionalProperties": False}, "{ a?: string }"),
    ],
)
def test_a_schema_as_a_type(schema: dict[str, Any], expected: str) -> None:
    assert type_of(schema) == expected


def test_an_unknown_type_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown type"):
        type_of({"type": "date"})


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, "any"),
        ({"type": "integer", "minimum": 1}, "number"),
        ({"$ref": "#/components/schemas/Why"}, "Why"),
        ({"enum": ["a", "b"]}, "text"),
        ({"enum": ["a", 1]}, "any"),
        ({"anyOf": [TEXT, NULL]}, "maybe(text)"),
        ({"anyOf": [TEXT, {"type": "boolean"}]}, "any"),
        ({"type": "array", "items": {"type": "boolean"}}, "list(flag)"),
        ({"type": "object", "additionalProperties": TEXT}, "record"),
        ({"type": "object", "properties": {"a": TEXT, "b": TEXT}, "required": ["a"]}, "shape({ a: text })"),
    ],
)
def test_the_check_of_a_schema(schema: dict[str, Any], expected: str) -> None:
    assert check_of(schema) == expected
