"""What a document says about outputs: cached ones, their schema; and params that are left alone."""

from __future__ import annotations

from typing import Any

import pytest

from compiler.diagnostics import CODES, HINTS
from compiler.plan import Cache, Node, Plan, decode, encode
from compiler.schema import SCHEMA_PARTS_MAX
from tests.unit.compiler.support import CONDITION, block, codes, compiled, node, only, plan_of, ref

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}}


def cached(type: str = "function", cache: Any = None, **params: Any) -> dict[str, Any]:
    return block(type, policy_={"cache": {} if cache is None else cache}, **params)


def test_defaults_of_the_cache_are_filled_in() -> None:
    plan = plan_of({"a": cached(code="return 1")})
    assert node(plan, "a").policy.cache == Cache(None, "", 7 * 86_400_000, "workflow")
    assert node(plan_of({"a": block()}), "a").policy.cache is None


def test_all_of_the_cache() -> None:
    given = {"key": "<start.x> + 1", "version": 3, "ttl_s": 0.5, "scope": "global"}
    plan = plan_of({"a": cached(cache=given, code="return 1")})
    assert node(plan, "a").policy.cache == Cache("<start.x> + 1", "3", 500, "global")
    assert ref(plan, "a", "start.x").kind == "block"
    assert decode(encode(plan)) == plan
    blank = plan_of({"a": cached(cache={"key": "  ", "version": "b"}, code="return 1")})
    assert node(blank, "a").policy.cache == Cache(None, "b")


@pytest.mark.parametrize(
    ("cache", "pointer"),
    [
        ({"ttl_s": 0}, "/ttl_s"),
        ({"ttl_s": "1h"}, "/ttl_s"),
        ({"ttl_s": 31_536_001}, "/ttl_s"),
        ({"scope": "planet"}, "/scope"),
        ({"key": 5}, "/key"),
        ({"version": []}, "/version"),
        (True, ""),
    ],
)
def test_mistakes_in_the_cache(cache: Any, pointer: str) -> None:
    found = only(compiled({"a": cached(cache=cache, code="return 1")}), "field_invalid")
    assert found.pointer == f"/blocks/a/policy/cache{pointer}"


def test_a_field_of_the_cache_that_is_not_read() -> None:
    found = only(compiled({"a": cached(cache={"tll_s": 5}, code="return 1")}), "field_unknown")
    assert (found.pointer, found.hint) == ("/blocks/a/policy/cache/tll_s", 'Did you mean "ttl_s"?')


def test_the_key_is_an_expression() -> None:
    found = only(compiled({"a": cached(cache={"key": "!!!"}, code="return 1")}), "expression_invalid")
    assert found.pointer == "/blocks/a/policy/cache/key"
    unknown = compiled({"a": block(), "b": cached(cache={"key": "<c.x>"}), "c": block()}, "a b; b c")
    assert only(unknown, "reference_not_upstream").pointer == "/blocks/b/policy/cache/key"


@pytest.mark.parametrize(
    ("blocks", "wires", "says"),
    [
        ({"a": cached("approval", actions=["yes"])}, "", "from outside"),
        ({"a": cached("set", value=1)}, "", "is faster"),
        ({"a": cached("condition", cases=CONDITION), "b": block()}, "a.yes b; a.no b", "is faster"),
        ({"a": cached("task")}, "", "may change"),
        ({"a": cached("http", method="POST", url="u")}, "", "may change"),
        ({"a": cached("http", method="<start.method>", url="u")}, "", "may change"),
        ({"a": cached("loop", count=1), "b": block(parent="a")}, "a.body b", "blocks inside it"),
    ],
)
def test_blocks_that_cannot_be_cached(blocks: dict[str, Any], wires: str, says: str) -> None:
    found = only(compiled(blocks, wires), "cache_unfit")
    assert (found.severity, found.pointer, found.block) == ("error", "/blocks/a/policy/cache", "a")
    assert says in found.message and found.hint


def test_a_trigger_cannot_be_cached() -> None:
    found = only(compiled({"start": cached("start"), "a": block()}, "start a"), "cache_unfit")
    assert "trigger" in found.message


def test_a_request_that_only_reads_can_be_cached() -> None:
    assert codes(compiled({"a": cached("http", method="GET", url="u")})) == []


def test_an_output_schema_is_part_of_the_plan() -> None:
    plan = plan_of({"a": block(output_schema_=NUMBER)})
    assert node(plan, "a").output_schema == NUMBER
    assert node(plan, "start").output_schema is None
    assert decode(encode(plan)) == plan
    assert plan.hash != plan_of({"a": block()}).hash


def test_references_know_the_fields_of_an_output_schema() -> None:
    result = compiled({"a": block(output_schema_=NUMBER), "b": block(x="<a.n>", y="<a.m>")}, "a b")
    found = only(result, "reference_unknown_field")
    assert (found.pointer, found.hint) == ("/blocks/b/params/y", "It has n.")
    plan = result.plan
    assert plan is not None and [r.strict for r in node(plan, "b").needs] == [False, True]


def test_other_fields_may_be_there_beside_known_ones() -> None:
    schema = {"type": "object", "properties": {"f": NUMBER}, "additionalProperties": True}
    blocks = {"a": block(output_schema_=schema), "b": block(x="<a.f.n>", y="<a.other.m>", z="<a.f.m>")}
    assert only(compiled(blocks, "a b"), "reference_unknown_field").pointer == "/blocks/b/params/z"


def test_an_output_schema_takes_the_place_of_the_types_own() -> None:
    blocks = {"a": block("function", code="1", output_schema_=NUMBER), "b": block(x="<a.n>", y="<a.result>")}
    assert only(compiled(blocks, "a b"), "reference_unknown_field").pointer == "/blocks/b/params/y"


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "numbr"}, "numbr"),
        ({"$ref": "https://example.com/schema"}, "outside the schema"),
        ({"allOf": [{}] * (SCHEMA_PARTS_MAX + 1)}, "limit"),
    ],
)
def test_an_output_schema_that_is_none(schema: Any, says: str) -> None:
    found = only(compiled({"a": block(output_schema_=schema)}), "output_schema_invalid")
    assert found.pointer == "/blocks/a/output_schema" and says in found.message
    assert found.code in CODES and found.code in HINTS


def test_an_output_schema_must_be_an_object() -> None:
    assert only(compiled({"a": block(output_schema_=[])}), "field_invalid").pointer == "/blocks/a/output_schema"


def test_a_container_has_no_output_schema() -> None:
    blocks = {"a": block("parallel", count=1, output_schema_=NUMBER), "b": block(parent="a")}
    assert only(compiled(blocks, "a.body b"), "not_available").pointer == "/blocks/a/output_schema"


DOCUMENT = {"blocks": {"x": {"params": {"a": "<start.q>", "b": ["${KEY} <unknown.here>"], "c": {"$ref": "$.v"}}}}}


def call(plan: Plan) -> Node:
    return node(plan, "a")


def test_all_of_a_literal_object_is_left_alone() -> None:
    result = compiled({"a": block("call", doc=DOCUMENT, input={"q": "<start.q>"})})
    assert codes(result) == []
    assert result.plan is not None
    assert call(result.plan).literal == ("/doc",)
    assert [r.text for r in call(result.plan).needs] == ["start.q"]


def test_where_an_object_may_be_literal_text_is_not() -> None:
    by_reference = call(plan_of({"a": block("call", doc="<start.doc>")}))
    assert (by_reference.literal, [r.text for r in by_reference.needs]) == ((), ["start.doc"])
    variable = call(plan_of({"a": block("call", doc={"$ref": "$.made"})}, variables={"made": {}}))
    assert variable.literal == ()


def test_a_literal_text_is_left_alone_even_if_another_param_reads_the_same() -> None:
    http = call(plan_of({"a": block("http", raw="<start.q>", url="<start.q>")}))
    assert http.literal == ("/raw",)
