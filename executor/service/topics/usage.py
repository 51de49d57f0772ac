"""The usage and cost of steps (`engine.usage`), and the work that is in the database now (`engine.load`)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Final

from executor.blocks.llm.client import Offer
from executor.errors import BadRequest
from executor.kernel.store.topics.load import DatabaseLoad
from executor.kernel.store.topics.usage import By, Spent, UsageSum
from executor.kernel.values.money import text_of
from executor.service.parts import Parts, Topic
from executor.service.views import SpentView, UsageView, view_of

DAYS_MAX: Final = 3 * 366  # in one answer
KEPT_S: Final = 5.0  # of a load
_EPOCH: Final = date(1970, 1, 1)
DAYS: Final = 30  # without dates


class Usage(Topic):
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

    async def models(self) -> list[Offer]:
        """List the endpoints of models, and the models whose prices are known."""
        return await asyncio.to_thread(self._parts.services.models.offered)


class Load(Topic):
    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._reading = asyncio.Lock()
        self._last: DatabaseLoad | None = None
        self._read_at_s = 0.0

    async def now(self, kept_s: float = KEPT_S) -> DatabaseLoad:
        """Return the load, up to `kept_s` old: concurrent callers share one query. Raises StoreError."""
        async with self._reading:
            if self._last is None or time.monotonic() >= self._read_at_s + kept_s:
                self._last = await self._store.load()
                self._read_at_s = time.monotonic()
            return self._last


def usage_view(sums: Iterable[UsageSum], *, by_day: bool = False) -> UsageView:
    """Add up the sums of each key: days in their order, others by descending cost."""
    by_key: dict[str | int, Spent] = {}
    prices = set()
    for each in sums:
        by_key[each.key] = by_key.get(each.key, Spent()) + each.spent
        prices |= {each.prices} - {""}
    ordered = sorted(by_key.items()) if by_day else by_key.items()
    items = [_view(day_text(key) if isinstance(key, int) else key, spent) for key, spent in ordered]
    return UsageView(_view("", sum(by_key.values(), Spent())), items, sorted(prices))


def day_text(day: int) -> str:
    return (_EPOCH + timedelta(days=day)).isoformat()


def day_number(day: date) -> int:
    """Counted from 1970."""
    return (day - _EPOCH).days


def _view(key: str, spent: Spent) -> SpentView:
    cost = None if spent.calls == spent.unpriced and spent.calls else text_of(spent.cost_nanos)
    return view_of(SpentView, spent, key=key, cost=cost)
