"""The guest program: QuickJS as WebAssembly, compiled once per machine and kept in the user's cache folder.

The `.wasm` file comes with the package `quickjs-rs`; nothing else of that package is used. The compiled form is machine
code that we will run, so it is only read back from a folder that is ours alone, under a name that holds the digest of
the wasm and the version of wasmtime, and only if its own digest is right. Anything else: compile again (0.4 to 2 s).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import stat
import sys
import tempfile
from importlib import metadata, resources
from pathlib import Path

import wasmtime

from executor.blocks.sandbox.engine import engine, once

_DIGEST_BYTES = 32


@once
def guest_module() -> wasmtime.Module:
    """Return the compiled guest. Slow once (0.4 to 2 s without a cached file, 5 ms with one)."""
    return load(engine(), cache_folder())


def load(target: wasmtime.Engine, folder: Path | None) -> wasmtime.Module:
    """Read the compiled guest from `folder`, or compile it and try to keep it there."""
    wasm = (resources.files("quickjs_rs") / "_guest.wasm").read_bytes()
    if folder is None or not private_folder(folder):
        return wasmtime.Module(target, wasm)
    digest = hashlib.sha256(wasm).hexdigest()[:32]
    file = folder / f"quickjs-{digest}-wasmtime-{metadata.version('wasmtime')}-{platform.machine()}.cwasm"
    blob = read_checked(file)
    if blob is not None:
        with contextlib.suppress(wasmtime.WasmtimeError):  # for another CPU or other settings
            return wasmtime.Module.deserialize(target, blob)
    module = wasmtime.Module(target, wasm)
    with contextlib.suppress(OSError):  # a full or read-only disk costs time at the next start, nothing else
        write_checked(file, bytes(module.serialize()))
    return module


def cache_folder() -> Path | None:
    """Return `weft/guest` below the user's cache folder, used for nothing else, or None without a home directory.
    `weft` itself may be readable to others: the browser of the tests is kept there too."""
    base = os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):
        return Path(base) / "weft" / "guest"
    try:
        return Path.home() / ".cache" / "weft" / "guest"
    except RuntimeError:
        return None


def private_folder(folder: Path) -> bool:
    """Make the folder if need be; True when it is a real folder, ours, and closed to everybody else."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _ours(os.lstat(folder), stat.S_ISDIR)
    except OSError:
        return False


def _ours(info: os.stat_result, kind: object) -> bool:
    if not callable(kind) or not kind(info.st_mode):
        return False
    if sys.platform == "win32":  # profile folders are private there, and there are no mode bits to check
        return True
    return info.st_uid == os.getuid() and not info.st_mode & 0o077


def read_checked(file: Path) -> bytes | None:
    """Read a file of `write_checked`. Returns None if it is missing, not only ours, or incomplete."""
    try:
        with open(file, "rb") as source:
            if not _ours(os.fstat(source.fileno()), stat.S_ISREG):
                return None
            digest, blob = source.read(_DIGEST_BYTES), source.read()
    except OSError:
        return None
    return blob if hashlib.sha256(blob).digest() == digest else None


def write_checked(file: Path, blob: bytes) -> None:
    """Write a file atomically: another process may read or write the same file at this moment."""
    handle, draft = tempfile.mkstemp(dir=file.parent, prefix=".draft-")  # mkstemp makes it 0600
    try:
        with os.fdopen(handle, "wb") as target:
            target.write(hashlib.sha256(blob).digest() + blob)
        os.replace(draft, file)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
