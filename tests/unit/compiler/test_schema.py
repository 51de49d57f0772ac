from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from compiler.schema import Checker, accepts, is_open

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["a"],
    "additionalProperties": False,
    "properties": {
        "a": {"type": ["string", "null"], "maxLength": 3, "pattern": "^[a-z]*$"},
        "b": {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0, "maximum": 9}},
        "c": {"oneOf": [{"type": "boolean"}, {"type": "number", "exclusiveMinimum": 3}]},
        "d": {"enum": ["x", 1, True]},
    },
}
VALUES = (
    st.none() | st.booleans() | st.integers(-2, 12) | st.floats(0, 5) | st.sampled_from(["", "abc", "abcd", "A", "x"])
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from("abcde"), VALUES | st.lists(VALUES, max_size=3), max_size=4))
def test_the_quick_yes_is_never_wrong(value: dict[str, Any]) -> None:
    if accepts(SCHEMA, value):
        assert Draft202012Validator(SCHEMA).is_valid(value)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from("abcde"), VALUES | st.lists(VALUES, max_size=3), max_size=4))
def test_problems_are_what_the_validator_says(value: dict[str, Any]) -> None:
    assert bool(list(Checker(SCHEMA).problems(value))) != Draft202012Validator(SCHEMA).is_valid(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("<a.b>", True), ("a < b", False), ("${X}", True), ({"$ref": "$.a"}, True), ({"$ref": "#/a"}, False), (3, False)],
)
def test_open_values(value: Any, expected: bool) -> None:
    assert is_open(value) is expected


def test_kinds_are_found_in_nested_schemas() -> None:
    js = {"type": "string", "x-weft": "expression"}
    checker = Checker(
        {
            "type": "object",
            "properties": {
                "when": js,
                "cases": {"type": "array", "items": {"properties": {"if/": js, "title": {}}}},
                "either": {"oneOf": [{"type": "boolean"}, js]},
                "pair": {"prefixItems": [{"x-weft": "literal"}], "items": js},
                "free": {"additionalProperties": {"x-weft": "code"}},
            },
        }
    )
    params = {
        "when": "1",
        "cases": [{"if/": "2", "title": "t"}, {"if/": True}],
        "either": "3",
        "pair": ["4", "5"],
        "free": {"k": "6"},
        "other": "7",
    }
    assert checker.kinds(params) == {
        "/when": "expression",
        "/cases/0/if~1": "expression",
        "/either": "expression",
        "/pair/0": "literal",
        "/pair/1": "expression",
        "/free/k": "code",
    }
