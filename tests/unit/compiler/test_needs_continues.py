"""The input of the next run, as far as the document tells it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compiler.compile import compile_document
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.types.registry import Registry
from tests.support.documents import document

SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "who": {"type": ["string", "null"]},
        "at": {"type": "number", "default": 1},
    },
    "required": ["n", "at"],
}


@pytest.fixture(scope="module")
def blocks() -> Iterator[Registry]:
    sandbox = Sandbox()
    yield Registry.load(sandbox=sandbox)
    sandbox.close()


def found(blocks: Registry, input: Any, schema: Any, trigger: str = "start") -> list[tuple[str, str]]:
    params = {} if input is None else {"input": input}
    again = {"start": {"type": trigger}, "again": {"type": "continue_as_new", "params": params}}
    made = document("again", "start again", blocks=again, input=schema, variables={"next": {}})
    return [(each.code, each.pointer) for each in compile_document(made, blocks).diagnostics if each.block == "again"]


@pytest.mark.parametrize(
    ("input", "expected"),
    [
        ({"n": 1}, []),
        ({"n": "<input.n>", "who": None, "at": 2.5}, []),
        ({"n": 3.0}, []),
        ("<input>", []),
        ({"$ref": "$.next"}, []),
        ({"n": 1, "other": True}, []),
        (None, [("required", "/input")]),
        ({"who": "Ada"}, [("required", "/input")]),
        ({"n": "many"}, [("param_invalid", "/input/n")]),
        ({"n": 1, "who": 2}, [("param_invalid", "/input/who")]),
        ([1], [("param_invalid", "/input")]),
    ],
)
def test_what_the_schema_of_the_workflow_says(blocks: Registry, input: Any, expected: list[tuple[str, str]]) -> None:
    where = "/blocks/again/params"
    assert found(blocks, input, SCHEMA) == [(code, where + pointer) for code, pointer in expected]


def test_a_field_that_the_schema_does_not_list(blocks: Registry) -> None:
    closed = {**SCHEMA, "additionalProperties": False}
    assert found(blocks, {"n": 1, "other": 1}, closed) == [("param_invalid", "/blocks/again/params/input/other")]


def test_nothing_is_said_without_a_schema_or_where_it_is_not_about_the_input(blocks: Registry) -> None:
    assert found(blocks, {"x": 1}, {}) == []
    assert found(blocks, {"x": 1}, {"type": 7}) == []  # a finding of its own
    assert found(blocks, {"x": 1}, SCHEMA, "webhook") == []
