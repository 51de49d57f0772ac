from __future__ import annotations

from decimal import Decimal

import pytest

from executor.kernel.values.money import USD_MAX, nanos_of, text_of, usd_of


def test_sums_are_exact() -> None:
    assert 0.1 + 0.2 != 0.3
    assert usd_of(nanos_of(0.1) + nanos_of(0.2)) == 0.3
    assert usd_of(sum(nanos_of(0.000_000_7) for _ in range(1_000_000))) == 0.7


@pytest.mark.parametrize("nanos", [0, 1, 12, 999_999_999, 10**9 + 1, USD_MAX * 10**9 - 1])
def test_an_amount_is_the_same_after_its_way_through_dollars(nanos: int) -> None:
    assert nanos_of(usd_of(nanos)) == nanos_of(Decimal(text_of(nanos))) == nanos


def test_texts() -> None:
    assert [text_of(n) for n in (0, 1, 10_500_000, 2 * 10**9, 12_340_000_000)] == [
        "0.00",
        "0.000000001",
        "0.0105",
        "2.00",
        "12.34",
    ]


@pytest.mark.parametrize("usd", [float("nan"), float("inf"), Decimal("-Infinity")])
def test_what_is_no_amount(usd: float | Decimal) -> None:
    with pytest.raises(ValueError, match="no amount"):
        nanos_of(usd)
