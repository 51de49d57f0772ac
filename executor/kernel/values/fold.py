"""Applies the events of a run to its values. `core/evolve` is the same for the state, which has no payloads.

Used when events are made and when they are read back, so both give the same values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import orjson

from compiler.keys import NodeKey, Path
from compiler.plan import Plan
from executor.kernel.core.events import (
    CleanupOpened,
    Event,
    NodeFailed,
    NodeSkipped,
    NodeStarted,
    NodeSucceeded,
    RegionExited,
    RegionSized,
    RunFinished,
    ScopesOpened,
    VariablesPatched,
)
from executor.kernel.core.evolve_containers import cleanup_of
from executor.kernel.values.payload import trimmed
from executor.kernel.values.scope import Cell, ContainerCells, ScopeCells, Values

NULL = b"null"


class Fold:
    """`values` after the events so far; `bytes`: of all their outputs. `branch_errors` of branches that are given up;
    `ran`: the ends of the root that did."""

    __slots__ = ("_ends", "_plan", "branch_errors", "bytes", "ran", "values")

    def __init__(self, plan: Plan, values: Values) -> None:
        self.values = values
        self.bytes = 0
        self._plan = plan
        self._ends = plan.root_ends
        self.branch_errors: dict[Path, dict[str, Any]] = {}
        self.ran: set[int] = set()

    def apply(self, event: Event, output: bytes | None = None) -> bytes | None:
        """Apply an event. Returns its output, which is made here for a container that exits. Raises BlockError: a patch
        of the variables does not fit; nothing has changed."""
        kind = type(event)
        if kind is NodeStarted:  # every second event: without payload
            return None
        if kind is NodeSucceeded:  # nearly all of the others
            key: NodeKey = event.key  # type: ignore[union-attr]  # `kind` is its type
            route: str | None = event.route  # type: ignore[union-attr]
            self.values.succeeded(key, output or NULL, route)
            self._add_ran(key, route)
            if output is not None:
                self.bytes += len(output)
            return output
        made = self._apply(event, output)
        if made is None:
            made = output
        if made is not None and kind is not RunFinished:  # the output of a run is made of those of its blocks
            self.bytes += len(made)
        return made

    def run_output(self) -> bytes:
        """Return the output of a run that ends without a response block."""
        return trimmed(orjson.dumps(self.values.run_output(self.ran)))

    def _apply(self, event: Event, output: bytes | None) -> bytes | None:
        values = self.values
        match event:
            case NodeSkipped() if event.reason != "pruned":
                values.passed(event.key)
            case NodeFailed():
                self._failed(event)
            case VariablesPatched():
                values.patch(event.ops)
            case RegionSized():
                values.sized(event.key, event.count, output)
            case ScopesOpened() if event.first > 0:
                path, start = event.key
                body = self._plan.nodes[start].body
                if self._plan.regions[body].kind == "loop":
                    values.scope_closed((*path, (body, event.first - 1)))
            case CleanupOpened():
                outcome = "cancelled" if event.given_up else "succeeded" if event.error is None else "failed"
                values.cleanup_opened(event.key, cleanup_of(self._plan, event.key[1]), outcome)
            case RegionExited():
                self._add_ran(event.key, "out")
                return self._exited(event, output)
        return None

    def _failed(self, event: NodeFailed) -> None:
        error = msgspec.to_builtins(event.error)
        error.pop("traceback", None)  # a workflow may send its values to anyone
        if event.route == "error":
            self.values.failed(event.key, error)
        elif event.route is not None:
            self.values.passed(event.key)
            self._add_ran(event.key, event.route)
        elif event.caught is not None and event.caught[0] == "branch":
            self.branch_errors.setdefault(event.caught[1], error)

    def _exited(self, event: RegionExited, output: bytes | None) -> bytes:
        path, end = event.key
        body = self._plan.nodes[end].body
        if self._plan.regions[body].kind == "loop":
            if event.count and not event.reused:
                self.values.scope_closed((*path, (body, event.count - 1)))
        else:
            for index in range(event.count):
                scope = (*path, (body, index))
                self.values.scope_closed(scope, self.branch_errors.pop(scope, None))
        if output is not None:
            self.values.exited(event.key, output)
            return output
        return self.values.exit(event.key)

    def _add_ran(self, key: NodeKey, route: str | None) -> None:
        if not key[0] and key[1] in self._ends and self.values.ends(key[1], route):
            self.ran.add(key[1])


# --- the values as rows that can be stored ---
# Scopes and containers have numbers, in the order in which a walk from the root finds them, so that rows are flat: a
# caller can stop between any two. A container is read in one piece; what is in its scopes changes by events only.

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
    """Return the brief of a cell: None if it is the data, a number if it is so many bytes of the data and a brace, as
    in the output of a loop, else its bytes."""
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
        while number >= len(self._scopes):
            self._scopes.append(ScopeCells())
        return self._scopes[number]
