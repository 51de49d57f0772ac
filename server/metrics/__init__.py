"""Numbers of this process and of its database, in the text format of Prometheus. Here are those that the process itself
counts; `collect` adds those of the engine, and is loaded by the first scrape.
"""

from __future__ import annotations

from executor.kernel.process.observe import Histogram
from executor.kernel.run.meters import SECONDS, Counts, Times, now_s

LAG_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class ProcessMeters:
    """`lag_s`: by how much the last tick of the event loop was late, `lags` all of them. `answers`: by route and
    status; `answer_seconds`: by route, until an answer begins. `streams`: open event streams."""

    def __init__(self) -> None:
        self.draining = False
        self.lag_s = 0.0
        self.lags = Histogram(LAG_SECONDS)
        self.answers: Counts[tuple[str, str]] = Counts()
        self.answer_seconds: Times[str] = Times(SECONDS)
        self.streams = 0

    def answered(self, route: str, status: str, began_s: float) -> None:
        """Count an answer that begins now, to a request that arrived at `began_s` of the same clock."""
        self.answers.add((route, status))
        self.answer_seconds.observe(route, now_s() - began_s)

    def ticked(self, late_s: float) -> None:
        self.lag_s = max(0.0, late_s)
        self.lags.observe(self.lag_s)
