"""Back-off: bounds, growth, and jitter that depends on nothing but its arguments."""

from __future__ import annotations

import pytest

from compiler.plan import Retry
from executor.kernel.core.decide_attempts import delay_ms

KEY = ((), 3)


@pytest.mark.parametrize(
    ("backoff", "delays"),
    [("fixed", [1000, 1000, 1000]), ("linear", [1000, 2000, 3000]), ("exponential", [1000, 2000, 4000])],
)
def test_growth(backoff: str, delays: list[int]) -> None:
    retry = Retry(backoff=backoff, jitter=0.0)  # type: ignore[arg-type]
    assert [delay_ms(retry, "r", KEY, attempt) for attempt in (1, 2, 3)] == delays


def test_the_cap_holds_however_many_attempts_there_were() -> None:
    retry = Retry(max_ms=5000, jitter=0.0)
    assert delay_ms(retry, "r", KEY, 10_000) == 5000


def test_jitter_stays_in_its_band_and_repeats() -> None:
    retry = Retry(jitter=0.25)
    delays = [delay_ms(retry, f"run-{n}", KEY, 1) for n in range(200)]
    assert min(delays) >= 750 and max(delays) <= 1250
    assert len(set(delays)) > 100
    assert delays == [delay_ms(retry, f"run-{n}", KEY, 1) for n in range(200)]
