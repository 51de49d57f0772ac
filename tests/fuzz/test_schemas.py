"""The compiler's own check of schemas finds what the metaschema of JSON Schema finds."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, SchemaError

from compiler.metaschema import _LIST, _NAMED, _ONE, _RULES, problem_of
from compiler.schema import schema_error
from tests.fuzz.budget import examples
from tests.fuzz.nonsense import FOR
from tests.fuzz.oracle import bounded, leads_somewhere

pytestmark = pytest.mark.proof

leaves: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, False, 0, 1, -1, 2.0, 1.5, "", "#", "#/$defs/a", "a", "[", "^a*$", "object", "a#b", "1a", [], ["a"],
     ["a", "a"], ["string", "null"], ["string", "string"], [1], {}, {"a": True}, {"a": ["b"]}, {"a": 1}, {"[": {}}]
)  # fmt: skip
keywords = st.sampled_from(sorted({*_RULES, *_ONE, *_LIST, *_NAMED, "const", "default", "x-own"}))
schemas = st.recursive(
    leaves,
    lambda inner: (
        st.dictionaries(keywords, inner | st.lists(inner, max_size=2), max_size=3)
        | st.fixed_dictionaries({}, optional={"properties": st.dictionaries(st.sampled_from(["a", "type"]), inner)})
    ),
    max_leaves=12,
)


def test_it_knows_every_keyword() -> None:
    known = {name for part in Draft202012Validator.META_SCHEMA["allOf"] for name in _keywords(part["$ref"])}
    known |= set(Draft202012Validator.META_SCHEMA["properties"])
    anything = {"const", "default"}  # whatever their value
    assert known - anything == {*_RULES, *_ONE, *_LIST, *_NAMED}


@examples(400)
@given(schema=schemas)
@example(schema={"properties": {"default": {"$ref": 1}}})
@example(schema={"dependencies": {"a": ["b"], "c": {"type": 1}}})
def test_it_says_what_the_metaschema_says(schema: Any) -> None:
    problem = problem_of(schema)
    assert (problem is None) == _fits_the_metaschema(schema), problem
    if problem is not None:
        pointer = problem.rpartition("(at ")[2].removesuffix(")")
        assert pointer == "/" or leads_somewhere(schema, pointer), problem


def test_nonsense_takes_no_time() -> None:
    for schema in FOR["output_schema"]:
        with bounded():
            schema_error(msgspec.json.encode(schema))


def _keywords(name: str) -> set[str]:
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    return set(REGISTRY.contents(f"https://json-schema.org/draft/2020-12/{name}").get("properties", {}))


def _fits_the_metaschema(schema: Any) -> bool:
    """With references that stay in the schema, which is a rule of ours."""
    try:
        Draft202012Validator.check_schema(schema)
    except (SchemaError, re.error):
        return False
    return not _leaves(schema)


def _leaves(schema: Any) -> bool:
    """Does a reference lead out of it?"""
    if not isinstance(schema, dict):
        return False
    if any(not schema.get(key, "#").startswith("#") for key in ("$ref", "$dynamicRef")):
        return True
    inner = [schema[key] for key in _ONE & schema.keys()]
    inner += [part for key in _LIST & schema.keys() for part in schema[key]]
    inner += [part for key in _NAMED & schema.keys() for part in schema[key].values()]
    return any(map(_leaves, inner))
