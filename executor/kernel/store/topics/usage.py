"""Usage and cost of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from msgspec import Struct

from executor.kernel.store.statements import Readers, Row, Tx, those_of

By = Literal["day", "workflow", "model"]
DELETED: Final = ""  # the run of what deleted runs used, and evaluations, which are no runs
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
    key: str | int
    prices: str
    spent: Spent


COUNTS: Final = Spent.__struct_fields__
USAGE_KEY = "run_id, day, workflow, model, prices"
SUMS = ", ".join(f"CAST(sum({name}) AS bigint)" for name in COUNTS)
ADDED = ", ".join(f"{name} = usage.{name} + excluded.{name}" for name in COUNTS)
ADD_USAGE = f"""
INSERT INTO usage ({USAGE_KEY}, {", ".join(COUNTS)})
VALUES (:run_id, :day, :workflow, :model, :prices, {", ".join(f":{name}" for name in COUNTS)})
ON CONFLICT ({USAGE_KEY}) DO UPDATE SET {ADDED}"""
USAGE_OF_RUN = f"""
WITH RECURSIVE below (id) AS (
    SELECT id FROM run_details WHERE id = :run
    UNION
    SELECT r.id FROM below JOIN run_details AS r ON r.parent_run_id = below.id)
SELECT model, prices, {SUMS} FROM below JOIN usage ON run_id = id GROUP BY model, prices ORDER BY model, prices"""
_USAGE_BY = f"SELECT {{by}}, prices, {SUMS} FROM usage WHERE day BETWEEN :first AND :last"
_OF_WORKFLOW = " AND workflow = :workflow"
_GROUPED = " GROUP BY 1, 2 ORDER BY sum(cost_nanos) DESC, sum(input_tokens + output_tokens) DESC, 1, 2 LIMIT :limit"
# Add the usage of deleted runs to that of the runs deleted before it.
FOLD_USAGE = f"""
INSERT INTO usage ({USAGE_KEY}, {", ".join(COUNTS)})
SELECT '{DELETED}', day, workflow, model, prices, {SUMS} FROM usage WHERE run_id IN $texts(:ids)
 GROUP BY day, workflow, model, prices
ON CONFLICT ({USAGE_KEY}) DO UPDATE SET {ADDED}"""


def add_usage(tx: Tx, rows: Sequence[UsageRow]) -> None:
    for row in rows:
        tx.run(ADD_USAGE, {**msgspec.structs.asdict(row), **msgspec.structs.asdict(row.spent)})


async def usage_of(readers: Readers, run_id: str) -> list[UsageSum]:
    return _sums(await readers.all(USAGE_OF_RUN, {"run": run_id}))


async def usage_between(
    readers: Readers, first_day: int, last_day: int, by: By, workflow: str | None = None
) -> list[UsageSum]:
    """Both days are part of it. Of more than GROUPS_MAX sums those that cost most."""
    query = _USAGE_BY.format(by=by) + those_of((_OF_WORKFLOW, workflow)) + _GROUPED
    values = {"first": first_day, "last": last_day, "workflow": workflow, "limit": GROUPS_MAX}
    return _sums(await readers.all(query, values))


def _sums(rows: Sequence[Row]) -> list[UsageSum]:
    return [UsageSum(key, prices, Spent(*counts)) for key, prices, *counts in rows]
