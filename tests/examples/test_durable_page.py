"""docs/howto/durable-functions.md: its files run unchanged, with the output that the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from executor.kernel.run.lane_bounds import STEPS_MAX
from executor.kernel.run.lane_waits import WAITS_MAX

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/howto/durable-functions.md").read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the files of the page."""
    blocks: list[tuple[str, str]] = re.findall(r"^```python\n# (\S+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    for name, text in blocks:
        (tmp_path / name).write_text(f"# {name}\n{text}")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "cart.py",
        "delivery.py",
        "flow.py",
        "main.py",
        "shop.py",
        "test_flow.py",
    ]
    return tmp_path


def run(folder: Path, *command: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
    environ = {**own, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "WEFT_FUNCTIONS": "", "PYTHONUNBUFFERED": "1"}
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def test_the_program_runs(folder: Path) -> None:
    done = run(folder, "main.py")
    assert done.stdout == "succeeded 3 paid, sent with Ada\n", done.stderr


def test_a_run_is_watched_and_changed(folder: Path) -> None:
    done = run(folder, "shop.py")
    assert done.stdout == "1\n1\n", done.stderr


@pytest.mark.parametrize("function", ["flow.py:order", "cart.py:cart"])
def test_the_file_has_no_findings(folder: Path, function: str) -> None:
    done = run(folder, "-m", "server", "validate", function)
    assert done.returncode == 0, done.stderr


@pytest.mark.proof
@pytest.mark.timeout(200)
def test_its_tests_pass(folder: Path) -> None:
    done = run(folder, "-m", "pytest", "-q", "-o", "asyncio_mode=auto", "test_flow.py", timeout_s=180)
    assert "3 passed" in done.stdout, done.stdout


def test_the_limits_are_those_of_the_page() -> None:
    assert f"{STEPS_MAX:,} steps, and {WAITS_MAX} open waits" in PAGE
