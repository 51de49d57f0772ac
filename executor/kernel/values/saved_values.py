"""The values of a run as rows that can be stored, and the values from these rows. `core/saved_state` is the same for
the state.

Scopes and containers have numbers, in the order in which a walk from the root finds them, so that rows are flat: a
caller can stop between any two. A container is read in one piece; what is in its scopes changes by events only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from compiler.keys import Path
from executor.kernel.values.fold import Fold
from executor.kernel.values.payload import trimmed
from executor.kernel.values.scope import Cell, ContainerCells, ScopeCells

ROWS_MAX = 500  # in one part
BYTES_MAX = 256 * 1024  # and about so much of outputs

# The type of the rows of each kind. Containers come before what is in them.
VALUE_ROWS: dict[str, Any] = {
    "fold": tuple[int, list[int], bytes],
    "branch_error": tuple[Path, bytes],
    "values": tuple[int, int, int, bytes | None, int, int, int, str, int],  # a container; the last number is a scope's
    "inner": tuple[int, bool, int, int],  # container, whether it is over, index, scope
    "result": tuple[int, int, bytes],
    "cell": tuple[int, int, bytes, int | bytes | None, bool],
}
_LISTS = ("values", "inner", "result", "cell")
_NO_SCOPE = -1


def rows_of_fold(fold: Fold) -> Iterator[tuple[str, Sequence[Any]]]:
    """(kind, rows), in small parts. No event may be applied before the last one has been taken."""
    yield "fold", [(fold.bytes, sorted(fold.ran), trimmed(orjson.dumps(fold.values.variables)))]
    yield "branch_error", [(path, trimmed(orjson.dumps(error))) for path, error in fold.branch_errors.items()]
    part: dict[str, list[Any]] = {kind: [] for kind in _LISTS}
    left, room = ROWS_MAX, BYTES_MAX
    for kind, row, size in _walk(fold.values.root):
        part[kind].append(row)
        left, room = left - 1, room - size
        if left <= 0 or room <= 0:
            yield from part.items()
            part = {kind: [] for kind in _LISTS}
            left, room = ROWS_MAX, BYTES_MAX
    yield from part.items()


def _walk(root: ScopeCells) -> Iterator[tuple[str, Any, int]]:
    """Kind, row, and how many bytes are in it."""
    scopes = [root]
    containers = 0
    for number, scope in enumerate(scopes):  # it grows
        for node, cell in scope.cells.copy().items():  # a list of pairs would be a hundred thousand new objects
            brief = _brief(cell)
            size = len(cell.data) + (len(brief) if type(brief) is bytes else 0)
            yield "cell", (number, node, cell.data, brief, cell.ends), size
        for region, container in scope.containers.copy().items():
            inner = ((False, container.open.copy()), (True, container.retained.copy()))
            results = container.results.copy()
            last = _NO_SCOPE
            if container.last is not None:
                last = len(scopes)
                scopes.append(container.last)
            items = container.items_data
            counts = container.last_index, container.done, container.broken, container.outcome
            yield "values", (number, region, container.count, items, *counts, last), len(items or b"")
            for over, ones in inner:
                for index, one in ones.items():
                    yield "inner", (containers, over, index, len(scopes)), 0
                    scopes.append(one)
            for index, result in results.items():
                yield "result", (containers, index, result), len(result)
            containers += 1


def _brief(cell: Cell) -> int | bytes | None:
    """Return the brief of a cell: None if it is the data, a number if it is so many bytes of the data and a brace (a
    loop puts out its results and more after them), else its bytes."""
    if cell.brief is cell.data or cell.brief == cell.data:
        return None
    length = len(cell.brief) - 1
    return length if cell.brief[-1:] == b"}" and cell.data[:length] == cell.brief[:-1] else cell.brief


class SavedValues:
    """The reverse of `rows_of_fold`, into a fold before its first event."""

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self._scopes = [fold.values.root]
        self._containers: list[ContainerCells] = []

    def add(self, kind: str, rows: Sequence[Any]) -> None:
        match kind:
            case "fold":
                ((self._fold.bytes, ran, variables),) = rows
                self._fold.ran.update(ran)
                self._fold.values.variables = orjson.loads(variables)
            case "branch_error":
                self._fold.branch_errors.update((path, orjson.loads(error)) for path, error in rows)
            case "values":
                for scope, region, count, items, *counts, last in rows:
                    container = ContainerCells(count, items)
                    container.last_index, container.done, container.broken, container.outcome = counts
                    container.last = None if last == _NO_SCOPE else self._scope(last)
                    self._scope(scope).containers[region] = container
                    self._containers.append(container)
            case "inner":
                for number, over, index, scope in rows:
                    container = self._containers[number]
                    (container.retained if over else container.open)[index] = self._scope(scope)
            case "result":
                for number, index, data in rows:
                    self._containers[number].results[index] = data
            case "cell":
                for scope, node, data, brief, ends in rows:
                    if type(brief) is int:
                        brief = data[:brief] + b"}"
                    self._scope(scope).cells[node] = Cell(data, brief, ends)

    def _scope(self, number: int) -> ScopeCells:
        """Scopes are numbered before their rows come."""
        while number >= len(self._scopes):
            self._scopes.append(ScopeCells())
        return self._scopes[number]
