"""What a user gets who has Python and nothing else: the package, installed where no Node is, and its front page."""

from __future__ import annotations

import os
import shutil
import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.conftest import Contexts
from tests.browser.editor import Editor
from tests.browser.test_home import shows_the_examples
from tests.support.server import ROOT, SyncServerProcess

INSTALL_S = 600
NOT_COPIED = shutil.ignore_patterns(
    ".*", "node_modules", "_web", "__pycache__", "dist", "build", "*.db*", "benchmarks", "tests"
)

pytestmark = [pytest.mark.install, pytest.mark.timeout(INSTALL_S + 300)]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a virtual environment into which `pip install .` has put this checkout, with an empty PATH."""
    folder = tmp_path_factory.mktemp("install")
    shutil.copytree(ROOT, folder / "weft", ignore=NOT_COPIED)
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    (folder / "bin").mkdir()
    # Not guarded as servers are (PYTHONPATH): the packages come from an index.
    kept = {name: value for name, value in os.environ.items() if "WEFT" not in name and name != "PYTHONPATH"}
    env = {**kept, "PATH": str(folder / "bin")}
    done = subprocess.run(
        [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", str(folder / "weft")],
        env=env,
        capture_output=True,
        text=True,
        timeout=INSTALL_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return python


@pytest.fixture
def fresh(installed: Path, tmp_path: Path) -> Iterator[SyncServerProcess]:
    started = SyncServerProcess(tmp_path, {}, python=installed)
    yield started
    started.stop()


def test_check_01_from_a_fresh_install(fresh: SyncServerProcess, contexts: Contexts) -> None:
    shows_the_examples(Editor(contexts(fresh.url).page(), fresh.url))
