"""A small catalog and short ways to write documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compiler.catalog import BlockSpec, Case, CodeKind, Finding, Params
from compiler.compile import DEFAULT_LIMITS, Compiled, compile_document
from compiler.diagnostics import Diagnostic
from compiler.document import Limits
from compiler.plan import Node, Plan, Ref
from executor.blocks.types import condition, router, variables

JS = {"type": "string", "x-weft": "expression"}


def _cases(key: str) -> Any:
    def cases(params: Params) -> tuple[Case, ...]:
        items = params.get(key)
        return (
            tuple(Case(i["id"]) for i in items if isinstance(i, dict) and "id" in i) if isinstance(items, list) else ()
        )

    return cases


def _spec(type: str, category: Any = "action", properties: Mapping[str, Any] | None = None, **more: Any) -> BlockSpec:
    params: dict[str, Any] = {"type": "object"}
    if properties is not None:
        params |= {"properties": dict(properties), "additionalProperties": False}
    return BlockSpec(type=type, title=type, description="", category=category, params=params, **more)


def _no_default(params: Params) -> tuple[Finding, ...]:
    """What the router says, but for its value: recorded cases leave it out."""
    assert router.block.spec.check is not None
    return tuple(found for found in router.block.spec.check(params) if found.code == "else_missing")


_CASE_LIST = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["id"],
        "properties": {"id": {"type": "string"}, "title": {"type": "string"}, "when": JS, "equals": {}},
    },
}
_LITERAL = {"type": "object", "x-weft": "literal"}
_SIZE = {"mode": {}, "count": {}, "items": {}, "results": {"enum": ["ends", "value", "all"]}}
SPECS = [
    _spec("start", "trigger", {"fields": {"type": "array"}}, trigger=True, preferred=True, inline=True),
    _spec("webhook", "trigger", trigger=True),
    _spec("note", "annotation"),
    _spec("task", effect="write", attempts=3),
    _spec("set", "data", {"value": {}}, inline=True),
    _spec("variables", "data", {"assign": {}}, inline=True, writes=variables.block.spec.writes),
    _spec(
        "function",
        "data",
        {"code": {"type": "string", "x-weft": "code"}},
        output={"type": "object", "properties": {"result": {}, "stdout": {"type": "string"}}},
    ),
    _spec(
        "http",
        properties={
            "url": {"type": "string"},
            "method": {"enum": ["GET", "POST"]},
            "retries": {"type": "integer", "minimum": 0},
            "headers": {"type": "object", "additionalProperties": {"type": "string"}},
            "query": {},
            "body": {},
            "timeout_s": {"type": "number"},
            "raw": {"type": "string", "x-weft": "literal"},
            "auth": {"oneOf": [{"type": "object", "required": ["token"]}, {"type": "object", "required": ["user"]}]},
        },
        effect="write",
        only_reads=lambda params: params.get("method") == "GET",
        attempts=3,
    ),
    _spec(
        "condition",
        "flow",
        {"cases": _CASE_LIST, "carry": {}},
        handles=(),
        cases=_cases("cases"),
        check=condition.block.spec.check,
        inline=True,
    ),
    _spec(
        "router",
        "flow",
        {"value": {}, "routes": _CASE_LIST, "default": {}},
        handles=(),
        cases=_cases("routes"),
        check=_no_default,
        inline=True,
    ),
    _spec("model_router", "flow", {"context": {}, "routes": _CASE_LIST}, handles=(), cases=_cases("routes")),
    _spec(
        "approval",
        "people",
        cases=lambda p: tuple(Case(str(a)) for a in p.get("actions", ())),
        effect="none",
        pauses=True,
    ),
    _spec(
        "call", "flow", {"doc": {"anyOf": [{"type": "object", "x-weft": "literal"}, {"type": "string"}]}, "input": {}}
    ),
    _spec("wait", "people", {"seconds": {}, "until": {}}),
    _spec("response", "action", {"status": {}, "headers": {}, "body": {}}),
    _spec("break", "flow", inline=True, inside="loop"),
    _spec(
        "loop",
        "flow",
        {**_SIZE, "condition": JS, "max": {}, "on_max": {"enum": ["fail", "exit"]}},
        handles=("out", "body"),
        container="loop",
        inline=True,
    ),
    _spec(
        "parallel",
        "flow",
        {**_SIZE, "concurrency": {"type": "integer", "minimum": 1}, "on_branch_error": {}},
        handles=("out", "body"),
        container="parallel",
        inline=True,
    ),
]


class SmallCatalog:
    """Its syntax check finds fault with `!!!` and notes what it was asked."""

    def __init__(self) -> None:
        self._specs = {spec.type: spec for spec in SPECS}
        self.checked: list[str] = []

    def get(self, type: str) -> BlockSpec | None:
        return self._specs.get(type)

    def types(self) -> list[str]:
        return sorted(self._specs)

    def check_syntax(self, source: str, kind: CodeKind) -> str | None:
        self.checked.append(source)
        return "unexpected token" if "!!!" in source else None


CATALOG = SmallCatalog()
BIG = Limits(blocks=100_000, edges=1_000_000, document_bytes=1 << 28)


def block(type: str = "task", parent: str | None = None, **params: Any) -> dict[str, Any]:
    """A block; params as keywords. Keywords `name_`, `enabled_`, `policy_`, `assign_` are the block's own fields."""
    out: dict[str, Any] = {"type": type}
    if parent is not None:
        out["parent"] = parent
    own = {key: params.pop(key) for key in list(params) if key.endswith("_")}
    out |= {key[:-1]: value for key, value in own.items()}
    return out | ({"params": params} if params else {})


def edges(text: str) -> list[dict[str, Any]]:
    """`start a; c.yes b; c.no d` -> edges; a handle follows the source after a dot."""
    out: list[dict[str, Any]] = []
    for pair in filter(None, (part.strip() for part in text.split(";"))):
        source, target = pair.split()
        name, _, handle = source.partition(".")
        out.append({"source": name, "target": target} | ({"handle": handle} if handle else {}))
    return out


def doc(blocks: Mapping[str, Any], wires: str = "", **more: Any) -> dict[str, Any]:
    """A document; a start block is added, and wired to the first block when no edge begins at it."""
    all_blocks = {"start": block("start"), **blocks}
    drawn = edges(wires)
    if blocks and not any(edge["source"] == "start" for edge in drawn):
        drawn.insert(0, {"source": "start", "target": next(iter(blocks))})
    return {"format": "weft/1", "name": "test", "blocks": all_blocks, "edges": drawn, **more}


def compiled(
    blocks: Mapping[str, Any],
    wires: str = "",
    *,
    trigger: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    **more: Any,
) -> Compiled:
    return compile_document(doc(blocks, wires, **more), CATALOG, trigger=trigger, limits=limits)


def plan_of(blocks: Mapping[str, Any], wires: str = "", **more: Any) -> Plan:
    result = compiled(blocks, wires, **more)
    assert result.plan is not None, result.diagnostics
    return result.plan


def node(plan: Plan, node_id: str) -> Node:
    number = plan.node_index(node_id)
    assert number is not None, node_id
    return plan.node(number)


def ref(plan: Plan, node_id: str, text: str) -> Ref:
    return next(r for r in node(plan, node_id).needs if r.text == text)


def codes(result: Compiled, severity: str | None = None) -> list[str]:
    return [d.code for d in result.diagnostics if severity in (None, d.severity)]


def only(result: Compiled, code: str) -> Diagnostic:
    """The one finding with this code."""
    found = [d for d in result.diagnostics if d.code == code]
    assert len(found) == 1, [(d.code, d.message) for d in result.diagnostics]
    return found[0]


CONDITION = [{"id": "yes", "when": "true"}, {"id": "no"}]
