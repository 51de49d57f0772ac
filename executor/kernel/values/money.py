"""Amounts of money: whole billionths of a US dollar. Some calls cost less than a millionth of a dollar, and sums of
floats are not exact, so amounts are added and compared as these integers. Events and answers have dollars."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Final

NANOS: Final = 1_000_000_000  # in a dollar
USD_MAX: Final = 100_000  # of one step: sums of many stay exact in JSON, SQLite and PostgreSQL


def nanos_of(usd: float | Decimal) -> int:
    """Return the nearest amount in nanos. Raises ValueError for what is not finite."""
    exact = usd if isinstance(usd, Decimal) else Decimal(repr(usd))
    if not exact.is_finite():
        raise ValueError(f"{usd} is no amount of money")
    return int((exact * NANOS).to_integral_value(ROUND_HALF_UP))


def usd_of(nanos: int) -> float:
    """Return the amount in dollars; `nanos_of` finds the same amount again."""
    return nanos / NANOS


def text_of(nanos: int) -> str:
    """Return the amount in dollars, as decimal text without an exponent: `0.0105`."""
    text = f"{nanos // NANOS}.{nanos % NANOS:09d}".rstrip("0")
    return text + "00" if text.endswith(".") else text
