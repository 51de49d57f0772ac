"""The graph that a trace records: blocks in scopes, and the exits that the next block of a scope follows.

A scope is the root, the body of a container, or a way after a block (a case of a condition, an `error` exit). Calls
follow each other as they are awaited; those of `gather` begin at the same exits, and what comes next follows all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compiler.builder.step import Block, Exit
from compiler.wiring import OUT


class Scope:
    """A scope. `exits`: what its next block follows; none if the run has ended there. `container` is the id of the
    container around it."""

    def __init__(self, entry: Exit, parent: Scope | None = None, container: str | None = None) -> None:
        self.exits = [entry]
        self.parent = parent
        self.container = container
        self.nodes: list[Node] = []
        self.condition: Any = None  # the last one in it, for `otherwise`

    def follow(self, ways: Iterable[list[Exit]]) -> list[Exit]:
        """Continue after all of these."""
        self.exits = list(dict.fromkeys(end for exits in ways for end in exits))
        return self.exits

    def holds(self, inner: Scope | None) -> bool:
        """Return whether `inner` is this scope, or within it."""
        while inner is not None and inner is not self:
            inner = inner.parent
        return inner is self


class Node:
    """A block. `body` and `cleanup` are those of a container. `needed` is false for a block that only prepares a value;
    it is left out if nothing reads it. `joins`: it makes one value of those of several ways. `reads`: the blocks whose
    values it uses."""

    def __init__(self, scope: Scope, id: str, block: Block) -> None:
        self.scope = scope
        self.id = id
        self.block = block
        self.needed = True
        self.joins = False
        self.reads: list[Node] = []
        self.body: Scope | None = None
        self.cleanup: Scope | None = None

    def inside(self, handle: str) -> Scope:
        """Return the scope after an exit that leads into this container."""
        return Scope((self.id, handle), self.scope, self.id)

    def way(self, handle: str) -> Scope:
        """Return the scope after an exit of this block."""
        return Scope((self.id, handle), self.scope, self.scope.container)


class Edges:
    """The edges of a trace, in the order in which they were made."""

    def __init__(self) -> None:
        self.all: dict[tuple[str, str, str], None] = {}  # source, handle, target

    def lead_to(self, node: Node) -> None:
        self.all |= {(source, handle, node.id): None for source, handle in node.scope.exits}
        node.scope.exits = [(node.id, OUT)]

    def leave_out(self, node: Node) -> None:
        """Connect what follows the node with what is before it."""
        before = [(source, handle) for source, handle, target in self.all if target == node.id]
        kept: dict[tuple[str, str, str], None] = {}
        for source, handle, target in self.all:
            if source == node.id:
                kept |= {(*exit, target): None for exit in before}
            elif target != node.id:
                kept[source, handle, target] = None
        self.all = kept
