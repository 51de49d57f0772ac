from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from compiler.compile import compile_document
from compiler.imports import Imported
from compiler.imports.sim import convert, detect
from tests.unit.compiler.imports.sim_documents import compiled
from tests.unit.compiler.support import CATALOG, codes, node, only, ref

CASES = Path(__file__).parents[3] / "conformance" / "cases"


def sim_block(block_id: str, type: Any = "task", enabled: Any = True, name: Any = "", **params: Any) -> dict[str, Any]:
    category = "triggers" if type in ("start_trigger", "gmail") else "blocks"
    return {
        "id": block_id,
        "position": {"x": 1, "y": 2},
        "config": {"tool": type, "params": params},
        "metadata": {"id": type, "name": name or block_id, "category": category},
        "enabled": enabled,
    }


def sim(
    blocks: Sequence[Mapping[str, Any]],
    wires: str,
    loops: Mapping[str, Any] | None = None,
    parallels: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """`a b; c/condition-yes d` -> connections."""
    connections = []
    for pair in filter(None, (part.strip() for part in wires.split(";"))):
        source, target = pair.split()
        name, _, handle = source.partition("/")
        connections.append({"source": name, "target": target} | ({"sourceHandle": handle} if handle else {}))
    first = sim_block("start", "start_trigger")
    return {
        "version": "1.0",
        "blocks": [first, *blocks],
        "connections": connections,
        "loops": dict(loops or {}),
        "parallels": dict(parallels or {}),
    }


def imported(*args: Any, **more: Any) -> Imported:
    options = {key: more.pop(key) for key in ("env_names", "variables") if key in more}
    return convert(sim(*args, **more), **options)


def params_of(result: Imported, block_id: str) -> Any:
    return result.document["blocks"][block_id].get("params", {})


def pairs(result: Imported) -> list[tuple[str, str, str]]:
    return [(e["source"], e.get("handle", "out"), e["target"]) for e in result.document["edges"]]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"format": "weft/1"}, False),
        ({"blocks": {"a": {"type": "task"}}, "edges": []}, False),
        (sim([], ""), True),
        ({"version": "1.0", "state": {"blocks": {}, "edges": []}}, True),
        ({"blocks": {"a": {"type": "agent", "subBlocks": {}}}, "edges": []}, True),
        ({"blocks": []}, False),
        ({"nodes": []}, False),
    ],
)
def test_detect(document: dict[str, Any], expected: bool) -> None:
    assert detect(document) == expected


def test_handles_and_borders() -> None:
    result = imported(
        [sim_block("x"), sim_block("l", "loop"), sim_block("a"), sim_block("z"), sim_block("e")],
        "start x; x/source l; x a; l/loop-start-source a; l/loop-end-source z; a z; x/error e; start gone",
        loops={"l": {"id": "l", "nodes": ["a"], "loopType": "for", "iterations": 2}},
    )
    assert pairs(result) == [
        ("start", "out", "x"),
        ("x", "out", "l"),
        ("l", "body", "a"),
        ("l", "out", "z"),
        ("x", "error", "e"),
    ]
    assert [(d.code, d.pointer) for d in result.diagnostics] == [
        ("import_lossy", "/connections/2"),
        ("import_lossy", "/connections/5"),
        ("import_lossy", "/connections/7"),
    ]
    assert result.document["blocks"]["a"]["parent"] == "l"
    assert result.document["blocks"]["x"]["at"] == [1, 2]


def test_conditions_become_cases_with_the_else_last() -> None:
    conditions = orjson.dumps(
        [
            {"id": "c-else", "title": "else", "value": ""},
            {"id": "c-if", "title": "if", "value": "<start.n> > {{MIN}}"},
            {"id": "c-elif", "title": "else if", "value": ""},
        ]
    ).decode()
    result = imported(
        [sim_block("c", "condition", conditions=conditions), sim_block("a"), sim_block("b")],
        "start c; c/condition-c-if a; c/condition-c-else b",
    )
    assert params_of(result, "c") == {
        "cases": [
            {"id": "c-if", "title": "if", "when": "<start.n> > ${MIN}"},
            {"id": "c-elif", "title": "else if", "when": "false"},
            {"id": "c-else", "title": "else"},
        ],
        "carry": "<start ?? {}>",
    }
    assert pairs(result)[1:] == [("c", "c-if", "a"), ("c", "c-else", "b")]


def test_an_edge_without_handle_from_a_condition_stands_for_every_way() -> None:
    conditions = [{"id": "y", "title": "if", "value": "1"}, {"id": "n", "title": "else", "value": ""}]
    result = imported([sim_block("c", "condition", conditions=conditions), sim_block("a")], "start c; c a")
    assert pairs(result)[1:] == [("c", "y", "a"), ("c", "n", "a")]
    compiled = compile_document(result.document, CATALOG)
    assert compiled.plan is not None
    assert compiled.plan.regions[0].indegree == (0, 1, 2)


def test_routers() -> None:
    routes = '[{"id":"r1","title":"one"},{"id":"r2","title":"two"}]'
    result = imported(
        [
            sim_block("r", "router_v2", routes=routes, context="<start.x>"),
            sim_block("q", "router"),
            sim_block("a"),
            sim_block("b"),
        ],
        "start r; r/router-r1 q; q a; q b; q/error a",
    )
    assert params_of(result, "r") == {
        "context": "<start.x>",
        "routes": [{"id": "r1", "title": "one"}, {"id": "r2", "title": "two"}],
    }
    assert params_of(result, "q")["routes"] == [{"id": "a", "title": "a"}, {"id": "b", "title": "b"}]
    assert pairs(result)[1:] == [("r", "r1", "q"), ("q", "a", "a"), ("q", "b", "b"), ("q", "error", "a")]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"loopType": "for", "iterations": 0}, {"mode": "for", "count": 0}),
        ({"loopType": "for", "iterations": "3"}, {"mode": "for", "count": 3}),
        ({"loopType": "for", "iterations": 5000}, {"mode": "for", "count": 5000, "max": 5000}),
        ({"loopType": "forEach", "forEachItems": "['a']"}, {"mode": "each", "items": "['a']"}),
        ({"loopType": "forEach", "forEachItems": {"k": 1}}, {"mode": "each", "items": {"k": 1}}),
        (
            {"loopType": "while", "whileCondition": "<loop.index> < 3"},
            {"mode": "while", "condition": "<loop.index> < 3"},
        ),
        ({"loopType": "doWhile", "doWhileCondition": ""}, {"mode": "do_while", "condition": "false"}),
    ],
)
def test_loops(config: dict[str, Any], expected: dict[str, Any]) -> None:
    result = imported(
        [sim_block("l", "loop"), sim_block("a")],
        "start l; l/loop-start-source a",
        loops={"l": {"nodes": ["a"], **config}},
    )
    assert params_of(result, "l") == {**expected, "results": "all"}
    assert compile_document(result.document, CATALOG).plan is not None


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"parallelType": "count", "count": 3, "batchSize": 100}, {"mode": "count", "count": 3, "concurrency": 100}),
        ({"parallelType": "collection", "distribution": "<start.x>"}, {"mode": "each", "items": "<start.x>"}),
        ({"distribution": [1, 2]}, {"mode": "each", "items": [1, 2]}),
        ({"count": 2}, {"mode": "count", "count": 2}),
    ],
)
def test_parallels(config: dict[str, Any], expected: dict[str, Any]) -> None:
    result = imported(
        [sim_block("p", "parallel"), sim_block("a")],
        "start p; p/parallel-start-source a",
        parallels={"p": {"nodes": ["a"], **config}},
    )
    assert params_of(result, "p") == {**expected, "results": "all"}


def test_a_container_without_inner_edges_begins_with_blocks_that_follow_none() -> None:
    result = imported(
        [sim_block("l", "loop"), sim_block("a"), sim_block("b")], "start l; a b", loops={"l": {"nodes": ["a", "b"]}}
    )
    assert ("l", "body", "a") in pairs(result)
    assert ("l", "body", "b") not in pairs(result)


def test_environment_names() -> None:
    blocks = [sim_block("a", x="k={{KEY}} {{ lower }} {{NOPE}}", y={"z": ["{{KEY}}"]})]
    known = imported(blocks, "start a", env_names=["KEY", "lower"])
    assert params_of(known, "a") == {"x": "k=${KEY} ${lower} {{NOPE}}", "y": {"z": ["${KEY}"]}}
    guessed = imported(blocks, "start a")
    assert params_of(guessed, "a")["x"] == "k=${KEY} {{ lower }} ${NOPE}"


def test_variables_are_read_by_type() -> None:
    given = {
        "1": {"id": "1", "name": "cfg", "type": "object", "value": '{"a": 7}'},
        "2": {"name": "n", "type": "number", "value": "4"},
        "3": {"name": "on", "type": "boolean", "value": "true"},
        "4": {"name": "s", "type": "plain", "value": "5"},
        "5": {"name": "odd", "type": "number", "value": "four"},
    }
    expected = {"cfg": {"a": 7}, "n": 4, "on": True, "s": "5", "odd": "four"}
    assert imported([], "", variables=given).document["variables"] == expected
    assert imported([], "", variables=list(given.values())).document["variables"] == expected


def test_block_params() -> None:
    table = [{"id": "1", "cells": {"Key": "A", "Value": "<start.x>"}}, {"id": "2", "cells": {"Key": "", "Value": "x"}}]
    fields = [{"name": "n", "type": "number", "value": "4"}, {"name": "o", "type": "object"}, {"name": ""}]
    form = [{"id": "f", "name": "ok", "label": "OK?", "type": "string", "required": True}]
    built = [{"name": "who", "type": "object", "value": [{"name": "id", "type": "number", "value": "<start.n>"}]}]
    start = sim_block("s2", "start_trigger", inputFormat=fields)
    result = imported(
        [
            start,
            sim_block("w", "wait", timeValue="2", timeUnitLong="minutes", **{"async": True}),
            sim_block("v", "variables", variables=[{"variableName": "n", "type": "number", "value": "3"}]),
            sim_block(
                "f", "function", code=[{"content": "const a = {{KEY}}"}, {"content": "return a"}], language="javascript"
            ),
            sim_block(
                "h",
                "api",
                url="https://x/{{HOST}}",
                method="POST",
                headers=table,
                params={"q": 1},
                body='{"a": "<f.result>"}',
                timeout="5000",
            ),
            sim_block("r", "response", status="201", builderData=built, headers=table),
            sim_block("p", "human_in_the_loop", name="Boss", inputFormat=form, notification=[1], triggerMode=False),
            sim_block("n", "note"),
        ],
        "start w; w v",
    )
    assert params_of(result, "s2") == {
        "fields": [{"name": "n", "type": "number", "default": 4}, {"name": "o", "type": "object"}]
    }
    assert params_of(result, "w") == {"seconds": 120}
    assert params_of(result, "v") == {"assign": [{"name": "n", "op": "set", "value": 3}]}
    assert params_of(result, "f") == {"code": "const a = ${KEY}\nreturn a"}
    assert params_of(result, "h") == {
        "url": "https://x/${HOST}",
        "method": "POST",
        "headers": {"A": "<start.x>"},
        "query": {"q": 1},
        "body": {"a": "<f.result>"},
        "timeout_s": 5.0,
    }
    assert params_of(result, "r") == {
        "status": 201,
        "headers": {"A": "<start.x>"},
        "body": {"who": {"id": "<start.n>"}},
    }
    assert params_of(result, "p") == {
        "title": "Boss",
        "fields": {"type": "object", "properties": {"ok": {"type": "string", "title": "OK?"}}, "required": ["ok"]},
        "actions": [],
    }
    assert result.document["blocks"]["n"] == {"type": "note", "name": "n", "at": [1, 2], "params": {"text": ""}}
    assert [d.block for d in result.diagnostics] == ["p"]


def test_retry_and_disabled() -> None:
    retried = {**sim_block("a"), "retry": {"enabled": True, "maxTries": 2, "waitBetweenTriesMs": 0}}
    result = imported([retried, sim_block("b", enabled=False)], "start a; a b")
    assert result.document["blocks"]["a"]["policy"] == {
        "retry": {"max_attempts": 2, "backoff": "fixed", "initial_ms": 0, "jitter": 0}
    }
    assert result.document["blocks"]["b"]["enabled"] is False


def test_references_whose_target_has_another_name_here() -> None:
    result = imported(
        [
            sim_block("H1", "human_in_the_loop", name="Ask Boss"),
            sim_block("u1", name="Input"),
            sim_block("h", "api"),
            sim_block(
                "z",
                x="<askboss.submission.ok> <H1.submission> <input.x> <h.data.id> <h.status> <askboss.ok> <no.data.x>",
            ),
        ],
        "start H1; H1 u1; u1 h; h z",
    )
    assert params_of(result, "z")["x"] == "<askboss.ok> <H1> <u1.x> <h.body.id> <h.status> <askboss.ok> <no.data.x>"


def test_other_triggers_become_start_blocks() -> None:
    result = imported([sim_block("mail", "gmail"), sim_block("a")], "mail a; a mail")
    assert result.document["blocks"]["mail"]["type"] == "start"
    assert [d.pointer for d in result.diagnostics] == ["/connections/1", "/blocks/1"]


def test_the_export_file() -> None:
    document = {
        "version": "1.0",
        "exportedAt": "2026-01-01",
        "state": {
            "metadata": {"name": "From Sim"},
            "blocks": {
                "s": {
                    "id": "s",
                    "type": "start_trigger",
                    "name": "Start",
                    "position": {"x": 0, "y": 0},
                    "subBlocks": {},
                    "enabled": True,
                },
                "l": {
                    "type": "loop",
                    "name": "L",
                    "subBlocks": {},
                    "data": {"loopType": "forEach", "collection": "<start.list>", "width": 500, "height": 300},
                },
                "a": {
                    "type": "task",
                    "name": "A",
                    "subBlocks": {"x": {"id": "x", "value": "<loop.currentItem>"}, "y": {"value": None}},
                    "data": {"parentId": "l", "extent": "parent"},
                },
            },
            "edges": [
                {"id": "e1", "source": "s", "target": "l", "sourceHandle": "source", "targetHandle": "target"},
                {
                    "id": "e2",
                    "source": "l",
                    "target": "a",
                    "sourceHandle": "loop-start-source",
                    "targetHandle": "target",
                },
            ],
            "loops": {},
            "parallels": {},
            "variables": {"v": {"id": "v", "name": "n", "type": "number", "value": 1}},
        },
    }
    result = compiled(document, CATALOG)
    assert codes(result) == []
    plan = result.plan
    assert plan is not None
    assert (plan.name, plan.variables) == ("From Sim", {"n": 1})
    assert [n.id for n in plan.nodes] == ["s", "l:start", "l:end", "a"]
    assert orjson.loads(bytes(node(plan, "a").params)) == {"x": "<loop.currentItem>"}
    assert ref(plan, "a", "loop.currentItem").path == ("item",)
    assert ref(plan, "l:start", "start.list").node == 0


def test_findings_point_into_the_source() -> None:
    document = sim(
        [sim_block("a", "function", code=""), sim_block("l", "loop"), sim_block("b")],
        "start a; a l",
        loops={"l": {"nodes": ["b"]}},
    )
    document["connections"].append({"source": "l", "target": "a", "sourceHandle": "loop-end-source"})
    result = compiled(document, CATALOG)
    assert only(result, "cycle").pointer == "/blocks/1"


@pytest.mark.parametrize(
    "document",
    [
        {
            "blocks": [
                1,
                None,
                {},
                {"id": 3},
                {"id": "a", "metadata": {"id": "condition"}, "config": {"params": {"conditions": "[["}}},
            ],
            "connections": {},
        },
        {
            "blocks": [],
            "connections": [1, {"source": [], "target": {}}],
            "loops": {"x": {"nodes": [["y"]]}, "z": 4},
            "parallels": 3,
        },
        {"state": {"blocks": {"a": {"type": "loop", "data": 3, "subBlocks": []}}, "edges": 7, "variables": [3]}},
        {"state": {"blocks": {"a": {"type": "variables", "subBlocks": {"variables": {"value": [[1]]}}}}}},
    ],
)
def test_broken_sources_do_not_raise(document: dict[str, Any]) -> None:
    assert compiled(document, CATALOG).plan is None


def test_every_recorded_case_compiles() -> None:
    paths = sorted(CASES.glob("*.json"))
    assert paths
    for path in paths:
        case = orjson.loads(path.read_bytes())
        result = convert(case["workflow"], env_names=case.get("env", {}), variables=case.get("variables"))
        made = compile_document(result.document, CATALOG, trigger=case.get("trigger"), env_names=case.get("env", {}))
        assert made.plan is not None, (path.stem, made.diagnostics)
        reached = {n.block for n in made.plan.nodes}
        assert {label.partition("@")[0] for label in case["expect"].get("executed", ())} <= reached, path.stem
