"""Documents as Python, and back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.python_source import executed, round_trip


def flow(blocks: dict[str, Any], edges: str, **more: Any) -> dict[str, Any]:
    """`edges`: `a b, b:error c`."""
    made = []
    for pair in filter(None, edges.split(", ")):
        source, target = pair.split()
        source, _, handle = source.partition(":")
        made.append({"source": source, "target": target} | ({"handle": handle} if handle else {}))
    return {"format": "weft/1", "name": "flow", "blocks": blocks, "edges": made, **more}


START = {"type": "start"}


def value(n: int) -> dict[str, Any]:
    return {"type": "set", "params": {"value": n}}


def test_a_sequence_is_a_line_a_block() -> None:
    document = flow({"start": START, "a": value(1), "b": value(2)}, "start a, a b")
    assert round_trip(document) == (
        'from weft.draw import Set, Workflow\n\nworkflow = Workflow("flow", Set(1, id="a"), Set(2, id="b"))\n'
    )


def test_what_is_between_the_exits_of_a_condition_and_where_they_meet() -> None:
    cases = [{"id": "large", "when": "<input.n> > 9"}, {"id": "small", "title": "small"}, {"id": "none"}]
    document = flow(
        {"start": START, "size": {"type": "condition", "params": {"cases": cases}}, "a": value(1), "b": value(2)},
        "start size, size:large a, a b, size:small b",
    )
    text = round_trip(document)
    assert 'Case("large", "<input.n> > 9", then=Set(1, id="a"))' in text
    assert 'Case("small", title="small")' in text  # leads on
    assert 'Case("none", then=End())' in text
    assert "Graph" not in text


def test_an_error_branch_that_ends_and_one_that_leads_on() -> None:
    http = {"type": "http", "params": {"url": "http://x"}, "policy": {"retry": {"max_attempts": 5}, "on_lost": "ask"}}
    document = flow(
        {"start": START, "a": http, "late": value(1), "b": http, "other": value(2), "c": value(3)},
        "start a, a b, a:error late, b c, b:error other, other c",
    )
    text = round_trip(document)
    assert 'on_error=[Set(1, id="late"), End()]' in text
    assert 'on_error=Set(2, id="other")' in text
    assert "retry=5" in text and 'on_lost="ask"' in text


def test_side_by_side_in_containers() -> None:
    document = flow(
        {
            "start": START,
            "fan": {"type": "parallel", "params": {"mode": "each", "items": "<input.rows>", "concurrency": 3}},
            "x": value(1) | {"parent": "fan"},
            "again": {"type": "loop", "params": {"mode": "while", "condition": "<loop.index> < 3"}, "parent": "fan"},
            "inner": value(2) | {"parent": "again"},
            "end": value(3),
        },
        "start fan, fan:body x, fan:body again, again:body inner, fan end",
    )
    text = round_trip(document)
    assert "Parallel(" in text and 'items="<input.rows>"' in text and 'while_="<loop.index> < 3"' in text


@pytest.mark.parametrize(
    ("blocks", "edges"),
    [
        (
            {"start": START, "a": value(1), "b": value(2), "c": value(3), "d": value(4)},
            "start a, start b, a c, a d, b d",
        ),
        ({"start": START, "a": value(1), "b": value(2)}, "start a, start a, a b"),  # twice
        ({"start": START, "alone": value(1)}, ""),
        ({"start": START, "a": value(1), "other": {"type": "schedule", "params": {"cron": "@daily"}}}, "start a"),
    ],
)
def test_what_is_no_sequence_is_written_with_its_connections(blocks: dict[str, Any], edges: str) -> None:
    assert "Workflow(" in round_trip(flow(blocks, edges))


def test_only_the_container_with_an_odd_graph_is_written_so() -> None:
    inside = {name: value(1) | {"parent": "loop"} for name in "abcd"}
    document = flow(
        {"start": START, "loop": {"type": "loop", "params": {"mode": "for", "count": 2}}, **inside, "end": value(2)},
        "start loop, loop:body a, loop:body b, a c, a d, b d, loop end",
    )
    text = round_trip(document)
    assert (
        text.count("Graph(") == 1 and text.index("Loop(") < text.index("Graph(") and 'Edge("loop", "a", "body")' in text
    )


def test_a_container_with_two_ways_in() -> None:
    """`body` is the one that sequences know."""
    inside = {name: value(1) | {"parent": "loop"} for name in "ab"}
    document = flow(
        {"start": START, "loop": {"type": "loop", "params": {"mode": "for", "count": 2}}, **inside, "end": value(2)},
        "start loop, loop:body a, loop:other b, loop end",
    )
    text = round_trip(document)
    assert text.count("Graph(") == 1 and 'Edge("loop", "b", "other")' in text and "on=" not in text


CLEANED = """\
from weft.draw import Loop, Set, Workflow

workflow = Workflow(
    "flow",
    Loop(Set(1, id="open"), id="loop", count=1, finally_=[Set(1, id="close"), Set(1, id="closed")]),
    Set(2, id="end"),
    finally_=Set(3, id="report"),
)
"""


def test_cleanups_are_steps_of_what_they_clean() -> None:
    inside = {name: value(1) | {"parent": "loop"} for name in ("open", "close", "closed")}
    document = flow(
        {
            "start": START,
            "loop": {"type": "loop", "params": {"mode": "for", "count": 1}},
            **inside,
            "end": value(2),
            "report": value(3),
        },
        "start loop, loop:body open, loop:finally close, close closed, loop end, start:finally report",
    )
    assert round_trip(document) == CLEANED


def test_a_cleanup_of_several_triggers_and_one_of_only_some() -> None:
    blocks = {"start": START, "daily": {"type": "schedule", "params": {"cron": "@daily"}}, "a": value(1), "b": value(2)}
    text = round_trip(flow(blocks, "start a, daily a, start:finally b, daily:finally b"))
    assert 'finally_=Set(2, id="b")' in text
    text = round_trip(flow(blocks, "start a, daily a, daily:finally b"))
    assert 'Edge("daily", "b", "finally")' in text and "finally_" not in text


def test_side_by_side_in_a_cleanup() -> None:
    blocks = {"start": START, "fan": {"type": "parallel", "params": {"count": 2}}}
    inside = {name: value(1) | {"parent": "fan"} for name in "abc"}
    text = round_trip(flow(blocks | inside, "start fan, fan:body a, fan:finally b, fan:finally c"))
    assert 'finally_=Parallel(Set(1, id="b"), Set(1, id="c"))' in text


def test_nothing_is_lost() -> None:
    odd = {
        "type": "connector.slack",
        "params": {},
        "policy": {"retry": None, "timeout_s": 3, "x-own": 1},
        "x-note": [1],
    }
    document = flow(
        {
            "note": {
                "type": "note",
                "params": {"text": "Two\nlines, one of which is a little longer than the other one\nthree"},
            },
            "start": START | {"name": "Start", "at": [0, 0], "enabled": True},
            "slack": odd,
            "mail": {
                "type": "email",
                "params": {"to": "a@b.c", "subject": 'Say "hi"', "from": "x@y.z", "x": [1.5, None]},
            },
        },
        "start slack, slack mail",
        variables={"ref": {"$ref": "$.hit.body[0]"}, "schema": {"$ref": "#/defs/x"}},
        notes=[{"id": "n"}],
        version=3,
    )
    document["edges"][1] |= {"label": "then", "id": "e1"}
    text = round_trip(document)
    assert 'ref("$.hit.body[0]")' in text and '{"$ref": "#/defs/x"}' in text
    assert "TEXT = " in text or "NOTE_TEXT = " in text or 'NOTE = """' in text


@pytest.mark.parametrize(
    "text",
    [
        "a\nb\nc",
        'ends with "',
        '"""',
        "\\\n\\n\n",
        "tab\tand\r\nold\nline ends",
        "\u202e hidden\n\n",
        "'both\" kinds",
        "é 😀\n" * 40,
    ],
)
def test_every_text_comes_back(text: str) -> None:
    document = flow({"start": START, "a": {"type": "set", "params": {"value": [text, {text: text}]}}}, "start a")
    assert executed(round_trip(document))["blocks"]["a"]["params"]["value"] == [text, {text: text}]


def test_branches_in_branches_without_an_end() -> None:
    blocks: dict[str, Any] = {"start": START}
    edges, before = [], "start"
    for number in range(200):
        name = f"c{number}"
        blocks[name] = {"type": "condition", "params": {"cases": [{"id": "yes", "when": "true"}, {"id": "no"}]}}
        edges.append(f"{before} {name}")
        before = f"{name}:yes"
    assert "Graph(" in round_trip(flow(blocks, ", ".join(edges)))


def test_a_way_that_continues_as_new() -> None:
    cases = [{"id": "more", "when": "<input.n> < 3"}, {"id": "enough"}]
    again = {"type": "continue_as_new", "params": {"input": {"n": "<input.n>"}}}
    document = flow(
        {"start": START, "which": {"type": "condition", "params": {"cases": cases}}, "again": again, "end": value(1)},
        "start which, which:more again, which:enough end",
    )
    text = round_trip(document)
    assert 'then=ContinueAsNew({"n": "<input.n>"}, id="again")' in text
    assert "Graph" not in text
