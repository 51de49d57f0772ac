"""Applies the events of a run to its values. `core/evolve` is the same for the state, which has no payloads.

Used when events are made and when they are read back, so both give the same values.
"""

from __future__ import annotations

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
from executor.kernel.core.evolve import cleanup_of
from executor.kernel.values.payload import trimmed
from executor.kernel.values.scope import Values

NULL = b"null"


class Fold:
    """`values` after the events so far; `bytes`: of all their outputs. `branch_errors`: what branches that are given up
    failed of; `ran`: those of the ends of the root that did."""

    __slots__ = ("_ends", "_plan", "branch_errors", "bytes", "ran", "values")

    def __init__(self, plan: Plan, values: Values) -> None:
        self.values = values
        self.bytes = 0
        self._plan = plan
        self._ends = plan.root_ends
        self.branch_errors: dict[Path, dict[str, Any]] = {}
        self.ran: set[int] = set()

    def apply(self, event: Event, output: bytes | None = None) -> bytes | None:
        """The next event, with its output as JSON. Returns the output that the event has then: the results of a
        container that exits are made here when `output` is None. Raises BlockError: a patch of the variables does not
        fit; nothing has changed."""
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
