"""The language of references, case by case: tests/vectors/references.json, which the editor's tests read, too."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from compiler.compile import compile_document
from compiler.references import find, normalize, parse

from .support import CATALOG

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "references.json").read_text(encoding="utf-8")
)
# A block that cannot be read from there.
UNREACHABLE = {"reference_not_upstream", "reference_into_parallel"}


@pytest.mark.parametrize("case", VECTORS["find"], ids=lambda case: case["text"])
def test_find(case: dict[str, Any]) -> None:
    assert [[found.key, found.start, found.end] for found in find(case["text"])] == case["found"]


@pytest.mark.parametrize("case", VECTORS["parse"], ids=lambda case: case["text"])
def test_parse(case: dict[str, Any]) -> None:
    parsed = parse(case["text"])
    assert (None if parsed is None else list(parsed.segments)) == case["segments"]
    if parsed is not None:
        assert (parsed.default is not None) == ("default" in case)
        assert parsed.default is None or json.loads(parsed.default) == case["default"]


@pytest.mark.parametrize("case", VECTORS["parse_repeated"], ids=lambda case: f"{case['step']}{case['times']}")
def test_how_many_steps_a_path_may_have(case: dict[str, Any]) -> None:
    parsed = parse(case["head"] + case["step"] * case["times"])
    assert (None if parsed is None else len(parsed.segments)) == case["segments"]


@pytest.mark.parametrize(("name", "normalized"), VECTORS["normalize"])
def test_normalize(name: str, normalized: str) -> None:
    assert normalize(name) == normalized


@pytest.mark.parametrize("case", VECTORS["scope"], ids=lambda case: f"{case['reader']} {case['text']}")
def test_scope(case: dict[str, Any]) -> None:
    assert reads(case) == case["reads"]


def reads(case: dict[str, Any]) -> dict[str, Any] | str | None:
    """What the text reads as the value of the block `reader`, or as the condition of that loop."""
    document = copy.deepcopy(VECTORS["document"])
    reader, text = case["reader"], case["text"]
    field = "condition" if case.get("inside") else "value"
    document["blocks"][reader].setdefault("params", {})[field] = text
    compiled = compile_document(document, CATALOG)
    codes = {each.code for each in compiled.diagnostics if each.block == reader}
    if codes & UNREACHABLE:
        return "unreachable"
    plan = compiled.plan
    if plan is None:
        assert codes
        return None
    (found,) = find(text)
    name = f"{reader}:start" if case.get("inside") else reader
    (node,) = (node for node in plan.nodes if node.id == name)
    ref = next((ref for ref in node.needs if ref.text == found.key), None)
    if ref is None:
        return None
    path = list(ref.path)
    match ref.kind:
        case "block":
            return {"kind": "block", "block": plan.nodes[ref.node].block, "mode": ref.mode, "path": path}
        case "scope":
            return {"kind": "scope", "container": plan.regions[ref.region].id, "path": path}
        case "variable":
            return {"kind": "variable", "name": path[0], "path": path[1:]}
        case "env":
            return {"kind": "env", "name": path[0]}
        case _:
            return {"kind": ref.kind, "path": path}
