from __future__ import annotations

import pytest

from executor.kernel.process.observe import Histogram


@pytest.mark.parametrize(("value", "place"), [(0.0, 0), (1.0, 0), (1.5, 1), (2.0, 1), (2.1, 2), (9e9, 2)])
def test_a_value_counts_below_the_first_bound_that_is_not_less(value: float, place: int) -> None:
    histogram = Histogram([1.0, 2.0])
    histogram.observe(value)
    assert histogram.counts == [int(n == place) for n in range(3)]
    assert (histogram.sum, histogram.count) == (value, 1)
