"""The same random workflows as documents, so that what the compiler makes of them must run like the plan made by hand.

The block types are the simulation's own: the table says what they do, so they have no handlers.
"""

from __future__ import annotations

from random import Random
from typing import Any

from compiler.catalog import BlockSpec, Case, CodeKind
from compiler.compile import compile_document
from compiler.plan import Plan
from tests.support.core.generator import ACTIONS, CASES, Block, Workflow, every

_PARAMS: dict[str, Any] = {"type": "object"}


def _spec(type: str, **more: Any) -> BlockSpec:
    return BlockSpec(type=type, title=type, description="", category="flow", params=_PARAMS, **more)


def _cases(*ids: str) -> Any:
    return lambda params: tuple(Case(id) for id in ids)


_SPECS = {
    spec.type: spec
    for spec in (
        _spec("trigger", trigger=True, inline=True),
        *(_spec(f"plain-{effect}", effect=effect) for effect in ("none", "read", "write")),
        _spec("plain-inline", inline=True),
        _spec("choice", handles=(), cases=_cases(*CASES), inline=True),
        _spec("wait", cases=_cases(*ACTIONS)),
        _spec("response", handles=()),
        _spec("loop", container="loop", inline=True),
        _spec("parallel", container="parallel", inline=True),
    )
}


class Blocks:
    """The catalog of the simulation."""

    def get(self, type: str) -> BlockSpec | None:
        return _SPECS.get(type)

    def types(self) -> list[str]:
        return list(_SPECS)

    def check_syntax(self, source: str, kind: CodeKind) -> str | None:
        return None


def document_of(workflow: Workflow, rng: Random) -> dict[str, Any]:
    """A document of the workflow, its blocks and edges in the order that `rng` says: it must not matter."""
    parent = {child.id: block.id for block in workflow.by_id.values() for child in block.body}
    parent |= {child.id: block.id for block in workflow.by_id.values() if block.body for child in block.cleanup}
    blocks = {block.id: _block(workflow, block, parent.get(block.id)) for block in every(workflow.blocks)}
    edges = [
        {"source": block.id, "handle": handle, "target": target}
        for block in every(workflow.blocks)
        for handle, target in block.out
    ]
    edges += [
        {"source": block.id, "handle": "body", "target": child.id}
        for block in every(workflow.blocks)
        for child in block.body
        if child.entry
    ]
    edges += [
        {"source": block.id, "handle": "finally", "target": child.id}
        for block in every(workflow.blocks)
        for child in block.cleanup
        if child.entry
    ]
    names = list(blocks)
    rng.shuffle(names)
    rng.shuffle(edges)
    return {
        "format": "weft/1",
        "name": f"seed-{workflow.seed}",
        "settings": {
            "max_concurrency": workflow.max_concurrency,
            "on_failure": workflow.on_failure,
            "groups": {f"g{n}": limit for n, limit in enumerate(workflow.groups, 1)},
        },
        "blocks": {name: blocks[name] for name in names},
        "edges": edges,
    }


def _block(workflow: Workflow, block: Block, parent: str | None) -> dict[str, Any]:
    type: str = block.kind
    if block.kind == "plain":
        type = "plain-inline" if block.inline else f"plain-{block.effect}"
    made: dict[str, Any] = {"type": type, "name": block.id.replace(".", "_")}
    policy: dict[str, Any] = {"on_error": block.on_error}
    if block.kind == "loop":
        made["params"] = {"mode": "for", "count": 3}
    elif block.kind == "parallel":
        mode = block.on_branch_error
        made["params"] = {"mode": "count", "count": 3, "concurrency": block.limit, "on_branch_error": mode}
    elif type != "trigger":
        policy["retry"] = {"max_attempts": block.max_attempts, "initial_ms": 500}
        policy["on_lost"] = block.on_lost
        if block.group:
            policy["group"] = f"g{block.group}"
    if type != "trigger":
        made["policy"] = policy
    return made | ({} if parent is None else {"parent": parent})


def compiled_plan(workflow: Workflow, rng: Random) -> Plan:
    """What the compiler makes of the workflow. Raises AssertionError with the diagnostics when it is not accepted."""
    compiled = compile_document(document_of(workflow, rng), Blocks())
    assert compiled.plan is not None, compiled.diagnostics
    return compiled.plan
