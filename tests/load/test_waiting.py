"""Runs that wait cost a row, not memory: no task, no timer, no object of theirs stays in the process."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from tests.support.size import WHOLE, size

pytestmark = pytest.mark.proof

RUNS = size(2_000, 10_000)
BYTES_PER_RUN_MAX = 2_048
# In a sample a round is small beside what the allocator takes by the megabyte.
SLACK_BYTES = 0 if WHOLE else 4_000_000


@pytest.mark.soak
@pytest.mark.timeout(0 if WHOLE else 120)
async def test_waiting_runs_hold_no_memory_and_no_tasks(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.load.waiting", str(tmp_path / "weft.db"), str(RUNS), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    seen = json.loads(out)
    print(seen)
    assert seen["waiting"] == RUNS + 300
    assert seen["bytes_per_run"] * RUNS <= BYTES_PER_RUN_MAX * RUNS + SLACK_BYTES, seen
    assert seen["tasks"] < 20, "tasks of the process itself, whatever the number of runs"
    # What else the machine does meanwhile is not the server's doing.
    assert seen["restart_s" if WHOLE else "restart_cpu_s"] <= 5
    assert seen["answered"] == "succeeded"
