"""server/client/answers.py is what the server's structs are now; and what the generator makes of a schema."""

from __future__ import annotations

import typing
from typing import Any

import pytest

from server.api import TABLE
from server.client import answers
from server.http.openapi import openapi
from tests.web.python_types import OUT, module, type_of

TEXT: dict[str, Any] = {"type": "string"}


def test_the_stored_file_is_what_the_server_answers_now() -> None:
    assert OUT.read_text(encoding="utf-8") == module(), "run `npm --prefix web run types`"


def test_a_shape_has_the_members_of_its_schema_also_those_of_its_base() -> None:
    schemas = openapi(TABLE)["components"]["schemas"]
    shapes = {name: shape for name, shape in vars(answers).items() if name in schemas}
    assert {"RunDetail", "ScheduleSpec", "FileValue"} <= set(shapes) and "RunRequest" not in shapes
    for name, shape in shapes.items():
        assert set(typing.get_type_hints(shape)) == set(schemas[name]["properties"]), name


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, "Any"),
        ({"type": "integer", "minimum": 1}, "int"),
        ({"$ref": "#/components/schemas/Why"}, "Why"),
        ({"enum": ["a", 'say "b"', 1, None]}, 'Literal["a", "say \\"b\\"", 1, None]'),
        ({"const": True}, "Literal[True]"),
        ({"anyOf": [TEXT, {"type": "null"}, TEXT]}, "str | None"),
        ({"type": "array"}, "list[Any]"),
        ({"type": "array", "items": {"anyOf": [TEXT, {"type": "null"}]}}, "list[str | None]"),
        ({"type": "object"}, "dict[str, Any]"),
        ({"type": "object", "additionalProperties": TEXT}, "dict[str, str]"),
        ({"type": "object", "properties": {"a": TEXT}, "required": ["a"]}, "dict[str, Any]"),
    ],
)
def test_a_schema_as_a_type(schema: dict[str, Any], expected: str) -> None:
    assert type_of(schema) == expected


def test_a_schema_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown type"):
        type_of({"type": "date"})
