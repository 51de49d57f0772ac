"""Does the world find bugs around the core? Plants one at a time in a copy of the packages and counts the seeds until
it is seen.

`python -m tests.simulation.world.mutants` (some minutes; `--only TEXT` for some of them). A mutant that survives, or
whose text is no longer in the code, is an error: see `tests/simulation/mutants.py`, which does the same for the core.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.simulation.mutants import Mutant, read

ROOT = Path(__file__).resolve().parents[3]
LIST = Path(__file__).with_name("mutants.txt")
SEEDS = 5000
HEALTHY_SEEDS = 50
SURVIVED = "SURVIVED"
HANG_S = 1800  # three times what that many seeds take


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.world.mutants", description=__doc__)
    parser.add_argument("--only", default="", help="those with this in their name")
    parser.add_argument(
        "--from", type=int, default=1, dest="first", help="begin at this one of the list (1: the first)"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many to look for each")
    parser.add_argument("--jobs", type=int, default=2, help="how many at the same time")
    options = parser.parse_args()
    mutants = [mutant for mutant in read(LIST.read_text())[options.first - 1 :] if options.only in mutant.what]
    began, survivors = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(options.jobs) as pool:
        healthy = Path(name)  # others may be at work in the tree meanwhile
        for package in ("compiler", "executor", "tests/simulation", "tests/support"):
            shutil.copytree(ROOT / package, healthy / package, ignore=shutil.ignore_patterns("__pycache__"))
        (healthy / "tests" / "__init__.py").touch()  # the copy comes before an installed one
        if (ill := _first_failure(healthy, HEALTHY_SEEDS))[0] != SURVIVED:
            print(f"there is something to be found without any planted bug: {': '.join(ill)}")
            return 1
        print(f"{'found by':10} {'seconds':>7}  planted bug (where): what was seen of it", flush=True)
        for mutant, (found, seen), took_s in pool.map(partial(_plant, healthy, seeds=options.seeds), mutants):
            survivors += not found.startswith("seed")
            print(f"{found:10} {took_s:7.1f}  {mutant.what} ({mutant.file}): {seen}", flush=True)
    took_s = time.monotonic() - began
    found_by = f"{len(mutants) - survivors} of {len(mutants)} planted bugs found"
    print(f"{found_by} in {options.seeds} seeds or fewer, {took_s:.0f} s")
    return 1 if survivors else 0


def _plant(healthy: Path, mutant: Mutant, seeds: int) -> tuple[Mutant, tuple[str, str], float]:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "copy"
        shutil.copytree(healthy, copy)
        path = copy / "executor" / mutant.file
        text = path.read_text()
        found = "MISSING", "mutants.txt must follow the code"
        if text.count(mutant.right) == 1:
            path.write_text(text.replace(mutant.right, mutant.wrong))
            found = _first_failure(copy, seeds)
    return mutant, found, time.monotonic() - began


def _first_failure(copy: Path, seeds: int) -> tuple[str, str]:
    """The seed that found it, and what it said."""
    command = [sys.executable, "-B", "-m", "tests.simulation.world", "--seeds", str(seeds), "--first"]
    try:
        done = subprocess.run(command, cwd=copy, check=False, capture_output=True, text=True, timeout=HANG_S)
    except subprocess.TimeoutExpired:
        return "HANGS", ""
    if done.returncode == 0:
        return SURVIVED, ""
    if done.returncode < 0:
        return "DIES", f"of signal {-done.returncode}"
    last = done.stdout.strip().rsplit("\n", 1)[-1]
    said = done.stderr.strip().splitlines() or [""]
    if not last.startswith("first failure: "):
        return "DIES", f"with exit code {done.returncode}: {said[-1][:110]}"  # of itself, and no seed was judged
    return "seed " + last.removeprefix("first failure: "), said[0].partition(": ")[2][:110]


if __name__ == "__main__":
    raise SystemExit(main())
