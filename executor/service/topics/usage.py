"""The usage and cost of steps: `engine.usage`."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Final

from executor.errors import BadRequest
from executor.kernel.store.topics.usage import By
from executor.service.parts import Parts
from executor.service.views.usage import UsageView, day_number, usage_view

DAYS_MAX: Final = 3 * 366  # in one answer
DAYS: Final = 30  # without dates


class Usage:
    def __init__(self, parts: Parts) -> None:
        self._store = parts.store
        self._clock = parts.clock

    async def between(
        self, first: date | None = None, last: date | None = None, *, by: By = "day", workflow: str | None = None
    ) -> tuple[date, date, UsageView]:
        """Sum the usage between two days in UTC, both included; by default the last 30 days. Includes the sums of runs
        deleted since. Raises BadRequest."""
        if last is None:
            last = max(datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC).date(), first or date.min)
        if first is None:
            first = last - timedelta(days=min(DAYS - 1, (last - date.min).days))
        if first > last:
            raise BadRequest(
                f"{first} is after {last}", code="usage_days", hint="from is the first day, to the last one"
            )
        if (last - first).days >= DAYS_MAX:
            raise BadRequest(f"at most {DAYS_MAX} days can be asked for at once", code="usage_days")
        sums = await self._store.usage_between(day_number(first), day_number(last), by, workflow)
        return first, last, usage_view(sums, by_day=by == "day")
