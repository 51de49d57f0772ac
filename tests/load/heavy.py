"""Functions that compute, for the tests of heavy blocks: the same work for the same argument, on any machine."""

from __future__ import annotations

import time

MASK = (1 << 64) - 1


def churn(n: int, rounds: int) -> int:
    """A number that takes so many rounds of Python to find."""
    x = n
    for _ in range(rounds):
        x = (x * 6364136223846793005 + 1442695040888963407) & MASK
    return x


def rounds_of(ms: float) -> int:
    """How many rounds this machine makes in so many milliseconds of processor time."""
    rounds, best_s = 20_000, 1e9
    for _ in range(5):
        began = time.thread_time()
        churn(1, rounds)
        best_s = min(best_s, time.thread_time() - began)
    return round(rounds * ms / 1000 / best_s)
