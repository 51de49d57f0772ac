"""The document that Python code makes, and what is said about code that makes none."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import pytest

from compiler.compile import compile_document
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.types.registry import Registry
from weft import BuildError
from weft.draw import (
    Approval,
    Block,
    Branch,
    Case,
    ContinueAsNew,
    Each,
    Edge,
    End,
    Graph,
    Http,
    Loop,
    Note,
    Parallel,
    Response,
    Router,
    Schedule,
    SendEmail,
    Sequence,
    Set,
    Sleep,
    Start,
    Workflow,
    ref,
)


def edges(workflow: Workflow) -> str:
    return ", ".join(
        f"{edge['source']}{':' + edge['handle'] if 'handle' in edge else ''} {edge['target']}"
        for edge in workflow.document()["edges"]
    )


def demo(seconds: float = 30) -> Workflow:
    return Workflow(
        "demo",
        Sequence(
            Http(id="hit", url="https://example.com/data", assign_to="$.hit"),
            Sleep(id="sleep", seconds=seconds),
            SendEmail(id="email", to="me@example.com", subject="Demo", body=ref("$.hit.body")),
            id="root",
        ),
        variables={"hit": None},
    )


def test_the_plan_of_the_first_demo() -> None:
    assert demo().document() == {
        "format": "weft/1",
        "name": "demo",
        "variables": {"hit": None},
        "blocks": {
            "start": {"type": "start"},
            "hit": {"type": "http", "params": {"url": "https://example.com/data"}, "assign": "$.hit"},
            "sleep": {"type": "wait", "params": {"seconds": 30}},
            "email": {
                "type": "email",
                "params": {"to": "me@example.com", "subject": "Demo", "body": {"$ref": "$.hit.body"}},
            },
        },
        "edges": [
            {"source": "start", "target": "hit"},
            {"source": "hit", "target": "sleep"},
            {"source": "sleep", "target": "email"},
        ],
    }
    assert demo().document() == demo().document()


def test_it_compiles_without_a_finding() -> None:
    sandbox = Sandbox()
    try:
        compiled = compile_document(demo().document(), Registry.load(sandbox=sandbox))
    finally:
        sandbox.close()
    assert compiled.plan is not None and compiled.diagnostics == []


def test_ids_come_from_names_and_classes() -> None:
    made = Workflow(
        "x", Http("u"), Http("v"), Http("w", name="Fetch it"), Block("connector.slack"), Set(1, id="http_2")
    )
    assert list(made.document()["blocks"]) == ["start", "http", "http_3", "fetch_it", "connector_slack", "http_2"]


def test_branches_meet_at_the_next_step() -> None:
    made = Workflow(
        "x",
        Branch(when="<input.n> > 9", then=Set(1, id="a"), id="if"),
        Parallel(Set(2, id="b"), [Set(3, id="c"), Set(4, id="d")]),
        Set(5, id="e"),
    )
    assert edges(made) == "start if, if:then a, a b, if:else b, a c, if:else c, c d, b e, d e"


def test_ways_of_approvals_routers_and_errors() -> None:
    made = Workflow(
        "x",
        Approval("Fine?", id="ask", on={"reject": [Set(1, id="no"), End()]}),
        Router("<input.kind>", id="kind", default="other", on={"mail": Set(2, id="mail"), "other": Sequence()}),
        Http("u", id="call", on_error=Set(3, id="saved"), retry=3, timeout=2.5),
        Http("u", id="try", on_error="continue"),
        Response({"ok": True}, id="reply"),
    )
    assert edges(made) == (
        "start ask, ask:reject no, ask:approve kind, kind:mail mail, mail call, kind:other call, call:error saved, "
        "call try, saved try, try reply"
    )
    blocks = made.document()["blocks"]
    assert blocks["kind"]["params"]["routes"] == [{"id": "mail", "equals": "mail"}]
    assert blocks["call"]["policy"] == {"retry": {"max_attempts": 3}, "timeout_s": 2.5}
    assert blocks["try"]["policy"] == {"on_error": "continue"}


def test_containers_and_triggers() -> None:
    made = Workflow(
        "x",
        Parallel(Start(id="now"), Schedule("@daily", id="daily")),
        Each(Loop(Set(1, id="a"), Set(2, id="b"), count=3, id="loop"), items="<input.rows>", concurrency=2, id="each"),
        Note("of people", id="note"),
        Set(3, id="end"),
    )
    assert edges(made) == "now each, daily each, each:body loop, loop:body a, a b, each end"
    blocks = made.document()["blocks"]
    assert blocks["loop"] == {"type": "loop", "parent": "each", "params": {"mode": "for", "count": 3}}
    assert blocks["each"]["params"] == {"mode": "each", "items": "<input.rows>", "concurrency": 2}


def test_cleanups_hang_on_what_they_clean() -> None:
    made = Workflow(
        "x",
        Parallel(Start(id="now"), Schedule("@daily", id="daily")),
        Each(
            Loop(Set(1, id="open"), count=1, id="loop", finally_=[Set(2, id="close"), Set(3, id="closed")]),
            items="<input.rows>",
            id="each",
            finally_=Graph(Set(4, id="last"), edges=[Edge("each", "last", "finally")]),
        ),
        Set(5, id="end"),
        finally_=Http("u", id="report"),
    )
    assert edges(made) == (
        "now each, daily each, each:body loop, loop:body open, loop:finally close, close closed, each:finally last, "
        "each end, now:finally report, daily:finally report"
    )
    blocks = made.document()["blocks"]
    assert (
        blocks["close"]["parent"] == "loop" and blocks["last"]["parent"] == "each" and "parent" not in blocks["report"]
    )


def test_the_cleanup_of_a_workflow_without_a_trigger_of_its_own() -> None:
    made = Workflow("x", Set(1, id="a"), finally_=Set(2, id="b"))
    assert edges(made) == "start a, start:finally b"


def test_a_graph_has_the_connections_that_are_written() -> None:
    a = Set(1)
    made = Workflow(
        "x", Graph(Start(id="s"), a, Set(2, id="b"), edges=[Edge("s", a), Edge(a, "b", more={"label": "so"})])
    )
    assert made.document()["edges"] == [
        {"source": "s", "target": "set"},
        {"source": "set", "target": "b", "label": "so"},
    ]


def test_refs_in_texts() -> None:
    made = Workflow("x", Set(f"Got {ref('$.hit.body')} and {ref('$.list[0]')}"))
    assert made.document()["blocks"]["set"]["params"]["value"] == "Got <workflow.hit.body> and <workflow.list[0]>"


def _twice() -> Workflow:
    one = Http("u")
    return Workflow("x", one, one)


WRONG: list[tuple[Any, str]] = [
    (
        lambda: Workflow("x", Http("u", id="a"), Set(1, id="a")),
        r'The id "a" is used twice: Http "a" \(test_workflow.py:\d+\) and Set "a"',
    ),
    (_twice, r"Http \(test_workflow.py:\d+\) is in the workflow twice"),
    (lambda: Workflow("x", Http("u", id="no blanks")), "cannot be an id"),
    (
        lambda: Workflow("x", Http("u", headers={"x": date(2026, 1, 1)})),
        r'Block "http" \(.*\): params/headers/x is of type date',
    ),
    (lambda: Workflow("x", Set([math.nan])), r'Block "set" .*params/value/0 is nan'),
    (lambda: Workflow("x", Set({1: 2})), "params/value has the key 1, and keys of JSON are texts"),
    (
        lambda: Workflow("x", Set(1, assignto="$.x")),  # type: ignore[call-arg]
        'Set .* has no argument assignto. Did you mean "assign_to"',
    ),
    (lambda: Workflow("x", "http"), "'http' is not a step of a workflow"),  # type: ignore[arg-type]
    (lambda: Workflow("x", Set(1), Start()), "Start .* starts runs, and something comes before it"),
    (lambda: Workflow("x", End(), Set(1)), "Set .* never runs: every path before it ends"),
    (lambda: Workflow("x", Response(1), Set(1)), "Set .* never runs"),
    (lambda: Workflow("x", ContinueAsNew({"n": 1}), Set(1)), "Set .* never runs"),
    (lambda: Workflow("x", Loop(Set(1))), "Loop .* needs exactly one of count, each, while_, until or do_while"),
    (lambda: Workflow("x", Loop(Set(1), count=1, until="x")), "needs exactly one of"),
    (lambda: Workflow("x", Branch()), "Branch .* has no case"),
    (lambda: Workflow("x", Branch(Case("a"), then=Set(1))), "has steps and no condition"),
    (lambda: Workflow("x", Set(1), Graph(Set(2), edges=[])), "is all of a workflow or of a container"),
    (lambda: Workflow("x", Graph(Set(2), edges=[Edge(Set(3), "set")])), "is in a connection and not in the workflow"),
    (lambda: Workflow("x", Graph(Set(2), edges=[]), finally_=Set(1)), "no block of the Graph starts runs"),
    (
        lambda: Workflow("x", Http("u", methd="GET")),  # type: ignore[call-arg]
        'Http .* has no argument methd. Did you mean "method"',
    ),
    (
        lambda: Workflow("x", Http("u", zzz=1)),  # type: ignore[call-arg]
        "Http .* has no argument zzz. There are .*body, cache.*url",
    ),
    (
        lambda: Workflow("x", Set(1, finally_=Set(2))),  # type: ignore[call-arg]
        "Set .* has no argument finally_. Loop, Each, Container and Workflow have it.",
    ),
    (lambda: Workflow("x", Set(1), order=["b"]), 'order: there is no block "b"'),
    (lambda: Workflow("x", Set(ref("hit.body"))), r"ref\('hit.body'\): this is not a path"),
    (lambda: Workflow("x", *[Set(n) for n in range(2001)]), "The workflow has 2,001 blocks. The limit is 2,000"),
]


@pytest.mark.parametrize(("make", "message"), WRONG)
def test_what_is_wrong_is_said_with_its_place(make: Any, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        make().document()


def test_values_that_are_nested_too_deep() -> None:
    value: Any = 1
    for _ in range(70):
        value = [value]
    with pytest.raises(BuildError, match="is nested deeper than 64 levels"):
        Workflow("x", Set(value)).document()
