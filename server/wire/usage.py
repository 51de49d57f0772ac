"""The shapes of the usage and cost of steps."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from executor.kernel.store.topics.usage import By
from executor.service.views.usage import SpentView, UsageView

_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
Day = Annotated[str, Meta(pattern=_DAY, description="A day in UTC.")]


class UsageQuery(Struct, frozen=True):
    """Parameters of /api/usage."""

    first: Annotated[
        str | None,
        Meta(description="First day, in UTC. Default: 29 days before `to`.", extra_json_schema={"format": "date"}),
    ] = field(default=None, name="from")
    to: Annotated[
        str | None, Meta(description="Last day, in UTC. Default: today.", extra_json_schema={"format": "date"})
    ] = None
    workflow: Annotated[str | None, Meta(description="Only this workflow.")] = None
    by: Annotated[By, Meta(description="What the sums are of.")] = "day"


class UsagePage(Struct, frozen=True):
    """Usage of steps from one day to another, also in runs that were deleted since. Days without usage are left out; of
    workflows and models only the 1,000 with the highest cost are listed. `prices`: the price lists by which costs are
    computed."""

    first: Day = field(name="from")
    to: Day
    by: By
    workflow: str | None
    currency: str
    prices: list[str]
    total: SpentView
    items: list[SpentView]


def usage_page(first: str, to: str, by: By, workflow: str | None, found: UsageView) -> UsagePage:
    """Return the usage as it is sent."""
    return UsagePage(first, to, by, workflow, found.currency, found.prices, found.total, found.items)
