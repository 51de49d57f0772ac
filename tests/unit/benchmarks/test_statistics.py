from __future__ import annotations

import pytest

from benchmarks.statistics import FOREIGN_MAX, Figure, Sample, Series, Spread, Target, percentile


def spread(p10: float, p50: float) -> Spread:
    return Spread(p10, p50, 5)


@pytest.mark.parametrize(
    ("values", "part", "expected"),
    [
        ([7.0], 0.1, 7.0),
        ([7.0], 0.5, 7.0),
        ([2.0, 1.0], 0.5, 1.5),
        ([3.0, 1.0, 2.0], 0.5, 2.0),
        ([float(n) for n in range(11)], 0.1, 1.0),
        ([0.0, 10.0], 0.1, 1.0),
        ([5.0, 1.0], 1.0, 5.0),
    ],
)
def test_percentile_lies_between_the_two_nearest_values(values: list[float], part: float, expected: float) -> None:
    assert percentile(values, part) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("foreign", "quiet"), [(None, True), (0.0, True), (FOREIGN_MAX, True), (FOREIGN_MAX + 0.01, False)]
)
def test_a_sample_is_quiet_up_to_the_bound_or_when_the_load_is_not_known(foreign: float | None, quiet: bool) -> None:
    assert Sample((1.0,), foreign).quiet is quiet


def test_a_spread_is_of_quiet_samples_only() -> None:
    series = Series([Sample((1.0, 3.0), 0.1), Sample((100.0,), 1.5), Sample((2.0,), 0.2)])
    assert (series.quiet, series.thrown) == (2, 1)
    found = series.spread()
    assert found is not None
    assert (found.p50, found.values) == (2.0, 3)


def test_without_a_quiet_sample_there_is_no_spread() -> None:
    assert Series([Sample((1.0,), 1.0)]).spread() is None
    assert Series().spread() is None


def test_the_ratio_is_of_the_medians_and_of_the_tenth_percentiles() -> None:
    figure = Figure("chain", "W1", "ms", spread(2, 6), spread(1, 4), "floor", target=Target(1.6))
    assert (figure.ratio, figure.ratio_p10) == (1.5, 2.0)
    assert figure.verdict == "met"


def test_beside_another_system_the_ratio_says_how_many_times_more_it_needs() -> None:
    figure = Figure("chain", "W1", "ms", spread(1, 2), spread(4, 8), "LangGraph", target=Target(3, least=True))
    assert (figure.ratio, figure.ratio_p10, figure.verdict) == (4.0, 4.0, "met")


def test_a_target_may_bound_the_value_or_a_count() -> None:
    value = Figure("post", "POST", "1/s", spread(1, 2_000), target=Target(3_000, of="value", least=True))
    assert (value.value, value.verdict) == (2_000, "MISSED")
    counted = Figure("syncs", "W1", "syncs/step", counted=1.01, target=Target(1.05))
    assert (counted.value, counted.verdict, counted.busy) == (1.01, "met", False)


def test_without_a_target_there_is_no_verdict() -> None:
    assert Figure("short", "one", "ms", spread(1, 2), spread(1, 1), "floor").verdict == ""


@pytest.mark.parametrize(
    ("figure", "busy"),
    [
        (Figure("a", "a", "ms", None, spread(1, 1), "floor"), True),
        (Figure("a", "a", "ms", spread(1, 1), None, "floor"), True),
        (Figure("a", "a", "ms", spread(1, 1)), False),
        (Figure("a", "a", "ms", spread(1, 1), spread(1, 1), "floor"), False),
    ],
)
def test_a_figure_without_a_quiet_sample_has_no_verdict(figure: Figure, busy: bool) -> None:
    assert figure.busy is busy
    if busy:
        assert (figure.ratio, figure.verdict) == (None, "")


@pytest.mark.parametrize(("target", "text"), [(Target(1.6), "≤ 1.6"), (Target(3, least=True), "≥ 3")])
def test_a_target_is_shown_with_its_sense(target: Target, text: str) -> None:
    assert str(target) == text
