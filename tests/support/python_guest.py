"""The Python of the sandbox, for tests that run programs in it: built once for this machine, as a user builds it."""

import fcntl
import subprocess
import sys
from pathlib import Path

from executor.blocks.sandbox.engine import cache_folder, private_folder
from executor.blocks.sandbox.python.component import component
from executor.errors import SandboxError


def built_python() -> None:
    """`make test` builds it before; otherwise the first test does, for half a minute."""
    folder = cache_folder()
    assert folder is not None and private_folder(folder)
    with open(folder / ".building", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            component()
        except SandboxError:
            root = Path(__file__).parents[2]
            subprocess.run([sys.executable, "-m", "server", "python", "build"], cwd=root, check=True, timeout=110)
