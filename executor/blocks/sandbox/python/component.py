"""The guest program of Python as machine code of this machine, in the folder where that of JavaScript is too.

`build` makes it: componentize-py joins CPython, its library and `program/` to a component, and wasmtime compiles that.
It takes 20 s and 450 MB, so it is done once, in a process of its own (`weft python build`), never in a server, which
only reads the file; blocks wait while it is being done.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Final

from wasmtime.component import Component

from executor.blocks.sandbox.engine import cache_folder, engine, once, private_folder, read_checked, write_checked
from executor.blocks.sandbox.wasm import wasmtime  # isort: split - its error comes first
from executor.errors import SandboxError
from executor.kernel.process.extras import install

PROGRAM: Final = Path(__file__).parent / "program"
_WORLD, _MODULE = "weft", "weft_program"
_BUILD_S = 900
_RUN: Final = "import sys, componentize_py; sys.exit(componentize_py.script())"


class BuildFailed(Exception):
    """The message explains what to do."""


@once
def component() -> Component:
    """Read once per process (40 ms). Raises SandboxError(python_missing), until it has been built."""
    file = compiled_file()
    blob = read_checked(file) if file is not None and private_folder(file.parent) else None
    if blob is not None:
        with contextlib.suppress(wasmtime.WasmtimeError):  # another CPU or other settings
            return Component.deserialize(engine(), blob)
    raise SandboxError(
        "Python is not built on this machine",
        code="python_missing",
        hint="run once, as the user of the server: weft python build",
    )


def compiled_file() -> Path | None:
    folder = cache_folder()
    if folder is None:
        return None
    return folder / _name()


@cache
def _name() -> str:
    digest = hashlib.sha256()
    for file in sorted(PROGRAM.iterdir()):
        if file.is_file():
            digest.update(file.read_bytes() + b"\0")
    version = metadata.version("wasmtime")
    return f"python-{digest.hexdigest()[:32]}-wasmtime-{version}-{platform.machine()}.cwasm"


def is_built() -> bool:
    """Return True if the file exists; only `component` finds out if it can be read."""
    file = compiled_file()
    return file is not None and file.is_file()


@contextlib.contextmanager
def building() -> Iterator[bool]:
    """Lock the build, for `is_being_built`. Yields False if another process has the lock."""
    file = compiled_file()
    if file is None or not private_folder(file.parent) or not (lock := _locked(_lock_of(file))):
        yield False
        return
    with lock:
        yield True


def is_being_built() -> bool:
    """Return True if another process builds it, which takes half a minute. A killed process has no lock."""
    file = compiled_file()
    if file is None or not _lock_of(file).is_file():
        return False
    lock = _locked(_lock_of(file))
    if lock is not None:
        lock.close()
    return lock is None


def _lock_of(file: Path) -> Path:
    return file.with_suffix(".building")


def _locked(path: Path) -> IO[bytes] | None:
    try:
        import fcntl  # not on every system
    except ImportError:
        return None
    file = path.open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file


def build() -> Path:
    """Make the file, or make it again. Takes 20 s and 450 MB of this process. Raises BuildFailed."""
    file = compiled_file()
    if file is None or not private_folder(file.parent):
        raise BuildFailed("there is no folder of this user alone for the result: ~/.cache/weft/guest")
    if find_spec("componentize_py") is None:
        raise BuildFailed(f"it needs the package componentize-py: {install('python')}")
    with tempfile.TemporaryDirectory(prefix="weft-python-") as name:
        wasm = Path(name) / "python.wasm"
        _componentize(wasm)
        blob = bytes(Component(engine(), wasm.read_bytes()).serialize())
    try:
        write_checked(file, blob)
    except OSError as error:
        raise BuildFailed(f"{file} cannot be written: {error}") from error
    return file


def _componentize(wasm: Path) -> None:
    """Run componentize-py without PATH and VIRTUAL_ENV, by which it would add the packages of this machine."""
    command = ["-d", str(PROGRAM / "world.wit"), "-w", _WORLD, "componentize", "--stub-wasi"]
    command += ["-p", str(PROGRAM), _MODULE, "-o", str(wasm)]
    env = {name: value for name, value in os.environ.items() if name not in ("PATH", "VIRTUAL_ENV", "PYTHONHOME")}
    try:
        done = subprocess.run(  # noqa: S603 - commands of this file alone
            [sys.executable, "-c", _RUN, *command],
            cwd=wasm.parent,
            env={**env, "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_BUILD_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BuildFailed(f"componentize-py did not end within {_BUILD_S} s") from None
    if done.returncode or not wasm.is_file():
        raise BuildFailed(f"componentize-py failed:\n{(done.stdout + done.stderr)[-4000:]}")
