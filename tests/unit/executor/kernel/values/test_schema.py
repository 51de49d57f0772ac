from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from executor.blocks.sandbox.sandbox import Sandbox
from executor.errors import BadRequest
from executor.kernel.values.schema import CHECK_S_MAX, ERRORS_SHOWN_MAX, violations
from tests.support.cost import computes_within


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    sandbox = Sandbox(threads=1)
    sandbox.check_syntax("1", "expression")  # it is made now, which may cost seconds, and not in a test that measures
    yield sandbox
    sandbox.close()


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 1),
        ({"type": "integer"}, "1"),
        ({"pattern": "^a+$"}, "aaa"),
        ({"pattern": "^a+$"}, "aab"),
        ({"pattern": "b"}, "abc"),
        ({"pattern": "^(ab)+$"}, "abab"),
        ({"pattern": "^x|y$"}, "zy"),
        ({"pattern": "a"}, 7),
        ({"pattern": r"^[^@\s]+@[^@\s]+\.[^@\s]+$"}, "ada@example.org"),
        ({"pattern": r"^[^@\s]+@[^@\s]+\.[^@\s]+$"}, "ada"),
        ({"patternProperties": {"^n": {"type": "number"}}}, {"n1": 1, "x": "y"}),
        ({"patternProperties": {"^n": {"type": "number"}}}, {"n1": "1"}),
        ({"properties": {"a": {}}, "patternProperties": {"^n": {}}, "additionalProperties": False}, {"a": 1, "n": 2}),
        ({"properties": {"a": {}}, "patternProperties": {"^n": {}}, "additionalProperties": False}, {"b": 1}),
        ({"additionalProperties": {"type": "string"}}, {"b": 1}),
        ({"uniqueItems": True}, [1, True, "1", [1], {"a": 1}, {"a": 2}, 1.5]),
        ({"uniqueItems": True}, [{"a": 1, "b": 2}, {"b": 2, "a": 1}]),
        ({"uniqueItems": True}, [1, 1.0]),
        ({"uniqueItems": True}, [0, False]),
        ({"uniqueItems": False}, [1, 1]),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"minimum": 3}}}, 2),
        ({"anyOf": [{"type": "string"}, {"minimum": 3}]}, 2),
    ],
)
def test_the_verdict_is_that_of_jsonschema(sandbox: Sandbox, schema: dict[str, Any], value: Any) -> None:
    valid = Draft202012Validator(schema).is_valid(value)
    assert (violations(schema, value, sandbox.matches) == []) == valid
    assert (violations(schema, value) == []) == valid


def test_violations_have_places_and_are_bounded() -> None:
    found = violations({"type": "object", "properties": {"a/b": {"items": {"type": "string"}}}}, {"a/b": ["x", 2]})
    assert found == [{"pointer": "/a~1b/1", "message": "2 is not of type 'string'"}]
    assert len(violations({"items": {"type": "string"}}, [1] * 100_000)) == ERRORS_SHOWN_MAX


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": "^(a+)+$"}, "a" * 40 + "!"),
        ({"items": {"pattern": "^(a|a)*$"}}, ["a" * 40 + "!"] * 1_000),
        ({"pattern": "a*a*a*a*a*b"}, "a" * 5_000),
        ({"uniqueItems": True}, [{"a": n} for n in range(400_000)]),
        (
            {"$ref": "#/$defs/d0"}
            | {"$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)} | {"d40": {}}},
            1,
        ),
    ],
    ids=["backtracking", "many of them", "polynomial", "many objects", "multiplying"],
)
def test_a_check_ends_in_time(sandbox: Sandbox, schema: dict[str, Any], value: Any) -> None:
    with computes_within(4 * CHECK_S_MAX):
        with pytest.raises(BadRequest) as refused:
            violations(schema, value, sandbox.matches)
        assert refused.value.code == "check_took_too_long" and refused.value.hint


def test_time_in_which_the_check_does_nothing_is_not_counted() -> None:
    """A busy machine, and a sandbox that has to be made first, are not the fault of the value."""

    def waits(pattern: str, text: str) -> bool:
        time.sleep(CHECK_S_MAX * 1.2)
        return True

    schema = {"properties": {"a": {"pattern": "^(?:x)$"}, "b": {"type": "string"}}}
    assert violations(schema, {"a": "x", "b": "y"}, waits) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strin"},
        {"pattern": "("},
        {"$ref": "#/nope"},
        {"$ref": "#"},
        {"$ref": "http://127.0.0.1:9/"},
        {"properties": {f"p{n}": {} for n in range(2_000)}},
        {"description": "x" * 100_000},
    ],
    ids=lambda schema: str(schema)[:30],
)
def test_a_schema_that_cannot_be_used_says_so(sandbox: Sandbox, schema: dict[str, Any]) -> None:
    with pytest.raises(BadRequest) as refused:
        violations(schema, "x", sandbox.matches)
    assert refused.value.code == "schema_invalid"


def test_patterns_are_those_of_javascript(sandbox: Sandbox) -> None:
    assert violations({"pattern": "^.$"}, "😀", sandbox.matches) == []
    assert violations({"pattern": r"^\d$"}, "٣", sandbox.matches) != [], "only ASCII digits"
    assert violations({"pattern": "^a$"}, "a\n", sandbox.matches) != [], "$ is the very end"
