"""The flat view of a plan: every node by name, parallels stamped out as branch-indexed copies `send[0] … send[n-1]`.

A cleanup is shown after the end of its container, by the handle `finally`. A loop's body is shown once, with its back
edge; a parallel whose number of branches comes from data, or is too large to draw, is shown once with the index `[*]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from compiler.plan import Plan

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
