from __future__ import annotations

from typing import Any

import orjson
import pytest

from compiler.plan import Edge, Plan

from .support import CONDITION, block, node, plan_of


def ids(plan: Plan, numbers: tuple[int, ...]) -> list[str]:
    return [plan.node(n).id for n in numbers]


def test_a_container_is_two_nodes_and_a_region() -> None:
    plan = plan_of(
        {
            "fan": block("parallel", name_="Fan", mode="count", count=3, concurrency=2, on_branch_error="collect"),
            "a": block(parent="fan"),
            "b": block(parent="fan"),
            "z": block(),
            "e": block(),
        },
        "start fan; fan.body a; a b; fan z; fan.error e",
    )
    root, body = plan.regions
    assert [n.id for n in root.nodes] == ["start", "fan:start", "fan:end", "z", "e"]
    assert [n.id for n in body.nodes] == ["a", "b"]
    assert (body.id, body.kind, body.parent, body.first, body.limit, body.count) == ("fan", "parallel", 0, 5, 2, 3)
    assert body.on_branch_error == "collect"
    assert (body.start, body.end) == (1, 2)
    start, end = root.nodes[1:3]
    assert (start.type, end.type) == ("parallel:start", "parallel:end")
    assert (start.sentinel, end.sentinel, start.body, end.body) == ("start", "end", 1, 1)
    assert start.out == (Edge(2), Edge(4, "error")), "either sentinel may fail"
    assert end.out == (Edge(3), Edge(4, "error"))
    assert root.indegree == (0, 1, 1, 1, 2)
    assert body.indegree == (1, 1), "one virtual edge into each entry"
    assert (ids(plan, root.entries), ids(plan, body.entries)) == (["start"], ["a"])
    assert (ids(plan, root.ends), ids(plan, body.ends)) == (["z", "e"], ["b"])
    for sentinel in (start, end):
        assert (sentinel.inline, sentinel.effect, sentinel.block, sentinel.name) == (True, "none", "fan", "Fan")


@pytest.mark.parametrize(
    ("params", "start", "end"),
    [
        (
            {"mode": "for", "count": 3},
            {"mode": "for", "count": 3, "max": 1000, "on_max": "fail"},
            {"mode": "for", "max": 1000, "on_max": "fail"},
        ),
        (
            {"mode": "each", "items": [1], "max": 5, "on_max": "exit"},
            {"mode": "each", "items": [1], "max": 5, "on_max": "exit"},
            {"mode": "each", "max": 5, "on_max": "exit"},
        ),
        (
            {"mode": "while", "condition": "true", "count": 9},
            {"mode": "while", "condition": "true", "max": 1000, "on_max": "fail"},
            {"mode": "while", "condition": "true", "max": 1000, "on_max": "fail"},
        ),
        (
            {"mode": "do_while", "condition": "true"},
            {"mode": "do_while", "max": 1000, "on_max": "fail"},
            {"mode": "do_while", "condition": "true", "max": 1000, "on_max": "fail"},
        ),
    ],
)
def test_sentinels_get_what_their_mode_uses(params: dict[str, Any], start: Any, end: Any) -> None:
    plan = plan_of({"l": block("loop", **params), "a": block(parent="l")}, "start l; l.body a")
    assert orjson.loads(bytes(node(plan, "l:start").params)) == start
    assert orjson.loads(bytes(node(plan, "l:end").params)) == end
    assert plan.regions[1].limit == 1


def test_results_may_hold_every_block() -> None:
    def ends(**params: Any) -> list[str]:
        plan = plan_of(
            {
                "l": block("loop", count=1, **params),
                "a": block(parent="l"),
                "p": block("parallel", "l", count=1),
                "b": block(parent="p"),
            },
            "start l; l.body a; a p; p.body b",
        )
        return ids(plan, plan.regions[1].ends)

    assert ends() == ["p:end"]
    assert ends(results="all") == ["a", "p:end"]
    assert ends(results="value") == ["p:end"]


def test_regions_are_numbered_from_the_outside_in() -> None:
    plan = plan_of(
        {
            "i": block("loop", "o", count=1),
            "x": block(parent="i"),
            "o": block("parallel", mode="each", items={"k": 1, "m": 2}),
            "q": block("loop", count="<start.n>"),
            "y": block(parent="q"),
        },
        "start o; start q; o.body i; i.body x; q.body y",
    )
    assert [r.id for r in plan.regions] == ["", "o", "q", "i"]
    assert [r.parent for r in plan.regions] == [-1, 0, 0, 1]
    assert [r.count for r in plan.regions] == [None, 2, None, 1]
    assert [plan.region_of[n] for r in plan.regions for n in range(r.first, r.first + len(r.nodes))] == [0] * 5 + [
        1,
        1,
        2,
        3,
    ]
    for region in plan.regions[1:]:
        assert plan.node(region.start).sentinel == "start"
        assert region.end == region.start + 1


def test_an_entry_that_follows_a_sibling_waits_for_it_too() -> None:
    plan = plan_of(
        {"l": block("loop", count=1), "a": block(parent="l"), "b": block(parent="l")},
        "start l; l.body a; l.body b; a b",
    )
    assert plan.regions[1].indegree == (1, 2)
    assert ids(plan, plan.regions[1].entries) == ["a", "b"]


def test_body_blocks_without_an_edge_are_left_out() -> None:
    plan = plan_of({"l": block("loop", count=1), "a": block(parent="l"), "b": block(parent="l")}, "start l; l.body a")
    assert [n.id for n in plan.regions[1].nodes] == ["a"]


def test_on_error_and_assign_of_a_container() -> None:
    plan = plan_of(
        {"l": block("loop", count=1, assign_="$.x", policy_={"on_error": "continue"}), "a": block(parent="l")},
        "start l; l.body a",
        variables={"x": 1},
    )
    start, end = node(plan, "l:start"), node(plan, "l:end")
    assert (start.policy.on_error, end.policy.on_error) == ("continue", "continue")
    assert (start.policy.assign, end.policy.assign) == (None, "$.x")


def test_a_block_is_in_the_group_of_the_innermost_container_that_has_one() -> None:
    plan = plan_of(
        {
            "out": block("parallel", count=2, policy_={"group": "wide"}),
            "a": block(parent="out"),
            "in": block("loop", parent="out", count=2, policy_={"group": "narrow"}),
            "b": block(parent="in"),
            "c": block(parent="in", policy_={"group": "own"}),
            "quick": block("set", parent="in"),
            "d": block(),
        },
        "start out; out d; out.body a; out.body in; in.body b; in.body c; in.body quick",
        settings={"groups": {"wide": 5, "narrow": 1, "own": 2}},
    )
    names = {n.id: plan.groups[n.policy.group].name for n in plan.nodes if n.sentinel is None}
    assert names == {"start": "", "d": "", "a": "wide", "b": "narrow", "c": "own", "quick": ""}


def test_skip_if_of_a_container_is_asked_at_its_start() -> None:
    plan = plan_of(
        {"l": block("loop", count=1, policy_={"skip_if": "<start.n> > 1"}), "a": block(parent="l")},
        "start l; l.body a",
    )
    start, end = node(plan, "l:start"), node(plan, "l:end")
    assert (start.policy.skip_if, end.policy.skip_if) == ("<start.n> > 1", None)
    assert [ref.text for ref in start.needs] == ["start.n"] and end.needs == ()


def test_node_fields_come_from_the_block_type() -> None:
    plan = plan_of(
        {"c": block("condition", cases=CONDITION), "a": block(name_="Send it"), "b": block("set", value=1)},
        "c.yes a; c.no b",
    )
    c, a = node(plan, "c"), node(plan, "a")
    assert (c.inline, c.effect, c.policy.retry.max_attempts, c.code) == (True, "none", 1, ("/cases/0/when",))
    assert (a.inline, a.effect, a.policy.retry.max_attempts, a.name) == (False, "write", 3, "Send it")
