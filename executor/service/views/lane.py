"""Lane: the calls of a durable function, in the order in which its code made them.

The editor makes the same of the events that it receives (`web/src/run/lane.ts`); both are tested against
`tests/vectors/lanes.json`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import orjson
from msgspec import Struct
from msgspec.structs import astuple

from compiler.plan import Node, Plan
from executor.errors import NotFound
from executor.kernel.journal.projection import Entry, NodeState
from executor.kernel.journal.reader import Records
from executor.kernel.journal.steps import StepState
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.statements import TERMINAL
from executor.kernel.store.topics.store import Store
from executor.service.views import StepView
from executor.service.views.run import Slices

ITEMS_MAX: Final = 1_000
TYPE: Final = "durable"
OPEN: Final = frozenset({"running", "retrying", "waiting", "lost"})  # statuses of calls that have not ended


class LaneItem(StepView, omit_defaults=True):
    """A call of a durable function. `phase`: the block that made it: `body`, or `undo` after a cancel."""

    phase: str = "body"


class LaneTask(Struct, frozen=True):
    """A task of the function, which the task `above` began: its calls are between these events. `until_seq` is null as
    long as one of them is open."""

    task: int
    above: int
    from_seq: int
    until_seq: int | None


class Lane(Struct, frozen=True):
    """The calls that a durable function has made up to event `seq`. `code`: the hash of its code. `left_off`: how many
    calls began before these; the event at which the first of these began is the `before` of the page with them."""

    run: str
    seq: int
    function: str
    code: str | None
    tasks: tuple[LaneTask, ...]
    items: tuple[LaneItem, ...]
    left_off: int


def function_of(node: Node) -> str | None:
    """Return the durable function that a block is, without its module; None for other blocks."""
    if node.type != TYPE:
        return None
    name: str = orjson.loads(bytes(node.params)).get("function", "")
    return name.rpartition(".")[2] or None


async def build(store: Store, plan: Plan, row: RunRow, after: int, before: int | None) -> Lane:
    """Return the newest calls that events after `after` are about and that began before event `before`. Raises
    NotFound: no_lane."""
    nodes = [node for node in plan.nodes if node.type == TYPE]
    if not nodes:
        raise NotFound(f"run {row.id} is not that of a durable function", code="no_lane")
    slices, fold = Slices(), LaneFold()
    for node in nodes:
        async for record in Records(store, row.id, node=node.id, upto=row.seq):
            fold.apply(Entry.of(record), after)
            if slices.is_over:
                await slices.rest()
    if row.status in TERMINAL:
        fold.end()
    found = fold.items(before)
    params: dict[str, Any] = orjson.loads(bytes(nodes[0].params))
    items = found[-ITEMS_MAX:]
    items.sort(key=fold.place)
    return Lane(
        row.id, row.seq, params.get("function", ""), params.get("code"), tasks_of(items), tuple(items),
        len(found) - len(items),
    )  # fmt: skip


class LaneFold:
    """The blocks of a durable function after the events so far."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeState] = {}
        self._touched: set[tuple[str, int]] = set()

    def apply(self, entry: Entry, after: int = 0) -> None:
        assert entry.node is not None
        state = self._nodes.setdefault(entry.node, NodeState(entry.node, entry.path))
        n = _step_of(entry, state)
        state.apply(entry)
        if n is not None and entry.seq > after:
            self._touched.add((entry.node, n))

    def end(self) -> None:
        for state in self._nodes.values():
            open = () if state.steps is None else state.steps.in_order()
            self._touched |= {(state.node, step.n) for step in open if step.status in OPEN}
            state.end()

    def items(self, before: int | None = None) -> list[LaneItem]:
        """Return those that began before event `before`, the newest last."""
        found = [
            LaneItem(*(*astuple(step), state.node))
            for state in self._nodes.values()
            for step in (() if state.steps is None else state.steps.in_order())
            if (state.node, step.n) in self._touched and (before is None or step.started_seq < before)
        ]
        return sorted(found, key=lambda item: item.started_seq)

    def place(self, item: LaneItem) -> tuple[int, int]:
        """Return what items are ordered by: their block, and the number of the call."""
        return list(self._nodes).index(item.phase), item.n


def _step_of(entry: Entry, state: NodeState) -> int | None:
    """Return the number of the step that an event is about."""
    n: int | None = entry.data.get("step" if entry.type == "wait.opened" else "n")
    if entry.type == "wait.closed" and state.steps is not None:
        return next((n for n, number in state.steps.waits_in.items() if number == entry.attempt), None)
    return n if entry.type.startswith(("step.", "wait.")) else None


def tasks_of(items: Iterable[StepState]) -> tuple[LaneTask, ...]:
    by_task: dict[int, list[StepState]] = {}
    for item in items:
        by_task.setdefault(item.task, []).append(item)
    return tuple(
        LaneTask(
            task,
            calls[0].above,
            min(call.started_seq for call in calls),
            None if any(call.status in OPEN for call in calls) else max(map(_last_seq, calls)),
        )
        for task, calls in sorted(by_task.items())
    )


def _last_seq(step: StepState) -> int:
    return step.finished_seq or step.started_seq
