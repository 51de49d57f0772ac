"""Samples, their percentiles, and figures made of them. Pure: knows no process, no clock and no benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, field

# A sample during which other programs used more than this, in processors, is thrown away.
FOREIGN_MAX = 0.35

Verdict = Literal["", "met", "MISSED"]


class Sample(Struct, frozen=True):
    """What one process measured. `foreign`: processors that other programs used meanwhile; None: not known."""

    values: tuple[float, ...]
    foreign: float | None = None

    @property
    def quiet(self) -> bool:
        return self.foreign is None or self.foreign <= FOREIGN_MAX


class Spread(Struct, frozen=True):
    """The values of all quiet samples: the tenth percentile and the median."""

    p10: float
    p50: float
    values: int


class Series(Struct):
    """The samples of one program."""

    samples: list[Sample] = field(default_factory=list)

    @property
    def quiet(self) -> int:
        return sum(sample.quiet for sample in self.samples)

    @property
    def thrown(self) -> int:
        return len(self.samples) - self.quiet

    def spread(self) -> Spread | None:
        """None: no sample was quiet."""
        values = [value for sample in self.samples if sample.quiet for value in sample.values]
        if not values:
            return None
        return Spread(percentile(values, 0.1), percentile(values, 0.5), len(values))


class Target(Struct, frozen=True):
    """A bound of the ratio, or with `of="value"` of the figure itself. With `least` it is a minimum."""

    bound: float
    of: Literal["ratio", "value"] = "ratio"
    least: bool = False

    def met(self, value: float) -> bool:
        return value >= self.bound if self.least else value <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.least else '≤'} {self.bound:g}"


class Figure(Struct, frozen=True, omit_defaults=True):
    """One line of the report. `ours` and `beside` (the floor, or another system) are in `unit`; None: no quiet
    sample. `counted` is an exact figure, which no other program can change."""

    section: str
    name: str
    unit: str
    ours: Spread | None = None
    beside: Spread | None = None
    beside_name: str = ""
    counted: float | None = None
    target: Target | None = None
    samples: int = 0
    thrown: int = 0
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Of the medians of one sequence."""
        return self._ratio("p50")

    @property
    def ratio_p10(self) -> float | None:
        return self._ratio("p10")

    @property
    def value(self) -> float | None:
        """What the target bounds."""
        if self.counted is not None:
            return self.counted
        if self.target is not None and self.target.of == "value":
            return self.ours.p50 if self.ours else None
        return self.ratio

    @property
    def busy(self) -> bool:
        """None of the samples was quiet, of the one or of the other."""
        return self.counted is None and (self.ours is None or (bool(self.beside_name) and self.beside is None))

    @property
    def verdict(self) -> Verdict:
        value = self.value
        if self.target is None or value is None:
            return ""
        return "met" if self.target.met(value) else "MISSED"

    def _ratio(self, which: Literal["p10", "p50"]) -> float | None:
        """Ours by the floor. For another system it is how many times more that one needs."""
        if self.ours is None or self.beside is None:
            return None
        ours, beside = getattr(self.ours, which), getattr(self.beside, which)
        above, below = (ours, beside) if self.beside_name == "floor" else (beside, ours)
        return float(above / below) if below else None


def percentile(values: Sequence[float], part: float) -> float:
    """Between the two nearest values, in proportion."""
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
