"""Does the simulation find bugs? Plants one at a time in a copy of the core and counts the seeds until it is seen.

`python -m tests.simulation.mutants` (a few minutes). A mutant that survives, or whose text is no longer in the core, is
an error: the first tells of a check that is missing, the second that `mutants.txt` must follow the code.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("mutants.txt")
SEEDS = 5000
HANG_S = 600  # some times what that many seeds take


@dataclass
class Mutant:
    """`right` is text of `kernel/core/<file>`, replaced by `wrong`. `tests`: that must find it, below `tests`; none
    if a simulation does."""

    what: str
    file: str
    right: str
    wrong: str
    tests: tuple[str, ...] = ()


def main() -> int:
    mutants, survivors = read(LIST.read_text()), 0
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        for package in ("compiler", "executor", "tests/simulation", "tests/support"):
            shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
        (copy / "tests" / "__init__.py").touch()  # the copy comes before an installed one
        for mutant in mutants:
            path = copy / "executor" / "kernel" / "core" / mutant.file
            text = path.read_text()
            if mutant.right not in text:
                print(f"MISSING    {mutant.what}: {mutant.right!r} is not in {mutant.file}")
                survivors += 1
                continue
            path.write_text(text.replace(mutant.right, mutant.wrong))
            try:
                found = _first_failure(copy)
            finally:
                path.write_text(text)
            survivors += found is None
            print(f"{found or 'SURVIVED':10} {mutant.what}", flush=True)
    print(f"{len(mutants) - survivors} of {len(mutants)} planted bugs found in {SEEDS} seeds or fewer")
    return 1 if survivors else 0


def read(text: str) -> list[Mutant]:
    mutants = []
    for part in text.split("\n## ")[1:]:
        what, at, *lines = part.strip("\n").split("\n")
        right, wrong = ("\n".join(line[1:] for line in lines if line[0] == sign) for sign in "-+")
        tests = tuple(line.removeprefix("? ") for line in lines if line[0] == "?")
        if not wrong:
            right += "\n"  # the line goes altogether
        mutants.append(Mutant(what, at.removeprefix("@ "), right, wrong, tests))
    return mutants


def _first_failure(copy: Path) -> str | None:
    command = [sys.executable, "-B", "-m", "tests.simulation", "--seeds", str(SEEDS), "--first"]
    try:
        done = subprocess.run(command, cwd=copy, check=False, capture_output=True, text=True, timeout=HANG_S)
    except subprocess.TimeoutExpired:
        return "hangs"
    if done.returncode == 0:
        return None
    last = done.stdout.strip().rsplit("\n", 1)[-1]
    assert last.startswith("first failure: "), done.stdout + done.stderr
    return "seed " + last.removeprefix("first failure: ")


if __name__ == "__main__":
    raise SystemExit(main())
