"""What the scripted model answers without a script fits the schema that was asked for."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from examples.dev_model.example import example, text_for
from executor.kernel.values.schema import violations

Json = dict[str, Any]
PATTERNS = (
    r"^[A-Z]{3}-\d{4}$", r"^(red|green|blue)$", r"^\w+@\w+\.com$", r"[^a-z0-9 ]", r"^(?:a|b)+c?$", r"\d{3,}", r"^\S+$",
    r"(a)\1", r"^[äö]$", r"^#[0-9a-fA-F]{6}$", r"^$", r"^[0-9]{1,3}(\.[0-9]+)?$", r"^\+?[1-9]\d{6,14}$",
    r"^\d{4}-\d{2}-\d{2}$",
)  # fmt: skip
FORMATS = ("date-time", "date", "time", "email", "uri", "uuid", "ipv4", "ipv6", "hostname", "regex", "duration")


class Schemas:
    """Random schemas that some value fits, by the way in which they are made."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def any(self, depth: int = 3) -> Json:
        kinds = [self.number, self.number, self.text, self.text, self.choice, self.plain]
        if depth:
            kinds += [self.object, self.object, self.array, self.array, self.combined, self.nullable]
        make: Callable[[int], Json] = self._random.choice(kinds)
        return make(depth)

    def plain(self, depth: int) -> Json:
        return {"type": self._random.choice(["boolean", "null", "string", "integer", "number"])}

    def choice(self, depth: int) -> Json:
        values = self._random.sample(["a", "b", 1, 2.5, None, True, ["x"], {"y": 1}], self._random.randint(1, 4))
        return {"const": values[0]} if self._random.random() < 0.3 else {"enum": values}

    def number(self, depth: int) -> Json:
        found: Json = {"type": self._random.choice(["integer", "number"])}
        whole = found["type"] == "integer"
        step: float | None = self._random.choice([None, None, 1, 5, 7] if whole else [None, None, 0.25, 0.1, 3])
        if step is not None:
            found["multipleOf"] = step
        low: float = self._random.randint(-50, 50)
        width = self._random.randint(2, 40) + 2 * (step or 0)
        if not whole and step is None and self._random.random() < 0.5:
            low, width = low / 4, 0.5
        if self._random.random() < 0.7:
            found[self._random.choice(["minimum", "exclusiveMinimum"])] = low
        if self._random.random() < 0.7:
            found[self._random.choice(["maximum", "exclusiveMaximum"])] = low + width
        return found

    def text(self, depth: int) -> Json:
        found: Json = {"type": "string"}
        match self._random.randint(0, 3):
            case 0:
                found["pattern"] = self._random.choice(PATTERNS)
            case 1:
                found["format"] = self._random.choice(FORMATS)
            case _:
                least = self._random.randint(0, 30)
                found |= {"minLength": least, "maxLength": least + self._random.randint(0, 20)}
        return found

    def object(self, depth: int) -> Json:
        names = [f"p{n}" for n in range(self._random.randint(0, 4))]
        found: Json = {"type": "object", "properties": {name: self.any(depth - 1) for name in names}}
        found["required"] = self._random.sample(names, self._random.randint(0, len(names)))
        match self._random.randint(0, 4):
            case 0:
                found["additionalProperties"] = False
            case 1:
                found |= {"minProperties": len(names) + 2, "additionalProperties": self.any(0)}
            case 2:
                found["maxProperties"] = max(1, len(found["required"]))
            case 3:
                found |= {"patternProperties": {r"^x-[a-z]+$": self.any(0)}, "additionalProperties": False}
                found["minProperties"] = len(names) + 1
        return found

    def array(self, depth: int) -> Json:
        least = self._random.randint(0, 4)
        found: Json = {"type": "array", "items": self.any(depth - 1), "minItems": least, "maxItems": least + 1}
        match self._random.randint(0, 3):
            case 0:
                found |= {"items": {"type": self._random.choice(["integer", "string", "number"])}, "uniqueItems": True}
            case 1:
                found = {"type": "array", "contains": self.any(0), "minItems": least}
            case 2:
                found = {"type": "array", "prefixItems": [self.any(0), self.any(0)], "items": self.any(0)}
                found["minItems"] = least
        return found

    def combined(self, depth: int) -> Json:
        match self._random.randint(0, 4):
            case 0:
                return {"anyOf": [self.any(depth - 1) for _ in range(self._random.randint(1, 3))]}
            case 1:
                return {
                    "oneOf": [{"type": "string", "minLength": 3}, {"type": "integer", "minimum": 3}, {"type": "null"}]
                }
            case 2:
                one, other = {"a": self.any(depth - 1)}, {"b": self.any(depth - 1)}
                return {"allOf": [{"type": "object", "properties": one, "required": ["a"]}, {"properties": other}]}
            case 3:
                return {"type": "integer", "not": {"enum": [0, 1, -1]}, "minimum": self._random.choice([-9, 0, 1])}
            case _:
                low = self._random.randint(0, 9)
                return {"allOf": [{"type": "number", "minimum": low}, {"type": "integer", "maximum": low + 3}]}

    def nullable(self, depth: int) -> Json:
        return (
            {"type": ["null", "string"]} if self._random.random() < 0.5 else {"type": ["array", "null"], "minItems": 1}
        )


def assert_fits(schema: Any) -> Any:
    value = example(schema)
    validator = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    errors = [error.message for error in validator.iter_errors(value)]
    assert not errors, (schema, value, errors)
    return value


@pytest.mark.parametrize("first", range(0, 2000, 500))
def test_answers_to_random_schemas_fit(first: int) -> None:
    for seed in range(first, first + 500):
        schema = Schemas(seed).any()
        value = assert_fits(schema)
        if isinstance(value, dict) and isinstance(schema, dict) and schema.get("type") == "object":
            assert violations(schema, value, lambda pattern, text: re.search(pattern, text) is not None) == []


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 5}, 1),
        ({"type": "integer", "exclusiveMinimum": 1}, 2),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.125),
        ({"type": "number", "maximum": -0.5, "multipleOf": 0.25}, -0.5),
        ({"type": "string", "minLength": 10}, "exampleexa"),
        ({"type": "string", "maxLength": 3}, "ple"),
        ({"type": "string", "maxLength": 0}, ""),
        ({"type": "string", "pattern": "^[A-Z]{2}[0-9]$"}, "AA0"),
        ({"type": "array", "items": {"enum": ["x", "y"]}, "minItems": 2, "uniqueItems": True}, ["x", "y"]),
        ({"type": "object", "required": ["a"]}, {"a": "example"}),
        ({"minimum": 3}, 3),
        ({"type": "integer", "default": 9, "maximum": 5}, -1),
        ({"const": {"a": 1}}, {"a": 1}),
    ],
)
def test_examples(schema: Any, value: Any) -> None:
    assert assert_fits(schema) == value


def test_a_schema_may_contain_itself() -> None:
    tree = {
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "below": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                },
                "required": ["name", "below"],
                "additionalProperties": False,
            }
        },
        "$ref": "#/$defs/node",
    }
    assert assert_fits(tree)["name"] == "example"


def test_what_nothing_fits_ends() -> None:
    began = time.monotonic()
    impossible: Json = {"type": "integer", "minimum": 5, "maximum": 3}
    for _ in range(6):
        impossible = {"type": "object", "properties": dict.fromkeys("abcd", impossible), "required": list("abcd")}
    assert isinstance(example(impossible), dict)
    assert example({"type": "object", "properties": 3, "required": "x"}) == {}
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("pattern", PATTERNS)
def test_texts_for_patterns(pattern: str) -> None:
    for n in range(8):
        assert re.search(pattern, text_for(pattern, n)), (pattern, n, text_for(pattern, n))
    if not pattern.startswith("^"):
        assert len(text_for(r"^a+$", 0, 300)) >= 300
