"""Rules a sound graph must still keep: one small function and one code each. `check` runs those of blocks,
`check_queue` those of the settings about the queue.

Rules about single blocks see every enabled block; findings in blocks that this trigger does not reach only warn.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from compiler.catalog import LOOP_MAX_DEFAULT, BlockSpec, Catalog
from compiler.diagnostics import Report, suggest
from compiler.document import BlockDoc, Limits, SettingsDoc
from compiler.flow import Flow
from compiler.graph import Graph
from compiler.keys import CLEANUP_SUFFIX
from compiler.references import escape, find, normalize, parse
from compiler.schema import admits, checker_of, is_open, schema_error
from compiler.variables import parse_path
from compiler.wiring import OUT, ROOT, Wiring, called
from compiler.wording import is_blank, title_of

# The params that each mode of a container requires.
_NEEDS = {
    "loop": {"for": "count", "each": "items", "while": "condition", "until": "condition", "do_while": "condition"},
    "parallel": {"count": "count", "each": "items"},
}

_INPUT: Final = "input"  # the param of a block that continues the workflow

# Policies that containers, and blocks that run within the run loop, do not look at.
_UNREAD = {
    "container": ("retry", "timeout_s", "on_lost", "limit", "heartbeat_timeout_ms"),
    "inline": ("group", "timeout_s", "on_lost", "limit", "heartbeat_timeout_ms"),
}
_WHY_UNREAD = {
    "container": "Set it on the blocks inside the container.",
    "inline": "Blocks of this type run at once.",
}


def check(wiring: Wiring, catalog: Catalog, limits: Limits, report: Report) -> None:
    """All rules that need no order of the blocks."""
    describes_input = _input_schema(wiring, report)
    wired: dict[str, set[str]] = {}
    for edges in wiring.edges.values():
        for edge in edges:
            wired.setdefault(edge.source, set()).add(edge.handle)
    for block in wiring.blocks.values():
        spec = wiring.specs[block.id]
        _name(block, wiring, report)
        _policy(block, wiring, report)
        _output_schema(block, wiring, report)
        _assign(block, report)
        if spec is None:
            _unknown_type(block, catalog, report)
            continue
        if block.pin is not None:
            _pin(block, spec, wiring, report)
            continue
        _params(block, spec, wiring, report)
        if spec.continues and describes_input:
            _next_input(block, wiring, report)
        if spec.inside is not None:
            _inside(block, spec.inside, wiring, report)
        if CLEANUP_SUFFIX in wiring.bodies or wiring.cleanups:
            _in_cleanup(block, spec, wiring, report)
        if block.id in wiring.reached and undone_by(wiring, block.id) is not None:
            _undoes(block, spec, wiring, report)
        if spec.container:
            _body(block, spec.container, wiring, report)
            _size(block, spec, limits, wiring, report)
        elif spec.cases:
            _cases(block, spec, wired.get(block.id, set()), wiring, report)


def check_cycles(wiring: Wiring, flows: dict[str, Flow], report: Report) -> bool:
    """Report blocks that wait for each other. False when the plan has such a cycle."""
    sound = True
    for container, blocks in wiring.children.items():
        flow = flows.get(container)
        if flow is not None and len(flow.blocks) == len(blocks):
            graph = flow.graph
        else:
            graph = Graph(blocks, [(edge.source, edge.target) for edge in wiring.edges[container]])
        for cycle in graph.cycles(wiring.reached):
            names = [wiring.blocks[block].name[:80] for block in [*cycle[:8], cycle[0]]]
            if len(cycle) > 8:
                names.insert(8, "...")
            message = f"These blocks wait for each other: {' → '.join(names)}."
            report.add("cycle", f"/blocks/{escape(cycle[0])}", message, block=cycle[0])
            sound = sound and cycle[0] not in wiring.reached
    return sound


def pointer_to(block: str, *parts: str) -> str:
    """RFC 6901 pointer to the block in the document."""
    return "/".join(["/blocks", escape(block), *parts])


def _input_schema(wiring: Wiring, report: Report) -> bool:
    schema = wiring.document.input
    problem = schema_error(msgspec.json.encode(schema)) if schema else None
    if problem:
        report.add("input_schema_invalid", "/input", f"`input` is not a JSON Schema: {problem[:300]}.")
    return bool(schema) and not problem


def _next_input(block: BlockDoc, wiring: Wiring, report: Report) -> None:
    """Report the errors that are certain in the input of the next run of the workflow. The rest is checked when the
    block runs, because the next run may be of a later version."""
    trigger = None if wiring.trigger is None else wiring.specs[wiring.trigger]
    value, schema = block.params.get(_INPUT), wiring.document.input or {}
    value = {} if value is None else value
    if trigger is None or not trigger.by_document or is_open(value):
        return

    def add(code: str, where: str, message: str) -> None:
        hint = "`input` of the workflow describes what a run starts with."
        pointer = pointer_to(block.id, "params", _INPUT) + where
        report.add(code, pointer, f"{wiring.called(block.id)}: {message}", hint=hint, block=block.id, field=_INPUT)

    if not isinstance(value, dict):
        if not admits(schema, value):
            add("param_invalid", "", "the input of the new run is not what the workflow describes.")
        return
    fields = schema["properties"] if isinstance(schema.get("properties"), dict) else {}
    for name in schema.get("required") or ():
        field = fields.get(name)
        if name not in value and not (isinstance(field, dict) and "default" in field):
            add("required", "", f"the input of the new run has no `{str(name)[:80]}`, which is required.")
    for name, each in value.items():
        where = f"/{escape(name)}"
        if name not in fields:
            if schema.get("additionalProperties") is False:
                add("param_invalid", where, f"the input of the workflow has no `{name[:80]}`.")
        elif _differs(fields[name], each):
            wanted = fields[name]["type"]
            shown = wanted if isinstance(wanted, str) else " or ".join(wanted)
            add("param_invalid", where, f"`{name[:80]}` of the input must be of type {shown}.")


def _pin(block: BlockDoc, spec: BlockSpec, wiring: Wiring, report: Report) -> None:
    """Nothing of a pinned block runs, so its params may be wrong; but what follows it must be as if it had run."""
    if spec.trigger or spec.container or spec.ends_run or spec.inside or spec.writes:
        message = f"{wiring.called(block.id)} cannot have a pinned output."
        hint = (
            "Pin outputs of blocks that start and end nothing and set no variables; give a trigger its input instead."
        )
        report.add("pin_not_possible", pointer_to(block.id, "pin"), message, hint=hint, block=block.id)


def _unknown_type(block: BlockDoc, catalog: Catalog, report: Report) -> None:
    message = f'{called(block, None)} has the block type "{block.type[:80]}", which does not exist.'
    report.add(
        "block_type_unknown",
        pointer_to(block.id, "type"),
        message,
        hint=lambda: suggest(block.type, catalog.types()),
        block=block.id,
        field="type",
    )


def _name(block: BlockDoc, wiring: Wiring, report: Report) -> None:
    name = normalize(block.name)
    spec = wiring.specs[block.id]
    own = spec is not None and spec.container == name
    if name in ("workflow", "variable", "input") or (name in ("loop", "parallel") and not own):
        message = f"References cannot use the name of {wiring.called(block.id)}: <{name}> has another meaning."
        by_id = f" or use <{block.id}> in references" if normalize(block.id) != name else ""
        hint = f"Rename the block{by_id}."
        report.add("name_reserved", pointer_to(block.id, "name"), message, hint=hint, block=block.id)


def _params(block: BlockDoc, spec: BlockSpec, wiring: Wiring, report: Report) -> None:
    params = block.params
    if spec.container and params.get("mode") is None:
        params = {**params, "mode": mode_of(spec.container, params)}
    for problem in checker_of(spec).problems(params):
        report.add(
            problem.code,
            pointer_to(block.id, "params") + problem.pointer,
            f"{wiring.called(block.id)}: {problem.message}",
            hint=problem.hint,
            block=block.id,
            field=problem.field,
        )
    for found in spec.check(block.params) if spec.check is not None else ():
        named = "" if found.of_block else ":"
        report.add(
            found.code,
            pointer_to(block.id, "params") + found.pointer,
            f"{wiring.called(block.id)}{named} {found.message}",
            hint=found.hint,
            block=block.id,
            field=found.pointer.split("/")[1] if found.pointer and not found.of_block else None,
        )


def _inside(block: BlockDoc, kind: str, wiring: Wiring, report: Report) -> None:
    if any(wiring.kind(around) == kind for around in wiring.above(block.id)):
        return
    message = f"{wiring.called(block.id)} is not inside a {kind}."
    report.add("break_outside_loop", pointer_to(block.id), message, block=block.id)


def _in_cleanup(block: BlockDoc, spec: BlockSpec, wiring: Wiring, report: Report) -> None:
    if not any(around.endswith(CLEANUP_SUFFIX) for around in wiring.above(block.id)):
        return
    if spec.ends_run:
        message = f"{wiring.called(block.id)} ends the run, but a cleanup runs because something has ended."
        report.add("cleanup_response", pointer_to(block.id), message, block=block.id)
    elif spec.pauses and spec.category == "people":
        message = f"{wiring.called(block.id)} waits for a person, but a cleanup has a time limit."
        report.add("cleanup_waits", pointer_to(block.id), message, block=block.id)


def _policy(block: BlockDoc, wiring: Wiring, report: Report) -> None:
    policy = block.policy
    spec = wiring.specs[block.id]
    groups = wiring.document.settings.groups
    if policy.group is not None and policy.group not in groups:
        message = f'{wiring.called(block.id)} uses the group "{policy.group[:80]}", which does not exist.'
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
        message = f"The output of {wiring.called(block.id)} cannot be cached: {why}."
        report.add("cache_unfit", pointer_to(block.id, "policy", "cache"), message, block=block.id)
    if policy.runner is not None and spec is not None and policy.runner not in spec.runners:
        message = f"{wiring.called(block.id)} cannot run with the runner `{policy.runner}`."
        hint = f"Use {' or '.join(f'`{name}`' for name in spec.runners)}. `python` and `function` blocks can use each."
        report.add("runner_unfit", pointer_to(block.id, "policy", "runner"), message, hint=hint, block=block.id)
    kind = "" if spec is None else "container" if spec.container else "inline" if spec.inline else ""
    for name in _UNREAD.get(kind, ()):
        if getattr(policy, name) is None:
            continue
        message = f"`{name}` has no effect on {wiring.called(block.id)}."
        where = pointer_to(block.id, "policy", name)
        report.add("policy_unread", where, message, hint=_WHY_UNREAD[kind], block=block.id)


def _not_cached(block: BlockDoc, spec: BlockSpec) -> str | None:
    """Return the reason why an earlier output cannot be used instead of a new one, or None if it can."""
    if spec.trigger:
        return "a trigger returns the input of the run"
    if spec.container:
        return "a container has no attempts, cache the blocks inside it"
    if spec.pauses:
        return "it comes from outside and differs each time"
    if spec.inline:
        return "running it is faster than reading the cache"
    if spec.effect == "write" and not (spec.only_reads is not None and spec.only_reads(block.params)):
        return "the block may change something, which the cache would prevent"
    return None


def undone_by(wiring: Wiring, block_id: str) -> str | None:
    """Return the id of the block that this one undoes, or None."""
    spec = wiring.specs[block_id]
    named = wiring.blocks[block_id].params.get(spec.undoes) if spec is not None and spec.undoes else None
    return named if isinstance(named, str) else None


def _undoes(block: BlockDoc, spec: BlockSpec, wiring: Wiring, report: Report) -> None:
    undone = wiring.blocks.get(block.params[spec.undoes])
    alone = wiring.children.get(CLEANUP_SUFFIX) == [block.id]
    if undone is None or wiring.specs[undone.id] is not spec or wiring.parent[undone.id] != ROOT:
        message = f"{wiring.called(block.id)} undoes {block.params[spec.undoes][:80]!r}, which is no such block."
    elif not alone:
        message = f"{wiring.called(block.id)} undoes another block, and must be alone in the cleanup of the run."
    else:
        return
    where = pointer_to(block.id, "params", spec.undoes)
    report.add("undo_invalid", where, message, block=block.id, field=spec.undoes)


def _output_schema(block: BlockDoc, wiring: Wiring, report: Report) -> None:
    if block.output_schema is None:
        return
    spec = wiring.specs[block.id]
    where = pointer_to(block.id, "output_schema")
    problem = schema_error(msgspec.json.encode(block.output_schema))
    if problem:
        message = f"The output schema of {wiring.called(block.id)} is not a JSON Schema: {problem[:300]}."
        report.add("output_schema_invalid", where, message, block=block.id)
    elif spec is not None and spec.container:
        message = f"{wiring.called(block.id)} cannot have an output schema."
        report.add("not_available", where, message, hint="Set it on the blocks inside the container.", block=block.id)


def _assign(block: BlockDoc, report: Report) -> None:
    if block.assign is not None and parse_path(block.assign) is None:
        message = f'"{block.assign[:80]}" is not a path of a variable.'
        report.add("path_invalid", pointer_to(block.id, "assign"), message, block=block.id, field="assign")


def _body(block: BlockDoc, kind: str, wiring: Wiring, report: Report) -> None:
    if not wiring.children[block.id]:
        message = f"This {kind} is empty."
        hint = ""
        if any(other.parent == block.id for other in wiring.document.blocks.values()):
            hint = "All blocks inside it are disabled. Enable one, or disable the container."
        report.add("container_empty", pointer_to(block.id), message, hint=hint, block=block.id)
    elif not wiring.bodies[block.id]:
        message = f"The blocks inside {wiring.called(block.id)} are not connected to it."
        hint = f"Connect its body handle to {wiring.called(wiring.children[block.id][0])}."
        report.add("container_unwired", pointer_to(block.id), message, hint=hint, block=block.id)


def _size(block: BlockDoc, spec: BlockSpec, limits: Limits, wiring: Wiring, report: Report) -> None:
    params = block.params
    kind = spec.container
    assert kind is not None, "only called for containers"
    name = wiring.called(block.id)
    mode = mode_of(kind, params)
    need = _NEEDS[kind].get(mode) if isinstance(mode, str) else None
    if need is not None and (params.get(need) is None or (need != "items" and is_blank(params[need]))):
        message = f"{name}: {title_of(spec.params, need)} is required."
        report.add("required", pointer_to(block.id, "params", need), message, block=block.id, field=need)
    most = limits.branches if kind == "parallel" else limits.iterations
    code = "limit_branches" if kind == "parallel" else "limit_iterations"
    bound = whole_number(params.get("max", LOOP_MAX_DEFAULT)) if kind == "loop" else None
    for field, number in (("max", bound), (need or "count", literal_count(kind, params))):
        if number is None or field not in params:
            continue
        if number < 0:
            message = f"{name}: {title_of(spec.params, field)} must be at least 0."
            report.add("param_invalid", pointer_to(block.id, "params", field), message, block=block.id, field=field)
        elif number > most:
            message = f"{name}: {title_of(spec.params, field)} can be at most {most:,}, not {number:,}."
            report.add(code, pointer_to(block.id, "params", field), message, block=block.id, field=field)
        elif bound is not None and number > bound and params.get("on_max") != "exit":
            message = f"{name} runs {number:,} times, more than its maximum of {bound:,}."
            hint = f"Set {title_of(spec.params, 'max')} to {number}."
            report.add(code, pointer_to(block.id, "params", field), message, hint=hint, block=block.id, field=field)


def _cases(block: BlockDoc, spec: BlockSpec, wired: set[str], wiring: Wiring, report: Report) -> None:
    assert spec.cases is not None, "only called for blocks with cases"
    seen: set[str] = set()
    for case in spec.cases(block.params):
        if case.id in seen:
            message = f'{wiring.called(block.id)} has two cases with the id "{case.id[:80]}".'
            report.add("case_duplicate", pointer_to(block.id, "params"), message, block=block.id)
        elif case.id not in wired and OUT not in spec.handles:
            message = f'{wiring.called(block.id)}: "{(case.title or case.id)[:80]}" is not connected.'
            report.add("case_unwired", pointer_to(block.id), message, block=block.id)
        seen.add(case.id)


def mode_of(kind: str, params: dict[str, Any]) -> Any:
    """Return the mode of a container; without one, it follows from the params that are there."""
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


def check_queue(settings: SettingsDoc, report: Report) -> None:
    if settings.fair is not None:
        _check_key(settings.fair, "/settings/fair", report)
    for index, limit in enumerate(settings.limits):
        if limit.of == "block":
            message = "A limit in the settings is of runs. That of a block is in its policy."
            report.add("limit_of_block", f"/settings/limits/{index}/of", message)
        _check_key(limit.key, f"/settings/limits/{index}/key", report)
    for index, rate in enumerate(settings.rates):
        _check_key(rate.key, f"/settings/rates/{index}/key", report)


def _check_key(text: str, pointer: str, report: Report) -> None:
    for found in find(text):
        shown = found.key if found.env else f"<{found.text}>"
        parsed = None if found.env else parse(found.text)
        if parsed is None and not found.env and "??" in found.text:
            report.add("reference_default_invalid", pointer, f"The default in {shown} is not JSON.")
        elif parsed is None or normalize(str(parsed.segments[0])) != "input":
            report.add("setting_reference", pointer, f"{shown} cannot be read here: no block has run yet.")


def _differs(schema: Any, value: Any) -> bool:
    return isinstance(schema, dict) and not (is_open(value) or isinstance(value, float) or admits(schema, value))
