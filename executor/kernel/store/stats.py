"""Counts of the writer of a store, for metrics."""

from __future__ import annotations

from msgspec import Struct, field

from executor.kernel.process.observe import Histogram

# The bounds of the histogram of one commit: from a fast disk to one that stalls.
COMMIT_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


def _commit_times() -> Histogram:
    return Histogram(COMMIT_SECONDS)


class Stats(Struct):
    """Counters since the start. `items` were committed in `commits` groups, the largest had `group_max`; `retries`
    counts groups written again because the database was busy. `seconds` that the groups took."""

    items: int = 0
    commits: int = 0
    group_max: int = 0
    retries: int = 0
    seconds: Histogram = field(default_factory=_commit_times)
