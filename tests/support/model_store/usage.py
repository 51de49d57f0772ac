"""What steps used and cost in the model store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from executor.kernel.store.topics.usage import DELETED, GROUPS_MAX, By, Spent, UsageRow, UsageSum

if TYPE_CHECKING:
    from tests.support.model_store.store import _Run


class ModelUsage:
    """What ModelStore knows of it."""

    _runs: dict[str, _Run]

    def __init__(self) -> None:
        super().__init__()
        self._usage: list[UsageRow] = []

    def _add_usage(self, rows: Sequence[UsageRow]) -> None:
        self._usage += rows

    async def add_usage(self, rows: Sequence[UsageRow]) -> None:
        self._add_usage(rows)

    def _fold_usage(self, run_id: str) -> None:
        self._usage = [replace(row, run_id=DELETED) if row.run_id == run_id else row for row in self._usage]

    async def usage_of(self, run_id: str) -> list[UsageSum]:
        below = {run_id} & self._runs.keys()
        while more := {id for id, run in self._runs.items() if run.row.parent_run_id in below} - below:
            below |= more
        sums = _sums((row.model, row.prices, row.spent) for row in self._usage if row.run_id in below)
        return sorted(sums, key=lambda each: (each.key, each.prices))

    async def usage_between(self, first_day: int, last_day: int, by: By, workflow: str | None = None) -> list[UsageSum]:
        sums = _sums(
            (getattr(row, by), row.prices, row.spent)
            for row in self._usage
            if first_day <= row.day <= last_day and workflow in (None, row.workflow)
        )
        return sorted(sums, key=_costliest)[:GROUPS_MAX]


def _costliest(each: UsageSum) -> tuple[int, int, str | int, str]:
    spent = each.spent
    return -spent.cost_nanos, -spent.input_tokens - spent.output_tokens, each.key, each.prices


def _sums(rows: Iterable[tuple[str | int, str, Spent]]) -> list[UsageSum]:
    found: dict[tuple[str | int, str], Spent] = {}
    for key, prices, spent in rows:
        found[key, prices] = found.get((key, prices), Spent()) + spent
    return [UsageSum(key, prices, spent) for (key, prices), spent in found.items()]
