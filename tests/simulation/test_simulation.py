"""Random workflows in random orders with random faults, against the reference model.

`make test` runs 90 seeds, `make check` the rest of 900, `WEFT_SIM_SEEDS=50000` more; `make soak` runs new ones until
its time is up. A failure prints the command that runs its seed again.
"""

from __future__ import annotations

import os
import time

import pytest

from tests.simulation.check import simulate
from tests.support.size import sampled

SEEDS = int(os.environ.get("WEFT_SIM_SEEDS", "900"))
START = int(os.environ.get("WEFT_SIM_START", "0"))
SAMPLE = 90  # seeds of `make test`
CHUNK = 45  # seeds per test: enough tests to spread over processes, each far below the time limit of one


@pytest.mark.parametrize("start", sampled(START, SEEDS, CHUNK, SAMPLE))
def test_runs_come_to_what_the_reference_says(start: int) -> None:
    for seed in range(start, min(start + CHUNK, START + SEEDS)):
        simulate(seed)


@pytest.mark.proof
@pytest.mark.soak
def test_soak() -> None:
    seed = int(time.time()) * 1000  # other seeds every time; the one that fails is printed
    end_s = time.monotonic() + float(os.environ.get("WEFT_SOAK_SECONDS", "2"))
    while time.monotonic() < end_s:
        simulate(seed)
        seed += 1
