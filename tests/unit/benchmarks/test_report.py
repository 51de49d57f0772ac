from __future__ import annotations

import json

import pytest

from benchmarks.report import Report, from_json, line, number, to_json, total
from benchmarks.statistics import Figure, Spread, Target

FIGURES = [
    Figure(
        "chain",
        "W1 chain",
        "ms/step",
        Spread(0.2, 0.375, 9),
        Spread(0.1, 0.25, 9),
        "floor",
        target=Target(1.6),
        samples=10,
    ),
    Figure(
        "chain", "W1 chain", "ms/step", Spread(0.2, 0.3, 9), Spread(0.5, 0.6, 9), "Peer", target=Target(3, least=True)
    ),
    Figure("fan", "W2 fan", "ms/step", None, None, "floor", samples=24, thrown=24),
    Figure("syncs", "W1 syncs", "syncs/step", counted=1.02, target=Target(1.05), note="counted"),
]


def words(figure: Figure) -> str:
    return " ".join(line(figure).split())


def test_a_line_has_both_spreads_both_ratios_and_the_samples_thrown_away() -> None:
    assert words(FIGURES[0]) == "W1 chain 0.2 / 0.375 0.1 / 0.25 ms/step 2 1.5 ≤ 1.6 met 0/10"
    assert words(FIGURES[1]).startswith("beside Peer")
    assert "≥ 3 MISSED" in words(FIGURES[1])
    assert words(FIGURES[3]) == "W1 syncs 1.02 syncs/step ≤ 1.05 met (counted)"


def test_without_a_quiet_sample_the_line_says_so_and_shows_no_figure() -> None:
    text = line(FIGURES[2])
    assert "no quiet sample of 24" in text
    assert "/step" not in text


def test_the_total_counts_samples_and_missed_targets() -> None:
    assert total(FIGURES).startswith("24 of 34 samples thrown away")
    assert total(FIGURES).endswith("1 targets missed")


def test_json_gives_the_report_back_and_says_what_follows_from_it() -> None:
    report = Report({"date": "2026-11-22", "cpus": "2"}, FIGURES)
    data = to_json(report)
    assert from_json(data) == report
    first, _, busy, _ = json.loads(data)["figures"]
    assert (first["ratio"], first["ratio_p10"], first["verdict"], first["busy"]) == (1.5, 2.0, "met", False)
    assert (busy["ratio"], busy["verdict"], busy["busy"]) == (None, "", True)


@pytest.mark.parametrize(("value", "text"), [(None, ""), (0.01234, "0.0123"), (99.94, "99.9"), (1234.5, "1,234")])
def test_numbers_have_three_digits(value: float | None, text: str) -> None:
    assert number(value) == text
