"""The tools that agents call while the visitor of a chat waits: their names, without arguments and results."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from executor.kernel.journal.codec import data_of, key_of
from executor.kernel.journal.steps import NodeSteps, StepState
from executor.kernel.store.run_rows import Record

STEPS: Final = ("step.started", "step.finished", "step.lost")
TOOLS_MAX: Final = 20  # of one message
_UNDER_WAY: Final = ("running", "waiting")
ToolState = Literal["working", "done", "failed"]


class ChatTool(Struct, frozen=True):
    """The calls of one tool for a message."""

    name: str
    calls: int
    state: ToolState


class ToolCalls:
    """The calls of tools by the agents `blocks`. Records are applied in their order; others are passed over. `over`:
    the run has ended, so no call is under way."""

    def __init__(self, blocks: frozenset[str], *, over: bool = False) -> None:
        self._blocks = blocks
        self._over = over
        self._nodes: dict[str | None, NodeSteps] = {}

    def apply(self, record: Record) -> ChatTool | None:
        """Return the tool whose calls have changed."""
        if record.type not in STEPS or record.node not in self._blocks:
            return None
        steps, data = self._nodes.setdefault(key_of(record), NodeSteps()), data_of(record)
        steps.apply(record.type, data, record.attempt, record.seq, record.at_ms)
        step = steps.by_n.get(data["n"])
        return None if step is None or not _is_call(step) else self._tool(step.name)

    def tools(self) -> tuple[ChatTool, ...]:
        names = dict.fromkeys(step.name for step in self._steps() if _is_call(step))
        return tuple(map(self._tool, [*names][:TOOLS_MAX]))

    def _tool(self, name: str) -> ChatTool:
        states = [step.status for step in self._steps() if step.name == name and _is_call(step)]
        working = not self._over and any(state in _UNDER_WAY for state in states)
        return ChatTool(name, len(states), "working" if working else "done" if states[-1] == "succeeded" else "failed")

    def _steps(self) -> list[StepState]:
        return [step for steps in self._nodes.values() for step in steps.in_order()]


def _is_call(step: StepState) -> bool:
    """A tool that is a workflow is waited for, as is the person who approves a call."""
    return step.kind == "tool" or (step.kind == "wait" and not step.name.startswith("approve "))
