"""Cleanups in a document: what belongs to them, what they may read, and what is wrong with one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compiler.compile import Compiled, compile_document
from compiler.keys import format_path, parse_key
from compiler.plan import decode, encode
from compiler.render import render
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.types.registry import Registry
from tests.support.documents import document, value

LOOP = {"type": "loop", "params": {"mode": "for", "count": 2}}
FAN = {"type": "parallel", "params": {"count": 2}}


@pytest.fixture(scope="module")
def blocks() -> Iterator[Registry]:
    sandbox = Sandbox()
    yield Registry.load(sandbox=sandbox)
    sandbox.close()


def cleaned(*edges: str, **changes: Any) -> dict[str, Any]:
    names = {
        "loop": LOOP,
        "open": {**value("<loop.index>"), "parent": "loop"},
        "close": {**value("<open ?? 0>"), "parent": "loop"},
        "last": value("<loop.results ?? 0>"),
    }
    usual = ("start loop", "loop body open", "loop finally close", "start finally last")
    return document("cleaned", *usual, *edges, blocks={**names, **changes})


def codes(compiled: Compiled) -> list[str]:
    return [finding.code for finding in compiled.diagnostics]


def test_a_cleanup_is_a_region_beside_the_body(blocks: Registry) -> None:
    compiled = compile_document(cleaned(), blocks)
    assert codes(compiled) == []
    plan = compiled.plan
    assert plan is not None
    assert [(region.id, region.kind, region.parent) for region in plan.regions] == [
        ("", "root", -1),
        (":finally", "cleanup", 0),
        ("loop", "loop", 0),
        ("loop:finally", "cleanup", 0),
    ]
    assert [region.cleanup for region in plan.regions] == [1, -1, 3, -1]
    assert decode(encode(plan)) == plan
    for text in ("close@loop:finally", "last@:finally", "open@loop#1"):
        key = parse_key(plan, text)
        assert f"{plan.nodes[key[1]].id}@{format_path(plan, key[0])}" == text
    for wrong in ("close@loop#0", "open@loop:finally", "last", "close@fan:finally"):
        with pytest.raises(ValueError, match=r"node of this plan|cleanup of this plan|scope"):
            parse_key(plan, wrong)


def test_a_cleanup_inside_a_cleanup(blocks: Registry) -> None:
    inner = {"again": LOOP, "in": {**value(1), "parent": "again"}, "out": {**value(1), "parent": "again"}}
    plan = compile_document(cleaned("last again", "again body in", "again finally out", **inner), blocks).plan
    assert plan is not None
    for text in ("out@:finally/again:finally", "in@:finally/again#0"):
        key = parse_key(plan, text)
        assert f"{plan.nodes[key[1]].id}@{format_path(plan, key[0])}" == text


def test_it_reads_the_last_iteration_and_the_whole_run(blocks: Registry) -> None:
    plan = compile_document(cleaned(), blocks).plan
    assert plan is not None
    refs = {node.id: [(ref.mode, plan.nodes[ref.node].id) for ref in node.needs] for node in plan.nodes}
    assert refs["close"] == [("last", "open")]
    assert refs["last"] == [("current", "loop:end")]


def test_what_may_not_have_run_wants_a_default(blocks: Registry) -> None:
    found = compile_document(cleaned(close={**value("<open>"), "parent": "loop"}), blocks).diagnostics
    assert [(each.code, each.severity, each.block) for each in found] == [
        ("reference_may_be_skipped", "warning", "close")
    ]


def test_a_block_that_is_also_reached_from_before(blocks: Registry) -> None:
    found = compile_document(cleaned("open close"), blocks).diagnostics
    assert [(each.code, each.block) for each in found if each.severity == "error"] == [("cleanup_shared", "close")]
    found = compile_document(cleaned("loop last"), blocks).diagnostics
    assert [(each.code, each.block) for each in found if each.severity == "error"] == [("cleanup_shared", "last")]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"close": {"type": "response", "parent": "loop"}}, "cleanup_response"),
        ({"close": {"type": "break", "parent": "loop"}}, "break_outside_loop"),
        ({"last": {"type": "approval", "params": {"title": "OK?"}}}, "cleanup_waits"),
        ({"loop": FAN, "open": {**value(1), "parent": "loop"}}, "reference_into_parallel"),
        ({"close": {**value("<loop.index>"), "parent": "loop"}}, "reference_unknown_field"),
        ({"open": {**value("<close>"), "parent": "loop"}}, "reference_not_upstream"),
        ({"open": {**value("<last>"), "parent": "loop"}}, "reference_not_upstream"),
    ],
)
def test_findings(blocks: Registry, changes: dict[str, Any], code: str) -> None:
    assert code in codes(compile_document(cleaned(**changes), blocks))


def test_the_target_is_inside_its_container(blocks: Registry) -> None:
    found = compile_document(cleaned(close=value(1)), blocks).diagnostics
    assert [each.code for each in found if each.severity == "error"] == ["edge_crosses_border"]


def test_it_is_drawn_behind_its_container(blocks: Registry) -> None:
    plan = compile_document(cleaned(), blocks).plan
    assert plan is not None
    text = render(plan)
    assert "cleanup of loop\n" in text
    assert "\n  cleanup\n" in text
    drawn = render(plan, "mermaid")
    assert '|"finally"|' in drawn
    assert "close" in render(plan, "dot", expanded=True)
