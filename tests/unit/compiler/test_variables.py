from __future__ import annotations

from typing import Any

import pytest

from compiler.variables import parse_path

from .support import CONDITION, block, codes, compiled, node, only

SET_X: dict[str, Any] = {"type": "variables", "params": {"assign": [{"name": "x", "value": 1}]}}
ADD_X: dict[str, Any] = {"type": "variables", "params": {"assign": [{"name": "$.x.n", "op": "increment"}]}}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("$.hit.body[0]", ("hit", "body", 0)),
        ('$["odd key"].x', ("odd key", "x")),
        ("$", None),
        ("hit", None),
        ("$.a b", None),
        ("$[0]", None),
        ("$..a", None),
    ],
)
def test_parse_path(text: str, path: tuple[str | int, ...] | None) -> None:
    assert parse_path(text) == path


def test_writing_an_undeclared_variable_declares_it_with_a_warning() -> None:
    result = compiled({"v": block("variables", assign={"ghost": "boo"}), "z": block(x="<variable.ghost>")}, "v z")
    assert only(result, "variable_undeclared").pointer == "/blocks/v/params/assign/ghost"
    assert result.plan is not None
    assert node(result.plan, "z").needs[0].path == ("ghost",)


@pytest.mark.parametrize(
    ("wires", "clash"),
    [
        ("start a; start b", True),
        ("start a; a b", False),
        ("start c; c.yes a; c.no b", False),
        ("start c; c.yes a; c.yes b; c.no j", True),
        ("start c; c.yes a; c.no b; start b", True),
    ],
)
def test_writers_that_may_meet(wires: str, clash: bool) -> None:
    blocks = {
        "c": block("condition", cases=CONDITION),
        "j": block(),
        "a": SET_X,
        "b": {"type": "task", "assign": "$.x.y"},
    }
    result = compiled(blocks, wires, variables={"x": {}})
    assert ("variable_concurrent_writers" in codes(result)) is clash


def test_branches_of_a_parallel_meet_and_atomic_changes_do_no_harm() -> None:
    wires = "start p; p.body w"
    several = compiled({"p": block("parallel", count=2), "w": SET_X | {"parent": "p"}}, wires, variables={"x": 1})
    assert 'parallel branches of variables "w"' in only(several, "variable_concurrent_writers").message
    atomic = compiled({"p": block("parallel", count=2), "w": ADD_X | {"parent": "p"}}, wires, variables={"x": 1})
    assert codes(atomic) == []


def test_writers_in_different_containers_are_compared_where_they_part() -> None:
    blocks = {
        "l": block("loop", count=1),
        "a": SET_X | {"parent": "l"},
        "m": block("loop", count=1),
        "b": SET_X | {"parent": "m"},
    }
    bodies = "l.body a; m.body b; "
    apart = compiled(blocks, bodies + "start l; start m", variables={"x": 1})
    assert 'variables "a" and variables "b"' in only(apart, "variable_concurrent_writers").message
    assert codes(compiled(blocks, bodies + "start l; l m", variables={"x": 1})) == []
