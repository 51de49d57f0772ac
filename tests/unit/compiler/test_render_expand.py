from __future__ import annotations

import re

import orjson
import pytest

from compiler.keys import parse_key
from compiler.plan import Plan, decode, encode
from compiler.render import FORMATS, expand, render

from .support import CONDITION, block, plan_of


@pytest.fixture
def plan() -> Plan:
    return plan_of(
        {
            "c": block("condition", name_='Is it "so"?', cases=CONDITION),
            "fan": block("parallel", count=2),
            "l": block("loop", "fan", count=3),
            "deep": block("parallel", "l", mode="each", items="<loop.index>"),
            "send": block(parent="deep", x="<parallel.index>"),
            "z": block(),
        },
        "c.yes fan; c.no z; fan.body l; l.body deep; deep.body send; fan z",
    )


def test_branches_are_indexed_copies(plan: Plan) -> None:
    flat = expand(plan)
    names = [node.name for node in flat.nodes]
    assert names == [
        *("start", "c", "fan:start", "fan:end", "z"),
        *("l:start[0]", "l:end[0]", "l:start[1]", "l:end[1]"),
        *("deep:start[0]", "deep:end[0]", "deep:start[1]", "deep:end[1]", "send[0][*]", "send[1][*]"),
    ]
    pairs = {(edge.source, edge.target, edge.handle, edge.back) for edge in flat.edges}
    assert ("fan:start", "l:start[1]", "body", False) in pairs
    assert ("l:end[1]", "fan:end", "done", False) in pairs
    assert ("l:end[0]", "l:start[0]", "again", True) in pairs
    assert ("c", "fan:start", "yes", False) in pairs
    known = set(names)
    assert all(edge.source in known and edge.target in known for edge in flat.edges)


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ("send", "inside parallel 'deep'"),
        ("send@fan[0]", "inside parallel 'deep'"),
        ("send@l#0/fan[0]/deep[0]", "inside parallel 'deep'"),
        ("send@fan[0]/l#0/deep[0]/deep[0]", "inside parallel 'deep'"),
        ("deep:start@fan[0]", "inside loop 'l'"),
        ("z@fan[0]", "in no loop or parallel"),
        ("fan:end@fan[0]", "in no loop or parallel"),
    ],
)
def test_a_key_has_the_scopes_of_its_node(plan: Plan, key: str, where: str) -> None:
    with pytest.raises(ValueError, match=f"is {where}"):
        parse_key(plan, key)


def test_large_parallels_stay_templates() -> None:
    plan = plan_of(
        {"p": block("parallel", count=50_000), "a": block(parent="p"), "b": block(parent="p")}, "start p; p.body a; a b"
    )
    assert [n.name for n in expand(plan).nodes] == ["start", "p:start", "p:end", "a[*]", "b[*]"]
    nothing = plan_of({"p": block("parallel", count=0), "a": block(parent="p")}, "start p; p.body a")
    assert [n.name for n in expand(nothing).nodes] == ["start", "p:start", "p:end"]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("expanded", [False, True])
def test_every_format_names_every_node(plan: Plan, format: str, expanded: bool) -> None:
    text = render(plan, format, expanded)  # type: ignore[arg-type]
    for node in plan.nodes:
        assert node.id in text
    assert ("[1]" in text) is (expanded or "[1]" in render(plan, "text"))


def test_json_is_the_plan_itself(plan: Plan) -> None:
    assert orjson.loads(render(plan, "json")) == orjson.loads(encode(plan))
    assert decode(render(plan, "json").encode()).trigger == "start"
    assert orjson.loads(render(plan, "json", expanded=True))["nodes"][0]["name"] == "start"


def test_text_shows_regions_ways_and_references(plan: Plan) -> None:
    text = render(plan)
    assert "parallel fan, 2 times, 100 at the same time" in text
    assert "c (condition) -> yes: fan:start, no: z" in text
    assert "send (task)  reads <parallel.index>" in text


def test_dot_and_mermaid_escape_names(plan: Plan) -> None:
    dot = render(plan, "dot")
    assert r'"c" [label="Is it \"so\"? (c)"];' in dot
    assert re.search(r'"l:end\[\*\]" -> "l:start\[\*\]" \[label="again" style=dashed', dot)
    mermaid = render(plan, "mermaid")
    assert mermaid.startswith("flowchart LR\n")
    assert '-.->|"again"|' in mermaid
