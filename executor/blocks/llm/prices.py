"""The cost of a call: by the prices that the operator set for its endpoint, or else by the table of the installed
library `genai-prices`. Nothing is fetched: the table is as old as that version, and each cost names the version. A
model in neither has no price, which is not a price of 0.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from importlib.metadata import version
from typing import Any

from genai_prices import Usage as TheirUsage
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import StartDateConstraint

from executor.blocks.llm.base import Cost, Usage
from executor.blocks.llm.endpoints import Endpoint
from executor.kernel.values.money import nanos_of, usd_of


def cost_of(usage: Usage, endpoint: Endpoint, *names: str) -> Cost | None:
    """Return the cost, or None if no price is known. `names`: the names of the model, the most exact first."""
    for name in names:
        if (own := endpoint.cost_of(usage, name)) is not None:
            return own
    for name in names:
        if (usd := _by_table(usage, endpoint, name)) is not None:
            return Cost(usd_of(nanos_of(usd)), table())
    return None


@cache
def table() -> str:
    """Return name, version and date of the table. It has no date of its own: this is the day on which its newest valid
    price began."""
    days = [day for day in _start_dates() if day <= date.today()]
    dated = f" ({max(days).isoformat()})" if days else ""
    return f"genai-prices {version('genai-prices')}{dated}"


def _by_table(usage: Usage, endpoint: Endpoint, name: str) -> Decimal | None:
    counted = TheirUsage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
    )
    known = endpoint.name in ("openai", "anthropic")
    provider, url = (endpoint.name, None) if known else (None, endpoint.url)
    try:
        found = get_snapshot().calc(counted, name, provider, url, None)
        if not found.model_price.__dict__:  # a model that is listed without any price
            return None
    except (LookupError, ValueError):  # not listed; counts that cannot be, such as more cached tokens than input tokens
        return None
    return found.total_price


def _start_dates() -> list[date]:
    found: list[date] = []
    for provider in get_snapshot().providers:
        for model in provider.models:
            prices = model.prices if isinstance(model.prices, list) else []
            for price in prices:
                if isinstance(price.constraint, StartDateConstraint):
                    found.append(price.constraint.start_date)
    return found


def listed(endpoint: Endpoint) -> list[tuple[str, Decimal, Decimal]]:
    """Return the models of an endpoint whose prices are known: name, US dollars for a million tokens of input and of
    output. First those of the operator, then those of the table."""
    own = [(name, price.input, price.output) for name, price in endpoint.prices.items() if name]
    found: list[tuple[str, Decimal, Decimal]] = []
    for provider in get_snapshot().providers:
        if provider.id != endpoint.name or endpoint.name not in ("openai", "anthropic"):
            continue
        for model in provider.models:
            prices = model.get_prices(datetime.now(UTC))
            amounts: list[Any] = [getattr(part, "base", part) for part in (prices.input_mtok, prices.output_mtok)]
            if all(amounts) and model.id not in endpoint.prices and not str(model.description).startswith("Retired"):
                found.append((model.id, amounts[0], amounts[1]))
    return [*own, *reversed(found)]  # the table is sorted by name: newer ones come last
