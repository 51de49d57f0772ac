"""What a process of weft knows of itself, beside its engine."""

from __future__ import annotations

from executor.histogram import Histogram
from executor.runtime.meters import Counts

LAG_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class ProcessMeters:
    """`lag_s`: by how much the last tick of the event loop was late, `lags` all of them. `answers`: by route and
    status. `streams`: open event streams."""

    def __init__(self) -> None:
        self.draining = False
        self.lag_s = 0.0
        self.lags = Histogram(LAG_SECONDS)
        self.answers: Counts[tuple[str, str]] = Counts()
        self.streams = 0

    def ticked(self, late_s: float) -> None:
        self.lag_s = max(0.0, late_s)
        self.lags.observe(self.lag_s)
