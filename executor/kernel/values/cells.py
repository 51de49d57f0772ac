"""Cells hold the outputs of a run, in the scope that they were made in; scopes lie in the container that opened them.
`scope.Values` writes and reads them."""

from __future__ import annotations

from typing import Any

import orjson
from msgspec import Struct

from executor.kernel.values.payload import MISSING


class Cell(Struct, gc=False):
    """An output. `own_brief`: None, if it is `data`. `ends`: False, if the node left by a handle with an edge, and is
    an end of its scope only where it does not. A run holds thousands, and JSON has no cycles: the garbage
    collector need not look at them."""

    data: bytes
    own_brief: bytes | None = None
    ends: bool = True
    _value: Any = MISSING

    @property
    def brief(self) -> bytes:
        """Return what a surrounding container collects of the output: of a container only its results."""
        return self.data if self.own_brief is None else self.own_brief

    @property
    def value(self) -> Any:
        if self._value is MISSING:
            self._value = orjson.loads(self.data)
        return self._value


class ScopeCells:
    """One iteration or branch (or the root): outputs by node number, containers by the region of their body."""

    __slots__ = ("cells", "containers")

    def __init__(self) -> None:
        self.cells: dict[int, Cell] = {}
        self.containers: dict[int, ContainerCells] = {}


class ContainerCells:
    """A loop or parallel that has started. `done` counts its closed scopes, `results` holds the JSON of each by index.

    last      loops: the newest closed iteration; it is the previous one of the iteration now running
    retained  closed branches that a later iteration of an outer loop may still read
    broken    index of the iteration in which a break block ran, or -1
    outcome   a cleanup: how what it cleans up for has ended
    """

    __slots__ = (
        "_items",
        "broken",
        "count",
        "decoded",
        "done",
        "items_data",
        "last",
        "last_index",
        "open",
        "outcome",
        "results",
        "retained",
    )

    def __init__(self, count: int, items: bytes | None) -> None:
        self.count = count
        self.items_data = items
        self._items: list[Any] | None = None
        self.open: dict[int, ScopeCells] = {}
        self.retained: dict[int, ScopeCells] = {}
        self.last: ScopeCells | None = None
        self.last_index = -1
        self.results: dict[int, bytes] = {}
        self.decoded: list[Any] = []
        self.done = 0
        self.broken = -1
        self.outcome = ""

    @property
    def items(self) -> Any:
        if self._items is None:
            if self.items_data is None:
                return MISSING
            self._items = orjson.loads(self.items_data)
        return self._items

    def scope(self, index: int) -> ScopeCells | None:
        if self.last is not None and index == self.last_index:
            return self.last
        return self.open.get(index) or self.retained.get(index)

    def newest(self) -> int:
        """Index of the newest iteration that has put something out, or -1."""
        return max(self.open, default=self.last_index)

    def release(self) -> None:
        self.open.clear()
        self.results.clear()
        self.decoded = []
        self.items_data = self._items = None

    def results_so_far(self) -> list[Any]:
        """Decoded once each; the list grows with the loop."""
        for index in range(len(self.decoded), self.done):
            self.decoded.append(orjson.loads(self.results.get(index, b"null")))
        return self.decoded


def held_bytes(scope: ScopeCells) -> int:
    total = sum(len(cell.data) for cell in scope.cells.values())
    for container in scope.containers.values():
        total += sum(map(len, container.results.values())) + len(container.items_data or b"")
        scopes = [*container.open.values(), *container.retained.values(), *([container.last] if container.last else [])]
        total += sum(map(held_bytes, scopes))
    return total
