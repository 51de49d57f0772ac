"""Connections of steps besides `Sequence`: side by side, none at all, or a list of connections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Steps
from typing import Any

from compiler.builder.errors import BuildError
from compiler.builder.step import BODY, FINALLY, OUT, Block, Exits, Site, Step, as_step
from compiler.builder.values import plain


class Parallel(Step):
    """Steps that begin at the same time; the next step waits for all of them. For a branch per item see `Each`."""

    def __init__(self, *branches: Step | Steps[Step], id: str | None = None) -> None:
        super().__init__()
        self.branches = [as_step(branch) for branch in branches]

    def inner(self) -> Iterable[Step]:
        return self.branches

    def build(self, site: Site, behind: Exits, parent: str | None) -> Exits:
        left = [branch.build(site, behind, parent) for branch in self.branches]
        ends = [exits for exits in left if exits is not None]
        return list(dict.fromkeys(end for exits in ends for end in exits)) if ends else behind


class End(Step):
    """The path ends here: what comes next is not connected to it."""

    def build(self, site: Site, behind: Exits, parent: str | None) -> Exits:
        return []


class Edge:
    """A connection of a `Graph`, between blocks or ids of blocks. `more`: other fields of it (`id`, `label`, `at`)."""

    def __init__(
        self, source: Block | str, target: Block | str, handle: str = OUT, *, more: Mapping[str, Any] | None = None
    ) -> None:
        self.source = source
        self.target = target
        self.handle = handle
        self.more = more or {}


class Graph(Step):
    """Blocks, and connections between them that are not a sequence. It is all of a workflow, of a container, or of a
    cleanup. In a container the first blocks have a connection from its exit `body`, in a cleanup from `finally`."""

    def __init__(self, *steps: Step, edges: Steps[Edge]) -> None:
        super().__init__()
        self.steps = [as_step(step) for step in steps]
        self.edges = list(edges)

    def inner(self) -> Iterable[Step]:
        return self.steps

    def build(self, site: Site, behind: Exits, parent: str | None) -> Exits:
        if behind is not None and behind != [(parent, BODY)] and {handle for _, handle in behind} != {FINALLY}:
            raise BuildError(f"Graph ({self.place}) is all of a workflow or of a container.", "Put nothing beside it.")
        for step in self.steps:
            step.build(site, None, parent)
        for edge in self.edges:
            ends = {"source": _id(edge.source, site), "target": _id(edge.target, site)}
            handle = {} if edge.handle == OUT else {"handle": edge.handle}
            more = plain(edge.more, f"Edge {ends['source']} -> {ends['target']} ({self.place}): more")
            site.connect(ends | handle | more)
        return []


def _id(end: Block | str, site: Site) -> str:
    return end if isinstance(end, str) else site.id_of(end)
