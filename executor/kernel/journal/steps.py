"""The meaning of the events of steps for people: the steps of one node key, and how they ended. A part of `projection`;
the editor's is in `web/src/run/steps.ts`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from executor.kernel.core.events import StepEffect, StepKind
from executor.kernel.values.money import nanos_of, usd_of

Status = Literal["running", "waiting", "succeeded", "failed", "lost", "cancelled"]
TYPES = frozenset({"step.started", "step.finished", "step.lost"})


class StepState(Struct, gc=False):
    """Step `n`, as it was when it last began. `times`: how often it did. lost: nothing is known of its end.

    output_seq  the event that has its output"""

    n: int
    kind: StepKind
    name: str
    input_hash: str
    effect: StepEffect
    attempt: int
    started_seq: int
    started_at_ms: int
    status: Status = "running"
    times: int = 1
    finished_seq: int | None = None
    finished_at_ms: int | None = None
    usage: dict[str, int] = {}
    cost: float | None = None
    prices: str = ""
    error: dict[str, Any] | None = None

    @property
    def output_seq(self) -> int | None:
        return self.finished_seq if self.status == "succeeded" else None


class NodeSteps(Struct):
    """The steps of one node key. `waits_in` are the steps that its open waits are."""

    by_n: dict[int, StepState] = {}
    waits_in: set[int] = set()

    def apply(self, type: str, data: Mapping[str, Any], attempt: int, seq: int, at_ms: int) -> bool:
        """Apply an event of a step. Returns True if it ends its attempt: the handler has left, and the last of its
        waits is over."""
        n = data["n"]
        match type:
            case "step.started":
                before = self.by_n.get(n)
                self.waits_in.discard(n)  # a wait for what became of it is over
                self.by_n[n] = StepState(
                    n, data["kind"], data["name"], data["input_hash"], data["effect"], attempt, seq, at_ms,
                    times=1 if before is None else before.times + 1,
                )  # fmt: skip
            case "step.finished" if (step := self.by_n.get(n)) is not None:
                step.error = data.get("error")
                stopped = step.error is not None and step.error["code"] == "cancelled"
                step.status = "succeeded" if step.error is None else "cancelled" if stopped else "failed"
                step.finished_seq, step.finished_at_ms = seq, at_ms
                step.usage, step.cost = data.get("usage", {}), data.get("cost")
                step.prices = data.get("prices", "")
                return self._wait_over(n)
            case "step.lost" if (step := self.by_n.get(n)) is not None:
                step.status = "lost"
                step.finished_at_ms = at_ms
        return False

    def in_order(self) -> list[StepState]:
        return [self.by_n[n] for n in sorted(self.by_n)]

    def total(self) -> tuple[dict[str, int] | None, float | None, int]:
        """Return usage and cost of all steps, each None if no step has any, and the number of steps with usage whose
        price is not known."""
        usage: dict[str, int] = {}
        for step in self.by_n.values():
            for name, count in step.usage.items():
                usage[name] = usage.get(name, 0) + count
        costs = [nanos_of(step.cost) for step in self.by_n.values() if step.cost is not None]
        unpriced = sum(bool(step.usage) and step.cost is None for step in self.by_n.values())
        return usage or None, usd_of(sum(costs)) if costs else None, unpriced

    def wait_opened(self, n: int) -> None:
        self.waits_in.add(n)
        if n in self.by_n:
            self.by_n[n].status = "waiting"

    def end(self) -> None:
        """End the run: what has no end of its own was cancelled with it."""
        for step in self.by_n.values():
            if step.status in ("running", "waiting"):
                step.status = "cancelled"

    def _wait_over(self, n: int) -> bool:
        if n not in self.waits_in:
            return False
        self.waits_in.remove(n)
        return not self.waits_in
