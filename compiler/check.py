"""Rules a sound graph must still keep: one small function and one code each. `check` runs them all.

Rules about single blocks see every enabled block; findings in blocks that this trigger does not reach only warn.
"""

from __future__ import annotations

from typing import Any

import msgspec

from compiler.catalog import BlockSpec, Catalog
from compiler.diagnostics import Report, suggest
from compiler.document import BlockDoc, Limits
from compiler.flow import Flow
from compiler.graph import Graph
from compiler.references import escape, normalize
from compiler.schema import checker_of, is_open, schema_error
from compiler.variables import parse_path
from compiler.wiring import OUT, Wiring

LOOP_MAX_DEFAULT = 1000  # the bound of a loop that gives none; docs/reference/limits.md

# What each mode of a container needs.
_NEEDS = {
    "loop": {"for": "count", "each": "items", "while": "condition", "until": "condition", "do_while": "condition"},
    "parallel": {"count": "count", "each": "items"},
}

# Policies that containers, and blocks that run within the run loop, do not look at.
_UNREAD = {"container": ("retry", "timeout_s", "on_lost"), "inline": ("group", "timeout_s", "on_lost")}
_WHY_UNREAD = {
    "container": "the blocks in a container are what runs; give it to them",
    "inline": "a block of its type runs at once, within the engine",
}


def check(wiring: Wiring, catalog: Catalog, limits: Limits, report: Report) -> None:
    """All rules that need no order of the blocks."""
    _input_schema(wiring, report)
    if wiring.document.settings.durability == "ahead":
        message = "durability 'ahead' is not available yet; runs are always strict"
        report.add("not_available", "/settings/durability", message, hint="leave it out")
    wired: dict[str, set[str]] = {}
    for edges in wiring.edges.values():
        for edge in edges:
            wired.setdefault(edge.source, set()).add(edge.handle)
    for block in wiring.blocks.values():
        spec = wiring.specs[block.id]
        _name(block, spec, report)
        _policy(block, spec, wiring, report)
        _output_schema(block, spec, report)
        _assign(block, report)
        if spec is None:
            _unknown_type(block, catalog, report)
            continue
        _params(block, spec, report)
        if spec.container:
            _body(block, spec.container, wiring, report)
            _size(block, spec.container, limits, report)
        elif spec.cases:
            _cases(block, spec, wired.get(block.id, set()), report)


def check_cycles(wiring: Wiring, flows: dict[str, Flow], report: Report) -> bool:
    """Report blocks that wait for each other. False when the plan has such a cycle."""
    sound = True
    for container, blocks in wiring.children.items():
        flow = flows.get(container)
        if flow is not None and len(flow.blocks) == len(blocks):
            graph = flow.graph
        else:
            graph = Graph(blocks, [(edge.source, edge.target) for edge in wiring.edges[container]])
        for cycle in graph.cycles():
            names = " -> ".join([*cycle[:8], *(["..."] if len(cycle) > 8 else []), cycle[0]])
            message = f"blocks wait for each other: {names}"
            hint = "to repeat blocks, put them into a loop and read the earlier result by reference"
            report.add("cycle", f"/blocks/{escape(cycle[0])}", message, hint=hint, block=cycle[0])
            sound = sound and cycle[0] not in wiring.reached
    return sound


def pointer_to(block: str, *parts: str) -> str:
    return "/".join(["/blocks", escape(block), *parts])


def _input_schema(wiring: Wiring, report: Report) -> None:
    schema = wiring.document.input
    if schema:
        problem = schema_error(msgspec.json.encode(schema))
        if problem:
            report.add("input_schema_invalid", "/input", f"`input` is not a JSON Schema: {problem[:300]}")


def _unknown_type(block: BlockDoc, catalog: Catalog, report: Report) -> None:
    message = f"there is no block type {block.type[:80]!r}"
    report.add(
        "block_type_unknown",
        pointer_to(block.id, "type"),
        message,
        hint=lambda: suggest(block.type, catalog.types()),
        block=block.id,
        field="type",
    )


def _name(block: BlockDoc, spec: BlockSpec | None, report: Report) -> None:
    name = normalize(block.name)
    own = spec is not None and spec.container == name
    if name in ("workflow", "variable", "input") or (name in ("loop", "parallel") and not own):
        message = f"<{name}...> does not mean block {block.id!r}, whatever its name"
        hint = "give it another name, or refer to it by its id" if normalize(block.id) != name else "rename it"
        report.add("name_reserved", pointer_to(block.id, "name"), message, hint=hint, block=block.id)


def _params(block: BlockDoc, spec: BlockSpec, report: Report) -> None:
    params = block.params
    if spec.container and params.get("mode") is None:
        params = {**params, "mode": mode_of(spec.container, params)}
    for problem in checker_of(spec).problems(params):
        report.add(
            problem.code,
            pointer_to(block.id, "params") + problem.pointer,
            f"block {block.id!r}: {problem.message}",
            hint=problem.hint,
            block=block.id,
            field=problem.field,
        )
    for found in spec.check(block.params) if spec.check is not None else ():
        report.add(
            found.code,
            pointer_to(block.id, "params") + found.pointer,
            f"block {block.id!r}: {found.message}",
            hint=found.hint,
            block=block.id,
            field=found.pointer.split("/")[1] if found.pointer else None,
        )


def _policy(block: BlockDoc, spec: BlockSpec | None, wiring: Wiring, report: Report) -> None:
    policy = block.policy
    groups = wiring.document.settings.groups
    if policy.group is not None and policy.group not in groups:
        message = f"settings.groups has no group {policy.group[:80]!r}"
        group = policy.group
        report.add(
            "group_unknown",
            pointer_to(block.id, "policy", "group"),
            message,
            hint=lambda: suggest(group, groups),
            block=block.id,
        )
    why = _not_cached(block, spec) if policy.cache is not None and spec is not None else None
    if why is not None:
        message = f"the output of block {block.id!r} can not be cached: {why}"
        report.add("cache_unfit", pointer_to(block.id, "policy", "cache"), message, block=block.id)
    kind = "" if spec is None else "container" if spec.container else "inline" if spec.inline else ""
    for name in _UNREAD.get(kind, ()):
        if getattr(policy, name) is None:
            continue
        message = f"policy.{name} of block {block.id!r} has no effect: {_WHY_UNREAD[kind]}"
        report.add("policy_unread", pointer_to(block.id, "policy", name), message, block=block.id)


def _not_cached(block: BlockDoc, spec: BlockSpec) -> str | None:
    """Why an earlier output can not stand for a new one; None when it can."""
    if spec.trigger:
        return "a trigger puts out what this run was given"
    if spec.container:
        return "a container has no attempts of its own; cache the blocks in it"
    if spec.pauses:
        return "it comes from outside, each time anew"
    if spec.inline:
        return "running it costs less than looking for it"
    if spec.effect == "write" and not (spec.only_reads is not None and spec.only_reads(block.params)):
        return "the block may change something, and would not do so"
    return None


def _output_schema(block: BlockDoc, spec: BlockSpec | None, report: Report) -> None:
    if block.output_schema is None:
        return
    where = pointer_to(block.id, "output_schema")
    problem = schema_error(msgspec.json.encode(block.output_schema))
    if problem:
        message = f"output_schema of block {block.id!r} is not a JSON Schema: {problem[:300]}"
        report.add("output_schema_invalid", where, message, block=block.id)
    elif spec is not None and spec.container:
        message = f"output_schema on a container is not available; give the blocks in {block.id!r} one"
        report.add("not_available", where, message, block=block.id)


def _assign(block: BlockDoc, report: Report) -> None:
    if block.assign is not None and parse_path(block.assign) is None:
        message = f"{block.assign[:80]!r} is no path to a variable"
        hint = "write $.name, $.name.field, $.list[0]"
        report.add("path_invalid", pointer_to(block.id, "assign"), message, hint=hint, block=block.id, field="assign")


def _body(block: BlockDoc, kind: str, wiring: Wiring, report: Report) -> None:
    if not wiring.children[block.id]:
        message = f"{kind} {block.id!r} holds no blocks"
        hint = f"set the parent of a block to {block.id!r}"
        if any(other.parent == block.id for other in wiring.document.blocks.values()):
            hint = "all of its blocks are disabled or left out; disable it, too"
        report.add("container_empty", pointer_to(block.id), message, hint=hint, block=block.id)
    elif not wiring.bodies[block.id]:
        message = f"the body handle of {kind} {block.id!r} leads nowhere"
        hint = f"draw an edge from its handle 'body' to {wiring.children[block.id][0]!r}"
        report.add("container_unwired", pointer_to(block.id), message, hint=hint, block=block.id)


def _size(block: BlockDoc, kind: str, limits: Limits, report: Report) -> None:
    params = block.params
    mode = mode_of(kind, params)
    need = _NEEDS[kind].get(mode) if isinstance(mode, str) else None
    if need is not None and params.get(need) is None:
        message = f"{kind} {block.id!r} with mode {mode!r} needs {need!r}"
        report.add("param_missing", pointer_to(block.id, "params"), message, block=block.id, field=need)
    most = limits.branches if kind == "parallel" else limits.iterations
    code = "limit_branches" if kind == "parallel" else "limit_iterations"
    bound = whole_number(params.get("max", LOOP_MAX_DEFAULT)) if kind == "loop" else None
    for field, number in (("max", bound), (need or "count", literal_count(kind, params))):
        if number is None or field not in params:
            continue
        if number < 0:
            message = f"{kind} {block.id!r}: {field} must not be negative"
            report.add("param_invalid", pointer_to(block.id, "params", field), message, block=block.id, field=field)
        elif number > most:
            message = f"{kind} {block.id!r} asks for {number:,}; the limit is {most:,}"
            report.add(code, pointer_to(block.id, "params", field), message, block=block.id, field=field)
        elif bound is not None and number > bound and params.get("on_max") != "exit":
            message = f"loop {block.id!r} runs {number:,} times, but is bounded to {bound:,}: it would fail"
            hint = f"set max to {number}, or on_max to 'exit'"
            report.add(code, pointer_to(block.id, "params", field), message, hint=hint, block=block.id, field=field)


def _cases(block: BlockDoc, spec: BlockSpec, wired: set[str], report: Report) -> None:
    assert spec.cases is not None, "only called for blocks with cases"
    seen: set[str] = set()
    for case in spec.cases(block.params):
        if case.id in seen:
            message = f"block {block.id!r} has two cases with id {case.id[:80]!r}"
            report.add("case_duplicate", pointer_to(block.id, "params"), message, block=block.id)
        elif case.id not in wired and OUT not in spec.handles:
            message = f"case {case.id!r} of block {block.id!r} leads nowhere: a dead end"
            report.add("case_unwired", pointer_to(block.id), message, block=block.id)
        seen.add(case.id)
    if block.type == "condition":
        _condition_else(block, report)
    elif block.type == "router" and not block.params.get("default"):
        message = f"router {block.id!r} has no `default`: a value that fits no route is a dead end"
        report.add("else_missing", pointer_to(block.id, "params"), message, block=block.id)


def _condition_else(block: BlockDoc, report: Report) -> None:
    """A case whose expression is left out or empty matches everything."""
    cases = block.params.get("cases")
    if not isinstance(cases, list) or not cases:
        return
    catches = [i for i, case in enumerate(cases) if isinstance(case, dict) and case.get("when") in (None, "")]
    if not catches:
        message = f"condition {block.id!r} has no else: when no case is true, it is a dead end"
        hint = "add a last case without `when`"
        report.add("else_missing", pointer_to(block.id, "params", "cases"), message, hint=hint, block=block.id)
    elif catches[0] != len(cases) - 1:
        message = f"condition {block.id!r}: the cases after number {catches[0] + 1}, an else, can never be taken"
        hint = "move the case without `when` to the end"
        pointer = pointer_to(block.id, "params", "cases", str(catches[0]))
        report.add("else_not_last", pointer, message, hint=hint, block=block.id)


def mode_of(kind: str, params: dict[str, Any]) -> Any:
    """The mode of a container; without one, it follows from the params that are there."""
    mode = params.get("mode")
    if mode is not None:
        return mode
    if "items" in params:
        return "each"
    return "count" if kind == "parallel" else "while" if "condition" in params else "for"


def literal_count(kind: str, params: dict[str, Any]) -> int | None:
    """Number of branches or iterations, when the document alone settles it."""
    match mode_of(kind, params):
        case "for" | "count":
            return whole_number(params.get("count"))
        case "each":
            items = params.get("items")
            return len(items) if isinstance(items, list | dict) and not is_open(items) else None
        case _:
            return None


def whole_number(value: Any) -> int | None:
    """3 and "3" are numbers; true, 2.5 and references are none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.strip().lstrip("-").isdecimal() and len(value) < 40:
        return int(value)
    return None
