"""Do the direct tests find bugs? Plants one at a time in a copy of the checkout and runs the tests that must see it.

For what the simulations do not draw: limits and rates, turns of keys, formats, a fleet, runners, roles, tokens,
hosts.

`python -m tests.simulation.direct` (some minutes; `--only TEXT` for some of them). A mutant that survives, or whose
text is no longer in the code, is an error: see `mutants.py`, which does the same for the core.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.simulation.mutants import Mutant, read

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("direct.txt")
COPIED = ("compiler", "executor", "server", "weft", "tests")
HANG_S = 900  # some times what the tests of a mutant take
FOUND, PASSED = 1, 0  # exit codes of pytest


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.direct", description=__doc__)
    parser.add_argument("--only", default="", help="those with this in their name")
    options = parser.parse_args()
    mutants = [mutant for mutant in read(LIST.read_text()) if options.only in mutant.what]
    survivors = 0
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        shutil.copy(ROOT / "pyproject.toml", copy)
        for package in COPIED:
            shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__", "_web"))
        every = tuple(sorted({each for mutant in mutants for each in mutant.tests}))
        if (ill := _first_failure(copy, every)) is not None:
            print(f"there is something to be found without any planted bug: {ill}")
            return 1
        for mutant in mutants:
            found = _plant(copy, mutant)
            survivors += not found.startswith("tests/")
            print(f"{mutant.what} ({mutant.file}): {found}", flush=True)
    print(f"{len(mutants) - survivors} of {len(mutants)} planted bugs found by direct tests")
    return 1 if survivors else 0


def _plant(copy: Path, mutant: Mutant) -> str:
    path = copy / file_of(mutant)
    text = path.read_text()
    if text.count(mutant.right) != 1:
        return "MISSING, direct.txt must follow the code"
    path.write_text(text.replace(mutant.right, mutant.wrong))
    try:
        return _first_failure(copy, mutant.tests) or "SURVIVED"
    finally:
        path.write_text(text)


def file_of(mutant: Mutant) -> str:
    """Below the checkout."""
    return mutant.file if mutant.file.startswith("server/") else f"executor/{mutant.file}"


def _first_failure(copy: Path, tests: tuple[str, ...]) -> str | None:
    options = ("-x", "-q", "-p", "no:cacheprovider", "--tb=no", "--timeout", "300", "-m", "not proof")
    command = [sys.executable, "-B", "-m", "pytest", *options, *(f"tests/{each}" for each in tests)]
    try:
        done = subprocess.run(command, cwd=copy, check=False, capture_output=True, text=True, timeout=HANG_S)
    except subprocess.TimeoutExpired:
        return "HANGS"
    if done.returncode == PASSED:
        return None
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    if done.returncode != FOUND or not failed:
        return f"DIES with exit code {done.returncode}: {(done.stdout + done.stderr).strip()[-200:]}"
    return failed[0].removeprefix("FAILED ").partition(" - ")[0]


if __name__ == "__main__":
    raise SystemExit(main())
