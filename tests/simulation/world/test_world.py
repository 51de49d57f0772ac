"""The runtime in a simulated world: crashes, stalls, clocks that jump, failing disks, lost wake-ups, impatient clients.

`make test` runs 20 seeds, `make check` the rest of 150, `WEFT_WORLD_SEEDS=5000` more; `make soak` runs new ones until
its time is up. A failure prints the command that runs its seed again.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.simulation.world.world import simulate
from tests.support.size import sampled

SEEDS = int(os.environ.get("WEFT_WORLD_SEEDS", "150"))
START = int(os.environ.get("WEFT_WORLD_START", "0"))
SAMPLE = 20  # seeds of `make test`
CHUNK = 10  # seeds per test: enough tests to spread over processes, each far below the time limit of one
ROOT = Path(__file__).resolve().parents[3]


# A process that dies leaves calls of steps that have not begun.
@pytest.mark.filterwarnings("ignore:coroutine 'AttemptSteps._(step|wait)' was never awaited")
@pytest.mark.parametrize("start", sampled(START, SEEDS, CHUNK, SAMPLE))
def test_every_promise_holds_whatever_breaks(start: int) -> None:
    for seed in range(start, min(start + CHUNK, START + SEEDS)):
        simulate(seed)


@pytest.mark.proof
def test_a_seed_is_the_same_world_in_every_process() -> None:
    """Else a failure could not be looked at again. Text hashes differ from process to process, and so do addresses."""
    told = [_told("7", hash_seed) for hash_seed in ("1", "2")]
    assert told[0] == told[1]
    assert "callbacks" in told[0]


def _told(seed: str, hash_seed: str) -> str:
    command = [sys.executable, "-m", "tests.simulation.world", "--seed", seed]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout


@pytest.mark.proof
@pytest.mark.soak
def test_soak() -> None:
    seed = int(time.time()) * 1000  # other seeds every time; the one that fails is printed
    end_s = time.monotonic() + float(os.environ.get("WEFT_SOAK_SECONDS", "2"))
    while time.monotonic() < end_s:
        simulate(seed)
        seed += 1
