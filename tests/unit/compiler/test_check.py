from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from compiler.document import Limits
from compiler.graph import CYCLES_MAX

from .support import CONDITION, block, codes, compiled, only


def test_unknown_type_and_params_come_with_a_hint() -> None:
    result = compiled({"a": block("taks"), "h": block("http", url="x", metod="GET")}, "start a; a h")
    assert only(result, "block_type_unknown").hint == 'Did you mean "task"?'
    unknown = only(result, "param_unknown")
    assert (unknown.pointer, unknown.hint, unknown.field) == (
        "/blocks/h/params/metod",
        'Did you mean "method"?',
        "metod",
    )


def test_params_are_checked_against_the_schema() -> None:
    result = compiled({"h": block("http", method="FETCH", retries=-1, headers={"a": 1})})
    assert {d.pointer for d in result.diagnostics} == {
        "/blocks/h/params/method",
        "/blocks/h/params/retries",
        "/blocks/h/params/headers/a",
    }
    missing = compiled({"c": block("condition", cases=[{"when": "1"}])})
    assert only(missing, "required").pointer == "/blocks/c/params/cases/0/id"


@pytest.mark.parametrize(
    "params",
    [
        {"retries": "<start.n>"},
        {"retries": "${RETRIES}"},
        {"retries": {"$ref": "$.n"}},
        {"method": "<start.m>", "headers": "<start.h>"},
        {"headers": {"a": {"$ref": "$.n"}}},
        {"auth": {"token": "<start.t>", "user": "u"}},
        {"auth": "<start.a>"},
    ],
)
def test_what_is_known_at_run_time_fits_every_type(params: dict[str, Any]) -> None:
    assert codes(compiled({"h": block("http", **params)}, variables={"n": 1})) == []


def test_text_without_a_reference_is_checked() -> None:
    assert codes(compiled({"h": block("http", retries="three")})) == ["param_invalid"]
    assert codes(compiled({"h": block("http", retries={"$ref": "#/defs/x"})})) == ["param_invalid"]


def test_cycles_are_named() -> None:
    result = compiled({"a": block(), "b": block(), "c": block(), "s": block()}, "start a; a b; b c; c a; c s; s s")
    found = [d for d in result.diagnostics if d.code == "cycle"]
    assert [d.message for d in found] == [
        "These blocks wait for each other: a → b → c → a.",
        "These blocks wait for each other: s → s.",
    ]
    assert result.plan is None


def test_cycles_inside_a_body_and_many_of_them() -> None:
    result = compiled(
        {"l": block("loop", count=1), "a": block(parent="l"), "b": block(parent="l")}, "start l; l.body a; a b; b a"
    )
    assert only(result, "cycle").block == "a"
    n = 60  # a complete digraph has more simple cycles than atoms; we look for one
    blocks = {f"b{i}": block() for i in range(n)}
    wires = "start b0; " + "; ".join(f"b{i} b{j}" for i in range(n) for j in range(n) if i != j)
    assert codes(compiled(blocks, wires, limits=Limits(edges=10_000)), "error") == ["cycle"]


def test_a_cycle_in_the_plan_is_reported_whatever_cycles_are_outside_of_it() -> None:
    outside = {f"u{i}": block() for i in range(CYCLES_MAX + 5)}
    wires = "; ".join([*(f"{name} {name}" for name in outside), "start a; a b; b a"])
    result = compiled({**outside, "a": block(), "b": block()}, wires)
    assert [d.block for d in result.diagnostics if d.code == "cycle" and d.severity == "error"] == ["a"]
    assert result.plan is None


def test_containers_need_a_body() -> None:
    empty = compiled({"l": block("loop", count=1)})
    assert only(empty, "container_empty").block == "l"
    off = compiled({"l": block("loop", count=1), "a": block(parent="l", enabled_=False)}, "start l; l.body a")
    assert "disabled" in only(off, "container_empty").hint
    unwired = compiled({"l": block("parallel", count=1), "a": block(parent="l")}, "start l")
    assert only(unwired, "container_unwired").hint == 'Connect its body handle to task "a".'


@pytest.mark.parametrize(
    ("type", "params", "expected"),
    [
        ("parallel", {"mode": "count", "count": 10**9}, ["limit_branches"]),
        ("parallel", {"count": 100_000}, []),
        ("parallel", {"mode": "count", "count": "<start.n>"}, []),
        ("parallel", {"mode": "each"}, ["required"]),
        ("parallel", {"count": -1}, ["param_invalid"]),
        ("loop", {"mode": "for", "count": 1001}, ["limit_iterations"]),
        ("loop", {"mode": "for", "count": 1001, "max": 2000}, []),
        ("loop", {"mode": "for", "count": 1001, "on_max": "exit"}, []),
        ("loop", {"mode": "for", "count": "5"}, []),
        ("loop", {"mode": "for"}, ["required"]),
        ("loop", {"mode": "while"}, ["required"]),
        ("loop", {"mode": "until", "condition": "true", "max": 1_000_001}, ["limit_iterations"]),
        ("loop", {"mode": "each", "items": [1] * 11, "max": 10}, ["limit_iterations"]),
        ("loop", {"mode": "each", "items": ""}, []),
    ],
)
def test_sizes_of_containers(type: str, params: dict[str, Any], expected: list[str]) -> None:
    result = compiled({"l": block(type, **params), "a": block(parent="l")}, "start l; l.body a")
    assert codes(result, "error") == expected


def test_cases() -> None:
    twice = compiled({"c": block("condition", cases=[{"id": "x", "when": "1"}, {"id": "x"}]), "a": block()}, "c.x a")
    assert only(twice, "case_duplicate").severity == "error"
    open_end = compiled({"c": block("condition", cases=[{"id": "x", "when": "1"}]), "a": block()}, "c.x a")
    missing = only(open_end, "else_missing")
    assert codes(open_end) == ["else_missing"]
    assert missing.message == 'condition "c" has no else. The run stops here when no case matches.'
    assert (missing.pointer, missing.field) == ("/blocks/c/params/cases", None)
    early = compiled(
        {"c": block("condition", cases=[{"id": "x"}, {"id": "y", "when": "1"}]), "a": block()}, "c.x a; c.y a"
    )
    assert only(early, "else_not_last").pointer == "/blocks/c/params/cases/0/when"
    unwired = compiled({"c": block("condition", cases=CONDITION), "a": block()}, "c.yes a")
    assert only(unwired, "case_unwired").message == 'condition "c": "no" is not connected.'
    router = compiled({"r": block("router", value=1, routes=[{"id": "x"}]), "a": block()}, "r.x a")
    assert codes(router) == ["else_missing"]


def test_expressions_must_parse() -> None:
    cases = [{"id": "yes", "when": "<start.n> > !!!"}, {"id": "no"}]
    result = compiled(
        {"c": block("condition", cases=cases), "f": block("function", code="return !!!")}, "c.yes f; c.no f"
    )
    assert [d.pointer for d in result.diagnostics] == ["/blocks/c/params/cases/0/when", "/blocks/f/params/code"]
    skip = compiled({"a": block(policy_={"skip_if": "!!!"})})
    assert only(skip, "expression_invalid").pointer == "/blocks/a/policy/skip_if"


def test_quoted_references_warn() -> None:
    cases = [{"id": "yes", "when": "'<start.s>' === 'bob' && 'x <start.s>' !== ''"}, {"id": "no"}]
    result = compiled({"c": block("condition", cases=cases), "a": block()}, "c.yes a; c.no a")
    assert codes(result) == ["reference_quoted"]
    assert result.plan is not None


def test_names_that_references_cannot_reach() -> None:
    result = compiled(
        {
            "a": block(name_="Input"),
            "l": block("loop", count=1, name_="Loop"),
            "b": block(parent="l", name_="parallel"),
        },
        "start a; a l; l.body b",
    )
    assert [d.block for d in result.diagnostics if d.code == "name_reserved"] == ["a", "b"]


def test_input_schema() -> None:
    assert only(compiled({"a": block()}, input={"type": "objct"}), "input_schema_invalid").pointer == "/input"
    result = compiled({"a": block()}, input={"type": "object"})
    assert result.plan is not None
    assert result.plan.input_schema == {"type": "object"}


def test_a_policy_without_effect_is_reported() -> None:
    deaf = {"retry": {"max_attempts": 2}, "timeout_s": 5, "on_lost": "ask", "on_error": "continue", "skip_if": "true"}
    result = compiled(
        {
            "l": block("loop", count=1, policy_=deaf),
            "a": block("set", parent="l", policy_={"group": "g", "timeout_s": 1, "skip_if": "true"}),
            "b": block(policy_={"group": "g", **deaf}),
        },
        "start l; l.body a; l b",
        settings={"groups": {"g": 1}},
    )
    assert result.plan is not None
    assert [d.pointer for d in result.diagnostics if d.code == "policy_unread"] == [
        "/blocks/l/policy/retry",
        "/blocks/l/policy/timeout_s",
        "/blocks/l/policy/on_lost",
        "/blocks/a/policy/group",
        "/blocks/a/policy/timeout_s",
    ]


def test_the_compiler_compares_no_block_type() -> None:
    """What holds for one type is in its BlockSpec. (`imports` translates the types of other formats.)"""
    for path in (Path(__file__).parents[3] / "compiler").glob("*.py"):
        assert not re.search(r"\.type (==|!=|in|not in) ", path.read_text()), path.name
