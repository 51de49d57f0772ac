"""The graph that a trace records: blocks in scopes, and which blocks wait for others.

A scope is the root, the body of a container, or a way after a block (a case of a condition, an `error` exit). A block
waits for the blocks of its own scope whose values it uses; for a value from further out, the block that owns the scope
waits instead, because a block starts as soon as one of its edges is live. A block that waits for nothing follows the
entry of its scope.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from compiler.builder.step import Block, Exit, edge
from compiler.wiring import OUT


class Scope:
    """A scope. `entry` is the exit that its first blocks follow, `owner` the block in `parent` whose edges lead here,
    or None for the root. `container` is the id of the container around it. If `ordered`, each block waits for all
    before it."""

    def __init__(
        self, entry: Exit, parent: Scope | None = None, owner: Node | None = None, container: str | None = None
    ):
        self.entry = entry
        self.parent = parent
        self.owner = owner
        self.container = container
        self.items: list[Item] = []
        self.barrier: Item | None = None
        self.ordered = False

    def last(self) -> list[Item]:
        """Return the items that nothing in this scope waits for yet."""
        followed = {id(one) for item in self.items for one in item.after}
        return [item for item in self.items if id(item) not in followed]

    def exits(self) -> list[Exit]:
        """Return the exits that items after the scope wait for. If the scope runs, at least one of their edges
        is live."""
        return [end for item in self.last() for end in item.exits()] if self.items else [self.entry]

    def ends_here(self) -> None:
        """Mark that the run ends here: calls after the blocks around this scope wait until it is known whether
        it does."""
        scope = self
        while scope.parent is not None:
            around = (item for item in scope.parent.items if scope in item.scopes())
            scope.parent.barrier = next(around, scope.parent.barrier)
            scope = scope.parent

    def holds(self, inner: Scope | None) -> bool:
        """Return whether `inner` is this scope, or within it."""
        while inner is not None and inner is not self:
            inner = inner.parent
        return inner is self


class Item(ABC):
    """An item of a scope. `after` are the items of this scope that it waits for."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.after: list[Item] = []

    @abstractmethod
    def exits(self) -> list[Exit]: ...

    @abstractmethod
    def scopes(self) -> Iterable[Scope]:
        """Return the scopes in it."""

    def wait_for(self, others: Iterable[Item]) -> None:
        self.after.extend(one for one in others if one is not self and one not in self.after)


class Node(Item):
    """A block. `body` and `cleanup` are those of a container. `needed` is false for a block that only prepares a value;
    it is left out if nothing reads it. `joins`: it makes one value of those of several ways. `ends`: the run ends with
    it, and nothing follows."""

    def __init__(self, scope: Scope, id: str, block: Block) -> None:
        super().__init__(scope)
        self.id = id
        self.block = block
        self.needed = True
        self.joins = False
        self.ends = False
        self.body: Scope | None = None
        self.cleanup: Scope | None = None

    def scopes(self) -> Iterable[Scope]:
        return [scope for scope in (self.body, self.cleanup) if scope is not None]

    def exits(self) -> list[Exit]:
        return [] if self.ends else [(self.id, OUT)]

    def document(self) -> dict[str, Any]:
        return self.block.block(self.id, self.scope.container)


class Junction(Item):
    """The end of the ways that leave one block. `done` are exits that are not a scope of ours, such as `out` of a
    container."""

    def __init__(self, scope: Scope, owner: Node) -> None:
        super().__init__(scope)
        self.owner = owner
        self.ways: list[Scope] = []
        self.done: list[Exit] = []
        self.wait_for([owner])

    def exits(self) -> list[Exit]:
        return [*self.done, *(end for way in self.ways for end in way.exits())]

    def scopes(self) -> Iterable[Scope]:
        return self.ways


def edges_of(scope: Scope) -> list[dict[str, Any]]:
    """Return the edges of all blocks of the scope and of the scopes in it, in the order in which they were made."""
    edges: list[dict[str, Any]] = []
    for item in scope.items:
        if isinstance(item, Node):
            direct = _direct(item)
            sources = [end for one in direct for end in one.exits()] if direct else [scope.entry]
            edges += [edge(source, handle, item.id) for source, handle in dict.fromkeys(sources)]
        for inner in item.scopes():
            edges += edges_of(inner)
    return edges


def nodes_of(scope: Scope) -> list[Node]:
    nodes: list[Node] = []
    for item in scope.items:
        if isinstance(item, Node):
            nodes.append(item)
        for inner in item.scopes():
            nodes += nodes_of(inner)
    return nodes


def _direct(item: Item) -> list[Item]:
    """Return the items that it waits for, without those that are implied by another. A junction waits for its owner
    too, so an edge from both would be redundant."""
    behind: set[int] = set()
    for one in item.after:
        behind |= _all_before(one)
    return [one for one in item.after if id(one) not in behind]


def _all_before(item: Item) -> set[int]:
    found: set[int] = set()
    stack = list(item.after)
    while stack:
        one = stack.pop()
        if id(one) not in found:
            found.add(id(one))
            stack.extend(one.after)
    return found
