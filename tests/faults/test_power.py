"""Loss of power, failing calls, damaged files. `python -m tests.faults.power` does all of it; so does `make soak`."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import pytest

from tests.support.size import WHOLE, size

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.proof, pytest.mark.soak, pytest.mark.timeout(0 if WHOLE else 300)]


async def power(part: str, every: int, *more: str) -> tuple[int | None, str]:
    """The exit code, and the table."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.faults.power", "--parts", part, "--every", str(size(every, 1)), *more),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    out, _ = await process.communicate()
    print(out.decode())
    return process.returncode, out.decode()


def row(table: str, name: str) -> dict[str, int]:
    columns = ("images", "killed", "distinct", "lost", "max", "torn", "corrupt", "played on", "s")
    (line,) = (line for line in table.splitlines() if line.startswith(name + " "))
    return dict(zip(columns, map(int, line.removeprefix(name).split()), strict=True))


async def test_a_loss_of_power_takes_nothing_that_was_acknowledged() -> None:
    code, table = await power("power", 67, "--plays", str(size(2, 4)))
    found = row(table, "EXTRA, WAL, FULL")
    assert (found["lost"], found["torn"], found["corrupt"]) == (0, 0, 0)
    assert found["images"] >= size(50, 10_000)
    assert found["played on"] > 0
    assert code == 0


async def test_with_weaker_pragmas_it_does_and_this_is_noticed() -> None:
    code, table = await power("pragmas", 41)
    assert row(table, "FULL, WAL, FULL")["lost"] > 0  # the journal of the switch to the WAL comes back
    assert row(table, "NORMAL")["lost"] > 0
    assert row(table, "OFF")["corrupt"] > 0
    assert code == 0


async def test_a_kill_or_an_error_at_any_call_loses_nothing() -> None:
    code, table = await power("calls", 347)
    assert re.search(r": 0 violations$", table, re.MULTILINE)
    for action in ("kill", "EIO", "ENOSPC"):
        reached = re.search(rf"'{action}': (\d+)", table)
        assert reached is not None, table
        assert int(reached[1]) > 0
    assert code == 0


async def test_a_damaged_file_never_passes_for_a_whole_one() -> None:
    code, table = await power("flips", 10)
    assert re.search(r"^\d+ damaged files: ", table, re.MULTILINE)
    assert code == 0
