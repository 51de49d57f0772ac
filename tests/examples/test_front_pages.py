"""The Python of the README and of the front page: without findings, and run as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs import release
from tests.support.server import ROOT

README, FRONT = (ROOT / "README.md").read_text(), (ROOT / "docs/index.md").read_text()
PROGRAM = """
import asyncio

import flow
from weft import testing


async def main() -> None:
    async with testing.engine(workflows=[flow.order]) as engine:
        for action in ("approve", "reject"):
            run = await engine.submit(flow.order, customer="Ada", amount=12)
            view = await testing.finish(engine, run.run, {"Charge Ada 12?": action})
            print(view.status, view.output)


asyncio.run(main())
"""


def python_of(page: str) -> dict[str, str]:
    return dict(re.findall(r"^```python\n# (\S+)\n(.*?)^```", page, re.DOTALL | re.MULTILINE))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in python_of(README).items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
    environ = {**own, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=False
    )


def test_both_pages_show_the_same_function_first() -> None:
    assert next(iter(python_of(README).items())) == next(iter(python_of(FRONT).items()))


@pytest.mark.parametrize("name", python_of(README))
def test_a_workflow_of_the_readme_has_no_findings(folder: Path, name: str) -> None:
    done = run(folder, "-m", "server", "validate", name)
    assert (done.returncode, done.stderr) == (0, "0 errors, 0 warnings\n")


def test_the_function_waits_for_a_person_and_an_hour(folder: Path) -> None:
    (folder / "program.py").write_text(PROGRAM)
    done = run(folder, "program.py")
    assert done.stdout == "succeeded charged Ada 12\nsucceeded declined\n", done.stderr


def test_the_front_page_names_the_version() -> None:
    assert f"\nweft {release.version()} · " in FRONT
