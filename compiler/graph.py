"""The graph of one region: its order, cycles, ancestors and dominators.

Blocks are vertices (a container is one), edges count once however many handles join two blocks. The only importer of
networkx, which analyses graphs that have cycles. Importing it takes 0.2 s and 20 MiB, and a document that can run has
no cycle: everything that such a document needs is here, in the order of its blocks. Never `simple_cycles`: its cost is
exponential in what a user may draw.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

CYCLES_MAX = 20
_ENTRY = "\0entry"  # a virtual vertex before the region's first blocks; no id holds this character


def reach(after: Mapping[str, Iterable[str]], starts: Iterable[str]) -> set[str]:
    """Return `starts` and all that comes after them."""
    reached = set(starts)
    stack = list(reached)
    while stack:
        for block in after.get(stack.pop(), ()):
            if block not in reached:
                reached.add(block)
                stack.append(block)
    return reached


class Graph:
    """Read-only. `blocks` is in document order, `edges` joins blocks of this region only, `entries` are its first
    blocks."""

    def __init__(self, blocks: Sequence[str], edges: Iterable[tuple[str, str]], entries: Sequence[str] = ()) -> None:
        self.blocks = blocks
        self.entries = entries
        self.after: dict[str, list[str]] = {block: [] for block in blocks}
        self.before: dict[str, list[str]] = {block: [] for block in blocks}
        self._pairs = dict.fromkeys(edges)
        for source, target in self._pairs:
            self.after[source].append(target)
            self.before[target].append(source)

    @cached_property
    def order(self) -> list[str]:
        """Sources before targets, ties in document order. In a graph with cycles simply the document order."""
        return list(self.blocks) if self._is_cyclic else self._sorted

    def cycles(self, first: Collection[str] = ()) -> list[list[str]]:
        """Return one cycle of each set of blocks that wait for each other, at most CYCLES_MAX: those with a block in
        `first` before the others."""
        found: list[list[str]] = []
        if not self._is_cyclic:
            return found
        import networkx as nx

        position = {block: i for i, block in enumerate(self.blocks)}
        whole: nx.DiGraph[str] = nx.DiGraph(list(self._pairs))
        knots: list[tuple[bool, int, set[str]]] = []
        for knot in nx.strongly_connected_components(whole):
            if len(knot) > 1 or any((block, block) in self._pairs for block in knot):
                knots.append((not any(block in first for block in knot), min(position[block] for block in knot), knot))
        for _, begin, knot in sorted(knots, key=lambda entry: entry[:2])[:CYCLES_MAX]:
            cycle = nx.find_cycle(whole.subgraph(knot), self.blocks[begin])
            found.append([source for source, _ in cycle])
        return found

    def reach(self, starts: Iterable[str]) -> set[str]:
        return reach(self.after, starts)

    def is_upstream(self, block: str, of: str) -> bool:
        """Return whether there is a path from `block` to `of`. A block is not upstream of itself."""
        if (block, of) in self._pairs:  # by far the usual case
            return True
        return block != of and bool(self._ancestors[of] >> self._position[block] & 1)

    def dominates(self, block: str, of: str) -> bool:
        """Return whether every path from the entries to `of` passes through `block`. True for `block` itself. Both must
        be reachable, in a graph without cycles."""
        spans = self._spans
        return spans[block][0] <= spans[of][0] and spans[of][1] <= spans[block][1]

    @cached_property
    def _is_cyclic(self) -> bool:
        return len(self._sorted) < len(self.blocks)

    @cached_property
    def _sorted(self) -> list[str]:
        position = {block: i for i, block in enumerate(self.blocks)}
        missing = {block: len(sources) for block, sources in self.before.items()}
        ready = [i for i, block in enumerate(self.blocks) if not missing[block]]  # ascending numbers are a heap
        found: list[str] = []
        while ready:
            block = self.blocks[heapq.heappop(ready)]
            found.append(block)
            for target in self.after[block]:
                missing[target] -= 1
                if not missing[target]:
                    heapq.heappush(ready, position[target])
        return found

    @cached_property
    def _position(self) -> dict[str, int]:
        return {block: i for i, block in enumerate(self.order)}

    @cached_property
    def _ancestors(self) -> dict[str, int]:
        """Bit sets, one int each: n^2/8 bytes at worst, 3 MB for a chain of 5,000."""
        sets: dict[str, int] = {}
        for block in self.order:
            upstream = 0
            for source in self.before[block]:
                upstream |= sets[source] | 1 << self._position[source]
            sets[block] = upstream
        return sets

    @cached_property
    def _spans(self) -> dict[str, tuple[int, int]]:
        """Entry and exit times of a walk over the dominator tree: `a` dominates `b` when its span holds that of `b`."""
        children: dict[str, list[str]] = {}
        for block, dominator in self._dominators().items():
            children.setdefault(dominator, []).append(block)
        spans: dict[str, tuple[int, int]] = {}
        clock = 0
        opened: dict[str, int] = {}
        stack = [_ENTRY]
        while stack:
            block = stack.pop()
            clock += 1
            if block in opened:
                spans[block] = (opened[block], clock)
                continue
            opened[block] = clock
            stack.append(block)
            stack.extend(children.get(block, ()))
        return spans

    def _dominators(self) -> dict[str, str]:
        entries = set(self.entries)
        found: dict[str, str] = {}
        depth = {_ENTRY: 0}
        for block in self.order:  # all blocks that lead to it come earlier, so one pass is enough
            at = _ENTRY if block in entries else None
            for source in self.before[block]:
                if source not in depth:
                    continue
                if at is None:
                    at = source
                while at != source:  # up the tree to where both meet
                    if depth[at] >= depth[source]:
                        at = found[at]
                    else:
                        source = found[source]
            if at is not None:
                found[block], depth[block] = at, depth[at] + 1
        return found
