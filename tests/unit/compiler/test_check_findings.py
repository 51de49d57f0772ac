"""Findings that name what is wrong, in the words of the editor, and no more of them than needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compiler.compile import compile_document
from compiler.diagnostics import Diagnostic
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.types.registry import Registry


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    sandbox = Sandbox()
    yield Registry.load(sandbox=sandbox)
    sandbox.close()


@pytest.mark.parametrize("around", [None, "fan"])
def test_a_break_outside_a_loop_is_an_error(registry: Registry, around: str | None) -> None:
    blocks: dict[str, Any] = {
        "start": {"type": "start"},
        "fan": {"type": "parallel", "params": {"count": 2}},
        "inner": {"type": "set", "parent": "fan", "params": {"value": 1}},
        "out": {"type": "break", "name": "Enough", **({"parent": around} if around else {})},
    }
    edges = ["start fan", "fan.body inner", "inner out" if around else "fan out"]
    (found,) = errors(registry, blocks, edges)
    assert (found.code, found.block, found.pointer) == ("break_outside_loop", "out", "/blocks/out")
    assert (found.message, found.hint) == ('Break "Enough" is not inside a loop.', "Drag it into a loop, or delete it.")


def test_a_break_inside_a_loop_is_none(registry: Registry) -> None:
    blocks: dict[str, Any] = {
        "start": {"type": "start"},
        "rounds": {"type": "loop", "params": {"mode": "for", "count": 2}},
        "fan": {"type": "parallel", "parent": "rounds", "params": {"count": 2}},
        "out": {"type": "break", "parent": "fan"},
    }
    assert errors(registry, blocks, ["start rounds", "rounds.body fan", "fan.body out"]) == []


@pytest.mark.parametrize(
    ("params", "field"),
    [
        (
            {"type": "condition", "params": {"cases": [{"id": "a", "when": "<strat.n> > 3"}, {"id": "b"}]}},
            "cases/0/when",
        ),
        ({"type": "function", "params": {"code": "const n = <strat.n>;\nreturn n + 1"}}, "code"),
    ],
)
def test_a_misspelt_reference_in_code_is_named(registry: Registry, params: dict[str, Any], field: str) -> None:
    """Not "unexpected token"."""
    blocks = {"start": {"type": "start", "name": "Start"}, "check": {"name": "Check", **params}}
    (found,) = errors(registry, blocks, ["start check"])
    assert (found.code, found.pointer, found.block) == ("reference_misspelt", f"/blocks/check/params/{field}", "check")
    assert found.message.endswith('"Check": <strat.n> reads a block that does not exist.')
    assert found.hint == "Did you mean <start.n>?"


def test_a_name_like_no_other_and_other_mistakes(registry: Registry) -> None:
    def of(code: str) -> list[str]:
        blocks = {"start": {"type": "start"}, "f": {"type": "function", "params": {"code": code}}}
        return [found.code for found in compiled(registry, blocks, ["start f"])]

    assert of("return <nothing.like.it>") == ["reference_misspelt"]
    assert of("return <strat.n> +") == ["expression_invalid", "reference_unknown"]
    assert of("const strat = {n: 1}, b = 2, c = 3; return b <strat.n> c") == ["reference_unknown"]
    assert of("return `Hello <strat.n>`") == ["reference_unknown"]
    assert of("return <start.n>") == []


def test_a_shared_error_handler_gives_no_warnings(registry: Registry) -> None:
    steps = [f"step{i}" for i in range(9)]
    blocks: dict[str, Any] = {"start": {"type": "start"}}
    blocks |= {step: {"type": "http", "params": {"url": "http://example.org"}} for step in steps}
    said = " ".join(f"<{step}.error.message>" for step in steps)
    blocks["tell"] = {"type": "set", "params": {"value": said}}
    edges = [f"{a} {b}" for a, b in zip(["start", *steps], steps, strict=False)]
    edges += [f"{step}.error tell" for step in steps]
    assert compiled(registry, blocks, edges) == []


def test_findings_name_blocks_and_not_ids(registry: Registry) -> None:
    one, two, three = "6c0b1e9a-1", "6c0b1e9a-2", "6c0b1e9a-3"
    blocks: dict[str, Any] = {
        "start": {"type": "start"},
        one: {"type": "http", "name": "Fetch", "params": {"url": "x", "method": "GRAB", "bdy": 1, "timeout_s": 0}},
        two: {"type": "loop", "name": "Rounds", "params": {"mode": "for", "count": 1}},
        three: {"type": "set", "name": "Alone", "params": {"value": 1}},
        "later": {"type": "set", "name": "Later", "params": {"value": 1}},
        "choose": {"type": "condition", "name": "Condition", "params": {"cases": [{"id": "a", "title": "Big"}]}},
    }
    found = compiled(registry, blocks, [f"start {one}", f"{one} {two}", f"{two} later", "later choose"])
    assert {finding.message for finding in found} == {
        'HTTP request "Fetch": Method must be one of GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS.',
        'HTTP request "Fetch": There is no parameter "bdy".',
        'HTTP request "Fetch": Timeout (seconds) must be greater than 0.',
        "This loop is empty.",
        'Set "Alone" is not connected to a trigger.',
        '"Condition": "Big" is not connected.',
    }
    assert {finding.block for finding in found} == {one, two, three, "choose"}
    assert not any("6c0b1e9a" in finding.message + finding.hint for finding in found)


def compiled(registry: Registry, blocks: dict[str, Any], edges: list[str]) -> list[Diagnostic]:
    """Edges as `a b` or `a.handle b`."""
    wires = []
    for edge in edges:
        source, _, target = edge.partition(" ")
        block, _, handle = source.partition(".")
        wires.append({"source": block, "handle": handle or "out", "target": target})
    document = {"format": "weft/1", "blocks": blocks, "edges": wires}
    return compile_document(document, registry).diagnostics


def errors(registry: Registry, blocks: dict[str, Any], edges: list[str]) -> list[Diagnostic]:
    return [found for found in compiled(registry, blocks, edges) if found.severity == "error"]
