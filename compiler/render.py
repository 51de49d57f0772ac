"""A plan for people and tools: text, JSON, Graphviz DOT, Mermaid. With `expanded`, its flat view: every node by name,
parallels stamped out as branch-indexed copies `send[0] … send[n-1]`.

A cleanup is shown after the end of its container, by the handle `finally`. A loop's body is shown once, with its back
edge; a parallel whose number of branches comes from data, or is too large to draw, is shown once with the index `[*]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, assert_never

import msgspec
from msgspec import Struct

from compiler.keys import CLEANUP_SUFFIX
from compiler.plan import Plan, Region, encode

# More copies than a person looks at; beyond it parallels stay templates.
NODES_MAX: Final = 2_000

ANY: Final = -1  # the index of a copy that stands for all of them


class FlatNode(Struct, frozen=True, omit_defaults=True):
    """`node` is the plan-wide number; `branches` the parallel indexes around it, outermost first, ANY for all."""

    name: str
    node: int
    type: str
    container: str
    branches: tuple[int, ...] = ()


class FlatEdge(Struct, frozen=True, omit_defaults=True):
    """`back`: from a loop's end to its start; it never counts as a dependency."""

    source: str
    target: str
    handle: str = "out"
    back: bool = False


class Flat(Struct, frozen=True):
    """All nodes and edges of a plan, with a copy of each for every branch of a parallel."""

    nodes: tuple[FlatNode, ...]
    edges: tuple[FlatEdge, ...]


def copy_name(node_id: str, branches: Sequence[int]) -> str:
    """`send` in branch 2 of a parallel in branch 0 of another: `send[0][2]`."""
    return node_id + "".join(f"[{'*' if index == ANY else index}]" for index in branches)


def expand(plan: Plan, limit: int = NODES_MAX) -> Flat:
    """See the module text. Regions are shown from the outside in, copies in branch order."""
    nodes: list[FlatNode] = []
    edges: list[FlatEdge] = []
    open_regions: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    for index, branches in open_regions:  # grows while it is walked
        region = plan.regions[index]
        if not index and region.cleanup >= 0:
            open_regions.append((region.cleanup, branches))
            edges.extend(_to_cleanup(plan, region.cleanup, plan.node(region.entries[0]).id, branches))
        for offset, node in enumerate(region.nodes):
            name = copy_name(node.id, branches)
            nodes.append(FlatNode(name, region.first + offset, node.type, region.id, branches))
            edges.extend(FlatEdge(name, copy_name(plan.node(e.target).id, branches), e.handle) for e in node.out)
            if node.sentinel == "start":
                body = plan.regions[node.body]
                room = limit - len(nodes) - sum(len(plan.regions[r].nodes) for r, _ in open_regions)
                copies = _copies(body.kind, body.count, branches, len(body.nodes), room)
                open_regions.extend((node.body, copy) for copy in copies)
                end = copy_name(plan.node(body.end).id, branches)
                for copy in copies:
                    edges.extend(FlatEdge(name, copy_name(plan.node(e).id, copy), "body") for e in body.entries)
                    edges.extend(
                        FlatEdge(copy_name(inner.id, copy), end, "done") for inner in body.nodes if not inner.out
                    )
                if body.cleanup >= 0:
                    open_regions.append((body.cleanup, branches))
                    edges.extend(_to_cleanup(plan, body.cleanup, end, branches))
                if body.kind == "loop":
                    edges.append(FlatEdge(end, name, "again", back=True))
    return Flat(tuple(nodes), tuple(edges))


def _to_cleanup(plan: Plan, cleanup: int, source: str, branches: tuple[int, ...]) -> Iterator[FlatEdge]:
    for entry in plan.regions[cleanup].entries:
        yield FlatEdge(source, copy_name(plan.node(entry).id, branches), "finally")


def _copies(kind: str, count: int | None, branches: tuple[int, ...], size: int, room: int) -> list[tuple[int, ...]]:
    if kind == "loop":
        return [branches]
    if count is None or count * size > room:
        return [(*branches, ANY)]
    return [(*branches, index) for index in range(count)]


Format = Literal["text", "json", "dot", "mermaid"]
FORMATS: tuple[Format, ...] = ("text", "json", "dot", "mermaid")


def render(plan: Plan, format: Format = "text", expanded: bool = False) -> str:
    """The plan in `format`. JSON of the plan itself is what `compiler.plan.decode` reads."""
    flat = expand(plan) if expanded or format in ("dot", "mermaid") else None
    if flat is not None and not expanded:
        flat = expand(plan, limit=0)
    match format:
        case "text":
            return _flat_text(plan, flat) if flat else _text(plan)
        case "json":
            data = msgspec.json.encode(flat) if flat else encode(plan)
            return msgspec.json.format(data, indent=2).decode()
        case "dot":
            assert flat is not None, "made above"
            return _dot(plan, flat)
        case "mermaid":
            assert flat is not None, "made above"
            return _mermaid(plan, flat)
        case _:
            assert_never(format)


def _text(plan: Plan) -> str:
    size = f"{_counted(len(plan.nodes), 'node')}, {_counted(len(plan.regions), 'region')}"
    lines = [f"{plan.name}  {size}  {plan.hash[:12]}"]
    stack: list[tuple[int, int]] = [(0, 0)]
    while stack:
        index, depth = stack.pop()
        region = plan.regions[index]
        lines.append(f"{'  ' * depth}{_title(region)}")
        inner: list[int] = []
        for node in region.nodes:
            ways = ", ".join(
                plan.node(edge.target).id if edge.handle == "out" else f"{edge.handle}: {plan.node(edge.target).id}"
                for edge in node.out
            )
            reads = (
                f"  reads {', '.join(ref.text if ref.kind == 'env' else f'<{ref.text}>' for ref in node.needs)}"
                if node.needs
                else ""
            )
            lines.append(f"{'  ' * depth}  {node.id} ({node.type}){f' -> {ways}' if ways else ''}{reads}")
            if node.sentinel == "start":
                inner.append(node.body)
                inner += [plan.regions[node.body].cleanup] if plan.regions[node.body].cleanup >= 0 else []
        if region.kind == "root" and region.cleanup >= 0:
            inner.append(region.cleanup)
        stack.extend((body, depth + 1) for body in reversed(inner))
    return "\n".join(lines) + "\n"


def _title(region: Region) -> str:
    if region.kind == "root":
        return "root"
    if region.kind == "cleanup":
        around = region.id.removesuffix(CLEANUP_SUFFIX)
        return f"cleanup of {around}" if around else "cleanup"
    size = f", {_counted(region.count, 'time')}" if region.count is not None else ""
    limit = f", {region.limit} at the same time" if region.kind == "parallel" else ""
    return f"{region.kind} {region.id}{size}{limit}"


def _flat_text(plan: Plan, flat: Flat) -> str:
    ways: dict[str, list[str]] = {}
    for edge in flat.edges:
        label = edge.target if edge.handle == "out" else f"{edge.handle}: {edge.target}"
        ways.setdefault(edge.source, []).append(label)
    lines = [f"{plan.name}  {_counted(len(flat.nodes), 'node')}  {plan.hash[:12]}"]
    for node in flat.nodes:
        after = f" -> {', '.join(ways[node.name])}" if node.name in ways else ""
        lines.append(f"  {node.name} ({node.type}){after}")
    return "\n".join(lines) + "\n"


def _dot(plan: Plan, flat: Flat) -> str:
    lines = [f"digraph {_quoted(plan.name)} {{", "  rankdir=LR;", "  node [shape=box];"]
    for node in flat.nodes:
        title = plan.node(node.node).name
        label = node.name if title == node.name else f"{title} ({node.name})"
        shape = " shape=circle" if plan.node(node.node).sentinel else ""
        lines.append(f"  {_quoted(node.name)} [label={_quoted(label)}{shape}];")
    for edge in flat.edges:
        label = f" [label={_quoted(edge.handle)}{' style=dashed constraint=false' if edge.back else ''}]"
        plain = edge.handle == "out" and not edge.back
        lines.append(f"  {_quoted(edge.source)} -> {_quoted(edge.target)}{'' if plain else label};")
    return "\n".join([*lines, "}", ""])


def _mermaid(plan: Plan, flat: Flat) -> str:
    number = {node.name: f"n{i}" for i, node in enumerate(flat.nodes)}
    lines = ["flowchart LR"]
    for node in flat.nodes:
        opening, closing = ("((", "))") if plan.node(node.node).sentinel else ("[", "]")
        lines.append(f"  {number[node.name]}{opening}{_mermaid_text(node.name)}{closing}")
    for edge in flat.edges:
        arrow = "-.->" if edge.back else "-->"
        text = "" if edge.handle == "out" else f"|{_mermaid_text(edge.handle)}|"
        lines.append(f"  {number[edge.source]} {arrow}{text} {number[edge.target]}")
    return "\n".join([*lines, ""])


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _quoted(text: str) -> str:
    escaped = " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _mermaid_text(text: str) -> str:
    escaped = text.replace("#", "#35;").replace('"', "#quot;")
    return f'"{escaped}"'
