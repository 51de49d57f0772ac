"""A fleet in trouble: nothing is lost, nothing is done twice, and nothing of it can be seen."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import pytest

from tests.support.size import WHOLE, size

pytest.importorskip("psycopg")

pytestmark = pytest.mark.proof

ROOT = Path(__file__).parents[2]
RUNS = size(250, 5000)
TROUBLE_S = size(45, 900)
# On a busy machine fewer runs than wanted may be submitted in the time there is; the output says how many were.
AT_MOST_S = size(90, 5400)


@pytest.mark.soak
@pytest.mark.timeout(0 if WHOLE else 600)
@pytest.mark.xdist_group("alone with its processes")
async def test_a_fleet_in_trouble_loses_nothing_and_does_nothing_twice(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fleet.monkey", "--keep", str(tmp_path)]
    options = ["--runs", str(RUNS), "--seconds", str(TROUBLE_S), "--at-most", str(AT_MOST_S)]
    process = await asyncio.create_subprocess_exec(
        *command, *options, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await process.communicate()
    text = out.decode()
    print(text)
    assert process.returncode == 0, text
    assert text.endswith("\n0 wrong\n")
    runs = re.search(r"^(\d+) runs,", text, re.MULTILINE)
    assert runs is not None and int(runs[1]) >= 50, "too little was under way to prove anything"
