"""Schemas and values of Python's types, of msgspec's and of pydantic's."""

from __future__ import annotations

import datetime as dt
import enum
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest

from compiler.metaschema import problem_of
from compiler.signature import TypeUnknown, Unfit, read, schema_of, write
from executor.kernel.values.schema import violations


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Tree:
    """Branches all the way."""

    name: str
    branches: list[Tree] = field(default_factory=list)


class Model(pydantic.BaseModel):
    class Inner(pydantic.BaseModel):
        text: str

    count: int = pydantic.Field(gt=3, description="more than three")
    inner: Inner | None = None


class All(msgspec.Struct):
    tree: Tree
    model: Model
    when: dt.datetime
    amount: Decimal
    colour: Colour = Colour.RED
    size: Annotated[int, msgspec.Meta(ge=1, le=6)] = 2
    note: str | None = None
    kind: Literal["a", "b"] = "a"
    either: int | str = 1


JSON: dict[str, Any] = {
    "tree": {"name": "oak", "branches": [{"name": "twig", "branches": []}]},
    "model": {"count": 4, "inner": {"text": "x"}},
    "when": "2026-01-02T03:04:05Z",
    "amount": "1.50",
    "colour": "blue",
    "size": 3,
    "note": None,
    "kind": "b",
    "either": "one",
}


def test_a_schema_holds_everything_in_place_and_is_one() -> None:
    schema = schema_of(All)
    assert problem_of(schema) is None
    assert "$ref" not in str(schema) and "$defs" not in str(schema)
    of = schema["properties"]
    assert schema["required"] == ["tree", "model", "when", "amount"]
    assert of["size"] == {"type": "integer", "minimum": 1, "maximum": 6, "default": 2}
    assert of["note"] == {"type": ["string", "null"], "default": None}
    assert of["colour"] == {"title": "Colour", "enum": ["blue", "red"], "default": "red"}
    assert of["tree"]["description"] == "Branches all the way."
    assert of["tree"]["properties"]["branches"]["items"] == {}  # inside itself
    assert of["model"]["properties"]["count"] == {
        "title": "Count",
        "description": "more than three",
        "exclusiveMinimum": 3,
        "type": "integer",
    }
    assert of["model"]["properties"]["inner"]["properties"]["text"] == {"title": "Text", "type": "string"}
    assert violations(schema, JSON) == []


def test_what_a_schema_accepts_is_read_and_written_again() -> None:
    value = read(All, JSON)
    assert isinstance(value.model, Model) and value.model.inner is not None and value.model.inner.text == "x"
    assert value.tree.branches[0].name == "twig" and value.colour is Colour.BLUE and value.amount == Decimal("1.50")
    assert write(value) == JSON


@pytest.mark.parametrize(
    "change, pointer, message",
    [
        ({"size": 9}, "/size", "<= 6"),
        ({"tree": {"name": "a", "branches": [{"name": 3}]}}, "/tree/branches", "Expected `str`"),
        ({"model": {"count": 1}}, "/model", "greater than 3"),
        ({"colour": "green"}, "/colour", "Invalid enum value"),
        ({"when": "soon"}, "/when", "RFC3339"),
    ],
)
def test_what_does_not_fit_says_where(change: dict[str, Any], pointer: str, message: str) -> None:
    with pytest.raises(Unfit, match=message) as caught:
        read(All, {**JSON, **change})
    assert caught.value.pointer.startswith(pointer)


def test_plain_types() -> None:
    assert schema_of(Any) == {}
    assert schema_of(None) == {"type": "null"}
    assert schema_of(list[int]) == {"type": "array", "items": {"type": "integer"}}
    assert schema_of(dict[str, Any]) == {"type": "object"}
    assert schema_of(int | None) == {"type": ["integer", "null"]}


def test_types_and_values_that_are_not_json_are_named() -> None:
    with pytest.raises(TypeUnknown, match="complex"):
        schema_of(complex)
    with pytest.raises(Unfit, match="object"):
        write({"a": object()})
