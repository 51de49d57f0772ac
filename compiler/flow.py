"""Analysis of one container: the blocks upstream of a reader, and which of them may have been skipped."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from compiler.document import EdgeDoc
from compiler.graph import Graph, reach
from compiler.wiring import OUT, ROOT, Wiring

# A reference to a block after a long tangle of branches is rare; after so many steps it counts as certain.
STEPS_MAX = 500


class Flow:
    """The reached blocks of one container, in the order of the plan."""

    def __init__(self, wiring: Wiring, container: str) -> None:
        reached = wiring.reached
        self.container = container
        self.blocks = [block for block in wiring.children[container] if block in reached]
        self.edges: Sequence[EdgeDoc] = [
            edge for edge in wiring.edges[container] if edge.source in reached and edge.target in reached
        ]
        trigger = [wiring.trigger] if wiring.trigger else []
        self.entries = trigger if container == ROOT else [b for b in wiring.bodies[container] if b in reached]
        self.graph = Graph(self.blocks, [(edge.source, edge.target) for edge in self.edges], self.entries)

    def always_ran(self, block: str, before: str) -> bool:
        """Return whether `block`, which is upstream of `before`, has run whenever `before` runs.

        It has if it always runs, or if it, or a block that runs only together with it, lies on every path.
        """
        if block in self._always or self.graph.dominates(block, before):
            return True
        seen = {block}
        stack = [block]
        while stack:
            for source in self._certain_before.get(stack.pop(), ()):
                if source in seen:
                    continue
                if self.graph.dominates(source, before) or len(seen) > STEPS_MAX:
                    return True
                seen.add(source)
                stack.append(source)
        return False

    def exclusive(self, one: str, other: str) -> bool:
        """Return whether the two follow different handles of one branching block, so that only one of them can run."""
        for source, by_handle in self._branches.items():
            if not (self.graph.dominates(source, one) and self.graph.dominates(source, other)):
                continue
            via_one = {handle for handle, reached in by_handle.items() if one in reached}
            via_other = {handle for handle, reached in by_handle.items() if other in reached}
            if not via_one & via_other:
                return True
        return False

    @cached_property
    def _branching(self) -> set[str]:
        """Blocks with an edge that is not `out`: none of their edges is certain to be live."""
        return {edge.source for edge in self.edges if edge.handle != OUT}

    @cached_property
    def _certain_before(self) -> dict[str, list[str]]:
        """The sources by target whose run makes the edge live: one that fails without an error edge ends the run."""
        before: dict[str, list[str]] = {}
        for edge in self.edges:
            if edge.source not in self._branching:
                before.setdefault(edge.target, []).append(edge.source)
        return before

    @cached_property
    def _always(self) -> set[str]:
        after: dict[str, list[str]] = {}
        for target, sources in self._certain_before.items():
            for source in sources:
                after.setdefault(source, []).append(target)
        return reach(after, self.entries)

    @cached_property
    def _branches(self) -> dict[str, dict[str, set[str]]]:
        starts: dict[str, dict[str, set[str]]] = {}
        for edge in self.edges:
            if edge.source in self._branching:
                starts.setdefault(edge.source, {}).setdefault(edge.handle, set()).add(edge.target)
        return {
            source: {handle: self.graph.reach(targets) for handle, targets in by_handle.items()}
            for source, by_handle in starts.items()
        }
