"""The durable steps of a node key after the events so far: a part of the projection (`projection.py`). The editor has
the same in `web/src/run/steps.ts`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from executor.kernel.core.events import StepEffect, StepKind, WaitKind
from executor.kernel.values.money import nanos_of, usd_of

StepStatus = Literal["running", "retrying", "waiting", "succeeded", "failed", "lost", "cancelled"]
OF_STEPS = frozenset({"step.started", "step.retrying", "step.finished", "step.lost"})


class StepWait(Struct, gc=False, omit_defaults=True):
    """The wait that a step is, or by which a person is asked whether a lost one was done. `id`: only while it is
    open."""

    kind: WaitKind
    id: str | None = None
    title: str = ""
    due_ms: int | None = None
    child: str | None = None


class StepState(Struct, gc=False):
    """Step `n`, as it was when it last began, for the `times`th time. lost: nothing is known of its end. retrying: it
    failed with `error`, and begins again at `due_ms`. `line`, `task`, `above`, `group` and `shown` are those of
    `step.started`."""

    n: int
    kind: StepKind
    name: str
    input_hash: str
    effect: StepEffect
    attempt: int
    started_seq: int
    started_at_ms: int
    status: StepStatus = "running"
    times: int = 1
    finished_seq: int | None = None
    finished_at_ms: int | None = None
    usage: dict[str, int] = {}
    cost: float | None = None
    prices: str = ""
    error: dict[str, Any] | None = None
    from_run: str | None = None
    line: int = 0
    task: int = 0
    above: int = 0
    group: str = ""
    shown: Any = None
    wait: StepWait | None = None
    due_ms: int | None = None

    @property
    def output_seq(self) -> int | None:
        return self.finished_seq if self.status == "succeeded" else None


class NodeSteps(Struct):
    """The steps of one node key. `waits_in` are the steps that its open waits are, with the numbers of the waits."""

    by_n: dict[int, StepState] = {}
    waits_in: dict[int, int] = {}

    def apply(self, type: str, data: Mapping[str, Any], attempt: int, seq: int, at_ms: int) -> bool:
        """Apply an event. Returns True if it ends the attempt: the handler has left, and the last of its waits is
        over."""
        n = data["n"]
        match type:
            case "step.started":
                before = self.by_n.get(n)
                self.waits_in.pop(n, None)  # a wait for what became of it is over
                self.by_n[n] = StepState(
                    n, data["kind"], data["name"], data["input_hash"], data["effect"], attempt, seq, at_ms,
                    times=1 if before is None else before.times + 1, line=data.get("line", 0), task=data.get("task", 0),
                    above=data.get("above", 0), group=data.get("group", ""), shown=data.get("shown"),
                )  # fmt: skip
            case "step.retrying" if (step := self.by_n.get(n)) is not None:
                step.status, step.error, step.due_ms = "retrying", data["error"], data["due_ms"]
            case "step.finished" if (step := self.by_n.get(n)) is not None:
                step.error, step.due_ms = data.get("error"), None
                stopped = step.error is not None and step.error["code"] == "cancelled"
                step.status = "succeeded" if step.error is None else "cancelled" if stopped else "failed"
                step.finished_seq, step.finished_at_ms = seq, at_ms
                step.usage, step.cost = data.get("usage", {}), data.get("cost")
                step.prices, step.from_run = data.get("prices", ""), data.get("from_run")
                _close(step)
                return self._wait_over(n)
            case "step.lost" if (step := self.by_n.get(n)) is not None:
                step.status = "lost"
                if data["again"]:  # else a person decides its end
                    step.finished_at_ms = at_ms
        return False

    def in_order(self) -> list[StepState]:
        return [self.by_n[n] for n in sorted(self.by_n)]

    def total(self, taken: bool = False) -> tuple[dict[str, int] | None, float | None, int]:
        """Return usage, cost, and the number of steps without a price: of the steps made here, or of those `taken` over
        from another run, which has paid for them."""
        steps = [step for step in self.by_n.values() if (step.from_run is not None) == taken]
        usage: dict[str, int] = {}
        for step in steps:
            for name, count in step.usage.items():
                usage[name] = usage.get(name, 0) + count
        costs = [nanos_of(step.cost) for step in steps if step.cost is not None]
        unpriced = sum(bool(step.usage) and step.cost is None for step in steps)
        return usage or None, usd_of(sum(costs)) if costs else None, unpriced

    def wait_opened(self, n: int, number: int, data: Mapping[str, Any]) -> None:
        self.waits_in[n] = number
        if (step := self.by_n.get(n)) is not None:
            step.status = "waiting"
            title, due_ms, child = data.get("title", ""), data.get("due_ms"), data.get("child")
            step.wait = StepWait(data["kind"], data.get("wait"), title, due_ms, child)

    def wait_dropped(self, number: int, at_ms: int) -> None:
        for n in [n for n, other in self.waits_in.items() if other == number]:
            del self.waits_in[n]
            if (step := self.by_n.get(n)) is not None:
                step.status, step.finished_at_ms = "cancelled", at_ms
                _close(step)

    def end(self) -> None:
        for step in self.by_n.values():
            if step.status in ("running", "waiting", "retrying"):
                step.status, step.due_ms = "cancelled", None
                _close(step)

    def _wait_over(self, n: int) -> bool:
        if n not in self.waits_in:
            return False
        del self.waits_in[n]
        return not self.waits_in


def _close(step: StepState) -> None:
    if step.wait is not None:
        step.wait.id = None
