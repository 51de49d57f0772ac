"""Virtual environments with packages of an index, for tests of what is released."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

from tests.support.server import ROOT

INSTALL_S = 400


def installed(folder: Path, *installs: list[str]) -> Path:
    """Return the folder with the programs of a new virtual environment, after these calls of `pip install`."""
    venv.create(folder, with_pip=False)
    # Not guarded as servers are: the packages come from an index.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for words in (*(["install", "-q", *each] for each in installs), ["check"]):
        done = subprocess.run(
            [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), *words], env=environ,
            capture_output=True, text=True, check=False, timeout=INSTALL_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "bin"


def unhashed(folder: Path) -> str:
    """Return a file of constraints with the versions of the lock."""
    file = folder / "constraints.txt"
    locked = re.findall(r"(?m)^([\w.-]+)(?:\[.*?\])?(==.+?) \\$", (ROOT / "requirements.lock").read_text())
    file.write_text("\n".join(map("".join, locked)))
    return str(file)
