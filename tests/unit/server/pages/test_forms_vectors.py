"""Forms from JSON Schemas, case by case: tests/vectors/forms.json, which the editor's tests read, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from server.pages.forms import PREFIX, form_fields, initial_text, kind_of, read_form, schema_fields

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[3] / "vectors" / "forms.json").read_text(encoding="utf-8")
)
CASE = pytest.mark.parametrize("case", VECTORS, ids=[case["name"] for case in VECTORS])


@CASE
def test_the_fields_of_a_schema(case: dict[str, Any]) -> None:
    schema = case["schema"]
    required = schema.get("required", ())
    fields = [
        {
            "name": name,
            "title": field.get("title") or name,
            "kind": kind_of(field),
            "required": name in required,
            "initial": initial_text(field),
        }
        for name, field in schema_fields(schema).items()
    ]
    assert fields == case["fields"]
    html = form_fields(schema, None, {})
    assert all(f">{field['title']}<" in html for field in fields)


@CASE
def test_typed_text_as_values(case: dict[str, Any]) -> None:
    for typed in case["typed"]:
        values, errors = read_form(case["schema"], {PREFIX + name: text for name, text in typed["texts"].items()})
        assert values == typed["values"]
        assert set(errors) == set(typed["errors"])
        assert all(errors[name].startswith(why.rstrip(".")) for name, why in typed["errors"].items())
