"""Usage and cost of steps, by day, workflow or model; and the numbers of runs by time."""

from __future__ import annotations

from datetime import date
from typing import Annotated, get_args

from msgspec import Meta, Struct, field

from executor.blocks.llm.client import Offer
from executor.errors import BadRequest
from executor.kernel.store.statements import RunStatus
from executor.kernel.store.topics.usage import By
from executor.service.views import SpentView, UsageView
from server.api.runs import Since, Until
from server.http.response import capped
from server.http.table import Call, Routes, RouteSpec

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
    """Usage of steps from one day to another, also in runs that were deleted since, and of evaluations. Days without
    usage are left out; of workflows and models only the 1,000 with the highest cost are listed. `prices`: the price
    lists by which costs are computed."""

    first: Day = field(name="from")
    to: Day
    by: By
    workflow: str | None
    currency: str
    prices: list[str]
    total: SpentView
    items: list[SpentView]


class Models(Struct, frozen=True):
    """The endpoints of language models that blocks can ask, those that can be asked at once first. Models whose prices
    are not known are not listed; they can be named all the same."""

    endpoints: list[Offer]


def usage_page(first: str, to: str, by: By, workflow: str | None, found: UsageView) -> UsagePage:
    return UsagePage(first, to, by, workflow, found.currency, found.prices, found.total, found.items)


class RunTimes(Struct, frozen=True):
    """Counts by status for each part of a time. Part n begins at `since_ms` + n * `width_ms`. `capped`: see RunPage."""

    since_ms: int
    width_ms: int
    counts: dict[RunStatus, list[int]]
    capped: list[RunStatus]


class RunTimesQuery(Struct, frozen=True):
    since: Since
    until: Until
    parts: Annotated[int, Meta(ge=1, le=500, description="Parts of that time.")] = 1
    workflow: Annotated[str | None, Meta(description="Only runs of this workflow.")] = None


route = Routes("usage", RouteSpec)


@route("GET", "/api/usage", "Tokens and costs", needs="viewer")
async def show(call: Call, query: UsageQuery) -> UsagePage:
    """Tokens and costs of the days from `from` to `to`, without `from` of the last 30. What deleted runs and
    evaluations used is part of it."""
    asked = _day("from", query.first), _day("to", query.to)
    first, last, found = await call.engine.usage.between(*asked, by=query.by, workflow=query.workflow)
    return usage_page(first.isoformat(), last.isoformat(), query.by, query.workflow, found)


@route("GET", "/api/models", "List language models", needs="editor")
async def models(call: Call) -> Models:
    """The endpoints of this server, and their models with known prices in US dollars for a million tokens."""
    return Models(await call.engine.usage.models())


def _day(name: str, text: str | None) -> date | None:
    if text is None:
        return None
    try:
        if len(text) != 10:
            raise ValueError
        return date.fromisoformat(text)
    except ValueError:
        raise BadRequest(f"{name} must be a day such as 2026-11-01, not {text!r}.") from None


@route("GET", "/api/run-times", "Runs by time and status", tag="runs", needs="viewer")
async def run_times(call: Call, query: RunTimesQuery) -> RunTimes:
    """Counts for a histogram: the time from `since` to `until` in equal parts."""
    if query.until <= query.since:
        raise BadRequest("until must be after since", code="run_times", hint="both are Unix times in milliseconds")
    width = -(-(query.until - query.since) // query.parts)
    counts: dict[RunStatus, list[int]] = {status: [0] * query.parts for status in get_args(RunStatus)}
    for each in await call.engine.store.count_by_time(query.since, query.until, width, query.workflow):
        counts[each[0]][each[1]] += each[2]
    return RunTimes(query.since, width, counts, capped({status: sum(each) for status, each in counts.items()}))
