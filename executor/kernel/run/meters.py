"""Counts of what this process has done, plain numbers which `server/metrics` reads, and the usage rows of steps.

Names of workflows, blocks and models are the only texts here; what workflows work with is never a label. Of names
that people make up, such as those of workflows, the first NAMES_MAX have numbers of their own.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final, Generic, TypeVar

from executor.kernel.core import facts as f
from executor.kernel.core.events import StepFinished
from executor.kernel.handler.base import Stepped
from executor.kernel.process.observe import Histogram
from executor.kernel.run.results import Result
from executor.kernel.store.run_rows import Append, RunRow
from executor.kernel.store.topics.usage import Spent, UsageRow
from executor.kernel.values.money import nanos_of

NAMES_MAX: Final = 200
OTHERS: Final = "(others)"  # no workflow and no block can have this name
SECONDS: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
RUN_SECONDS: Final = (0.01, 0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, 43_200.0, 259_200.0, 2_592_000.0)

now_s = time.perf_counter
K = TypeVar("K")


class Names:
    """The first NAMES_MAX names, and OTHERS for those after them."""

    def __init__(self, most: int = NAMES_MAX) -> None:
        self._known: set[str] = set()
        self._most = most

    def of(self, name: str) -> str:
        if name in self._known:
            return name
        if len(self._known) >= self._most:
            return OTHERS
        self._known.add(name)
        return name


class Counts(Generic[K]):
    __slots__ = ("by",)

    def __init__(self) -> None:
        self.by: dict[K, float] = {}

    def add(self, key: K, count: float = 1) -> None:
        self.by[key] = self.by.get(key, 0) + count


class Times(Generic[K]):
    __slots__ = ("_bounds", "by")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.by: dict[K, Histogram] = {}

    def observe(self, label: K, seconds: float) -> None:
        histogram = self.by.get(label)
        if histogram is None:
            histogram = self.by[label] = Histogram(self._bounds)
        histogram.observe(seconds)


_OUTCOMES: Final[Mapping[type, str]] = {
    f.NodeErred: "failed",
    f.NodeSuspended: "waiting",
    f.HandlerLeft: "waiting",
    f.AttemptLost: "lost",
}


def outcome_of(result: Result) -> str:
    """Return the outcome of an attempt, as it left its handler."""
    fact = result.fact
    if type(fact) is f.NodeErred and fact.error.code == "cancelled":
        return "cancelled"
    return _OUTCOMES.get(type(fact), "succeeded")


class RunMeters:
    """On the thread of the event loop.

    started, ended   runs, by workflow, and by workflow and status
    queued_seconds   of runs, from their creation to their begin, by workflow
    seconds          of runs, from their creation to their end, by workflow and status
    attempts         by block type and outcome; `attempt_seconds` that handlers took, by block type
    steps            inside blocks, by kind and outcome; `step_seconds` by kind
    tokens, cost     of models, by model and kind of token; in US dollars by model
    leases_lost      runs that another process took over
    """

    def __init__(self) -> None:
        self.started: Counts[str] = Counts()
        self.ended: Counts[tuple[str, str]] = Counts()
        self.queued_seconds: Times[str] = Times(RUN_SECONDS)
        self.seconds: Times[tuple[str, str]] = Times(RUN_SECONDS)
        self.attempts: Counts[tuple[str, str]] = Counts()
        self.attempt_seconds: Times[str] = Times(SECONDS)
        self.steps: Counts[tuple[str, str]] = Counts()
        self.step_seconds: Times[str] = Times(SECONDS)
        self.tokens: Counts[tuple[str, str]] = Counts()
        self.cost: Counts[str] = Counts()
        self.leases_lost = 0
        self._workflows = Names()
        self._models = Names()

    def run_started(self, workflow: str, queued_ms: int) -> None:
        name = self._workflows.of(workflow)
        self.started.add(name)
        self.queued_seconds.observe(name, max(0, queued_ms) / 1000)

    def committed(self, row: RunRow, append: Append) -> None:
        """Count the end of a run and the usage of steps, which only few appends have."""
        if append.finished and append.status is not None:
            label = (self._workflows.of(row.workflow), append.status)
            self.ended.add(label)
            self.seconds.observe(label, max(0, append.now_ms - row.created_at_ms) / 1000)
        for used in append.usage:
            self._used(used)

    def attempt_ended(self, type: str, outcome: str, seconds: float) -> None:
        self.attempts.add((type, outcome))
        self.attempt_seconds.observe(type, seconds)

    def step_ended(self, kind: str, outcome: str, seconds: float) -> None:
        self.steps.add((kind, outcome))
        self.step_seconds.observe(kind, seconds)

    def _used(self, row: UsageRow) -> None:
        model, spent = self._models.of(row.model), row.spent
        for kind in ("input", "cached", "cache_write", "output", "reasoning"):
            count = getattr(spent, f"{kind}_tokens")
            if count:
                self.tokens.add((model, kind), count)
        if spent.cost_nanos:
            self.cost.add(model, spent.cost_nanos / 1e9)


DAY_MS: Final = 86_400_000
# Counts that have a column; a step may have others, which its event has alone.
_TOKENS: Final = ("input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")
_TOKENS_MAX: Final = 10**12  # of one step: sums of many stay whole numbers in JSON


def usage_row(run: str, workflow: str, name: str, event: StepFinished | Stepped, at_ms: int) -> UsageRow:
    """`name`: of the step, which for a call of a model is the model."""
    counts = {count: min(max(event.usage.get(count, 0), 0), _TOKENS_MAX) for count in _TOKENS}
    cost = 0 if event.cost is None else nanos_of(event.cost)
    spent = Spent(calls=1, unpriced=int(event.cost is None), cost_nanos=cost, **counts)
    return UsageRow(run, at_ms // DAY_MS, workflow, name, "" if event.cost is None else event.prices, spent)
