"""Usage and cost of a step, for the row that is written in the append of its end."""

from __future__ import annotations

from typing import Final

from executor.kernel.core.events import StepFinished
from executor.kernel.store.topics.usage import Spent, UsageRow
from executor.kernel.values.money import nanos_of

DAY_MS: Final = 86_400_000
# Counts that have a column; a step may have others, which its event has alone.
_TOKENS: Final = ("input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")
_TOKENS_MAX: Final = 10**12  # of one step: sums of many stay whole numbers in JSON


def usage_row(run: str, workflow: str, name: str, event: StepFinished, at_ms: int) -> UsageRow:
    """`name`: of the step, which for a call of a model is the model."""
    counts = {count: min(max(event.usage.get(count, 0), 0), _TOKENS_MAX) for count in _TOKENS}
    cost = 0 if event.cost is None else nanos_of(event.cost)
    spent = Spent(calls=1, unpriced=int(event.cost is None), cost_nanos=cost, **counts)
    return UsageRow(run, at_ms // DAY_MS, workflow, name, "" if event.cost is None else event.prices, spent)
