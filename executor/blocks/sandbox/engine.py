"""The one engine of a process, and the clock of its hard deadlines: a daemon thread that advances the engine's epoch
every 5 ms while guests run.

The clock keeps running for a second after the last guest call, so that steady work does not pay for waking it, and then
sleeps: an idle process has no wake-ups. A late tick makes a deadline later, never earlier, so a loaded machine gets no
false timeouts.

The guest program: QuickJS as WebAssembly, compiled once per machine and kept in the user's cache folder.

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
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import metadata, resources
from pathlib import Path
from typing import TypeVar

import wasmtime

T = TypeVar("T")

TICK_MS = 5
_LINGER_S = 1.0


def once(make: Callable[[], T]) -> Callable[[], T]:
    """`make`, called once over all threads; threads that come meanwhile wait for it. If it raises, the next tries.

    Not `functools.lru_cache`: it lets two threads that come together make one each, and keeps one of them. Two engines
    in one process are worse than slow: wasmtime aborts the whole process when a module of one meets a function of the
    other."""
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
        """Advance epochs inside this block."""
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
