"""The report: lines for people, and JSON. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from benchmarks.statistics import FOREIGN_MAX, Figure, Spread

HEAD = (
    f"{'p10 / p50':44} {'ours':>17} {'floor or other':>17} {'':10} {'p10':>6} {'ratio':>6} {'target':>8} {'':7} "
    f"{'thrown away':>11}"
)


class Report(Struct, frozen=True):
    machine: dict[str, str]
    figures: list[Figure]


def lines(figures: Sequence[Figure]) -> list[str]:
    return [line(figure) for figure in figures]


def line(figure: Figure) -> str:
    name = figure.name if figure.beside_name in ("", "floor") else f"  beside {figure.beside_name}"
    thrown = f"{figure.thrown}/{figure.samples}" if figure.samples else ""
    if figure.busy:
        return f"{name:44} no quiet sample of {figure.samples}: other programs used over {FOREIGN_MAX} processors"
    ours = number(figure.counted) if figure.counted is not None else both(figure.ours)
    ratios = [number(ratio) for ratio in (figure.ratio_p10, figure.ratio)]
    note = f"  ({figure.note})" if figure.note else ""
    return (
        f"{name:44} {ours:>17} {both(figure.beside):>17} {figure.unit:10} {ratios[0]:>6} {ratios[1]:>6} "
        f"{'' if figure.target is None else str(figure.target):>8} {figure.verdict:7} {thrown:>11}{note}"
    ).rstrip()


def total(figures: Sequence[Figure]) -> str:
    samples, thrown = sum(figure.samples for figure in figures), sum(figure.thrown for figure in figures)
    missed = sum(figure.verdict == "MISSED" for figure in figures)
    return (
        f"{thrown} of {samples} samples thrown away because other programs used over {FOREIGN_MAX} processors; "
        f"{missed} targets missed"
    )


def both(spread: Spread | None) -> str:
    return "" if spread is None else f"{number(spread.p10)} / {number(spread.p50)}"


def number(value: float | None) -> str:
    """Three digits that mean something."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def to_json(report: Report) -> bytes:
    """Figures with what follows from them, for programs that read only this."""
    figures: list[dict[str, Any]] = [
        {
            **msgspec.to_builtins(figure),
            "ratio": figure.ratio,
            "ratio_p10": figure.ratio_p10,
            "verdict": figure.verdict,
            "busy": figure.busy,
        }
        for figure in report.figures
    ]
    return msgspec.json.format(msgspec.json.encode({"machine": report.machine, "figures": figures}))


def from_json(data: bytes) -> Report:
    return msgspec.json.decode(data, type=Report)
