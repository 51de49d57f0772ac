"""The one engine of a process, the clock of its hard deadlines, and the guest program, QuickJS as WebAssembly.

The clock is a thread that advances the engine's epoch while guests run, and for a second after the last call, so that
steady work does not pay for waking it. A late tick makes a deadline later, never earlier: a loaded machine gets no
false timeouts.

The `.wasm` file comes with the package `quickjs-rs`, of which nothing else is used. Its compiled form is machine code
that we will run, so it is only read back from a folder that is ours alone, under a name that holds the digest of the
wasm and the version of wasmtime, and only if its own digest is right. Else it is compiled again (0.4 to 2 s).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import metadata, resources
from pathlib import Path
from typing import TypeVar

from executor.blocks.sandbox.wasm import wasmtime

T = TypeVar("T")

TICK_MS = 5
_LINGER_S = 1.0


def once(make: Callable[[], T]) -> Callable[[], T]:
    """Let all threads call `make` once; if it raises, the next tries. `functools.lru_cache` lets two threads that come
    together make one each, and wasmtime aborts the process when a module of one engine meets a function of another."""
    made: list[T] = []
    making = threading.Lock()

    @wraps(make)
    def get() -> T:
        if not made:
            with making:
                if not made:
                    made.append(make())
        return made[0]

    return get


@once
def engine() -> wasmtime.Engine:
    """Return the engine of this process. `ticker` advances its epoch."""
    config = wasmtime.Config()
    config.epoch_interruption = True
    return wasmtime.Engine(config)


@once
def ticker() -> Ticker:
    return Ticker()


def ticks(ms: int) -> int:
    """Return the epochs that are at least `ms` long: one more, because the present one has partly passed."""
    return ms // TICK_MS + 2


class Ticker:
    def __init__(self) -> None:
        self._engine = engine()
        self._changed = threading.Condition()
        self._active = 0
        self._parked = False
        self._thread: threading.Thread | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        with self._changed:
            self._active += 1
            if self._thread is None or not self._thread.is_alive():  # also after a fork: threads do not survive it
                self._thread = threading.Thread(target=self._tick, name="weft-sandbox-ticker", daemon=True)
                self._parked = False
                self._thread.start()
            elif self._parked:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._active -= 1

    def _tick(self) -> None:
        last_active = time.monotonic()
        while True:
            time.sleep(TICK_MS / 1000)
            self._engine.increment_epoch()
            if self._active:
                last_active = time.monotonic()
            elif time.monotonic() - last_active > _LINGER_S:
                with self._changed:
                    self._parked = True
                    self._changed.wait_for(lambda: self._active > 0)
                    self._parked = False
                last_active = time.monotonic()


_DIGEST_BYTES = 32


@once
def guest_module() -> wasmtime.Module:
    """Return the compiled guest. Slow once (0.4 to 2 s without a cached file, 5 ms with one)."""
    return load(engine(), cache_folder())


def load(target: wasmtime.Engine, folder: Path | None) -> wasmtime.Module:
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
    """Return `weft/guest` below the user's cache folder, or None without a home directory. `weft` itself may be
    readable to others."""
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


def _ours(info: os.stat_result, is_kind: Callable[[int], bool]) -> bool:
    if not is_kind(info.st_mode):
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
