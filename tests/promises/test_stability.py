"""docs/reference/stability.md: each public name has a group there, and the Pythons are those that are tried."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import weft
from docs.site.python_names import GROUPS, ORDER, public
from server import client
from tests.support.environments import INSTALL_S, PROGRAM, installed, unhashed
from tests.support.server import ROOT
from weft import draw, testing

PAGE = (ROOT / "docs/reference/stability.md").read_text()
PYTHONS = re.findall(r"Python :: (3\.\d+)\"", (ROOT / "pyproject.toml").read_text())
OTHERS = [version for version in PYTHONS if version != f"3.{sys.version_info.minor}"]


def test_each_public_name_is_in_one_group_and_the_page_has_each_group() -> None:
    named = [each.name for names in public().values() for each in names]
    modules = {"weft": weft.__all__, "weft.draw": draw.__all__, "weft.testing": testing.__all__}
    wanted = [f"{module}.{name}" for module, names in modules.items() for name in names]
    assert sorted(named) == sorted(wanted)
    rows = re.findall(r"(?m)^\| ([A-Z][\w ]+) \| (?:new|stable)", PAGE.partition("## Names in Python")[2])
    assert sorted(rows) == sorted(ORDER) == sorted(group.title for group in GROUPS)
    assert "Every name of `weft`, `weft.draw`, `weft.testing` and `weft.answers`, and of `weft_client`" in PAGE


def test_the_clients_of_both_wheels_have_the_same_names() -> None:
    assert {"Client", "AsyncClient", "Event", "ApiError", "RunFailed", "ServerUnreachable"} <= set(client.__all__)
    assert {name for name in client.__all__ if name in weft.__all__} == {
        each.name.removeprefix("weft.") for each in public()["Client"]
    }


def test_the_pythons_of_the_page_are_those_of_the_package() -> None:
    assert f"Python {PYTHONS[0]} to {PYTHONS[-1]} are supported" in PAGE
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert needed == f">={PYTHONS[0]}"


@pytest.mark.proof
@pytest.mark.timeout(INSTALL_S + 200)
@pytest.mark.parametrize("version", OTHERS)
def test_another_python_runs_what_is_released(version: str, tmp_path: Path) -> None:
    """The wheel with its dependencies, all warnings as errors: steps, a durable function and a drawn one."""
    python = python_of(version)
    if python is None:
        pytest.skip(f"this machine has no Python {version}")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, env={**os.environ, "WEFT_WEB": "skip"}, check=True, timeout=100)
    (wheel,) = tmp_path.glob("weft-*.whl")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    programs = installed(tmp_path / version, ["-c", unhashed(tmp_path), str(wheel)], python=python)
    own = {name: value for name, value in os.environ.items() if not name.startswith(("WEFT_", "PYTHON"))}
    done = subprocess.run(
        [programs / "python", "-W", "error", program], cwd=tmp_path, env=own, capture_output=True, text=True,
        check=False, timeout=100,
    )  # fmt: skip
    assert (done.returncode, done.stdout.splitlines()) == (0, ["charged 120"] * 2), done.stderr


def python_of(version: str) -> str | None:
    """Return a Python of this version on this machine: of pyenv, or on the PATH."""
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    found = str(kept[-1]) if kept else shutil.which(f"python{version}")
    if found is None or subprocess.run([found, "--version"], capture_output=True, check=False).returncode != 0:
        return None  # the shim starts no program
    return found
