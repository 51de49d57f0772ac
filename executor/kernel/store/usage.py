"""Usage and cost of steps: the rows, and the methods of a store for them. See rules 43 and 44 of the contract."""

from __future__ import annotations

from typing import Final, Literal, Protocol

from msgspec import Struct

By = Literal["day", "workflow", "model"]
DELETED: Final = ""  # the run of what deleted runs used
GROUPS_MAX: Final = 1_000


class Spent(Struct, frozen=True):
    """The usage and cost of some steps. `unpriced` counts those whose price is not known. Tokens of caches are part of
    the input tokens, those of reasoning part of the output tokens."""

    calls: int = 0
    unpriced: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_nanos: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))


class UsageRow(Struct, frozen=True):
    """The usage of steps of a run on a day: `model` is the name of the steps, `prices` the price list."""

    run_id: str
    day: int
    workflow: str
    model: str
    prices: str
    spent: Spent


class UsageSum(Struct, frozen=True):
    """`key`: a day, a workflow or a model."""

    key: str | int
    prices: str
    spent: Spent


class UsageStore(Protocol):
    async def usage_of(self, run_id: str) -> list[UsageSum]:
        """Return the usage of the run and all runs below it, by model."""

    async def usage_between(self, first_day: int, last_day: int, by: By, workflow: str | None = None) -> list[UsageSum]:
        """Both days are part of it. Of more than GROUPS_MAX sums those that cost most."""
