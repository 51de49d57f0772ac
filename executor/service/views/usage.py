"""Views of the usage and cost of steps: for a run with all runs below it, and by day, workflow or model."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta

from msgspec import Struct

from executor.kernel.store.topics.usage import Spent, UsageSum
from executor.kernel.values.money import text_of

_EPOCH = date(1970, 1, 1)


class SpentView(Struct, frozen=True):
    """`calls`: steps that used something. Tokens of caches are part of the input tokens, those of reasoning part of the
    output tokens. `cost`: US dollars as decimal text, null if no price is known; `unpriced`: calls that it is without,
    because their price is not known."""

    key: str
    calls: int
    unpriced: int
    input_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost: str | None


class UsageView(Struct, frozen=True):
    """`total` has an empty key, the key of each of `items` is a day, a workflow or a model. `prices`: the price lists
    by which `cost` was computed."""

    total: SpentView
    items: list[SpentView]
    prices: list[str]
    currency: str = "USD"


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
    """Format a day as `2026-11-23`."""
    return (_EPOCH + timedelta(days=day)).isoformat()


def day_number(day: date) -> int:
    """Counted from 1970."""
    return (day - _EPOCH).days


def _view(key: str, spent: Spent) -> SpentView:
    cost = None if spent.calls == spent.unpriced and spent.calls else text_of(spent.cost_nanos)
    return SpentView(
        key,
        spent.calls,
        spent.unpriced,
        spent.input_tokens,
        spent.cached_tokens,
        spent.cache_write_tokens,
        spent.output_tokens,
        spent.reasoning_tokens,
        cost,
    )
