"""What programs measure themselves with, and the machine that they run on."""

from __future__ import annotations

import asyncio
import gc
import os
import platform
import sqlite3
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")

MEMORY = "/dev/shm"


def on_uvloop(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine function on a fresh uvloop, as the server does. Programs that embed weft have asyncio's loop."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def cpu_of(program: Callable[[], object]) -> float:
    """CPU seconds of this process, without the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        began = time.process_time()
        program()
        return time.process_time() - began
    finally:
        gc.enable()


@contextmanager
def folder() -> Iterator[Path]:
    """A fresh folder on the disk that is measured: WEFT_BENCH_DIR, or the system's folder for temporary files."""
    with _folder(os.environ.get("WEFT_BENCH_DIR")) as path:
        yield path


@contextmanager
def memory_folder() -> Iterator[Path]:
    """A fresh folder in memory, where there is one: a sync costs nothing there."""
    with _folder(MEMORY if os.access(MEMORY, os.W_OK) else os.environ.get("WEFT_BENCH_DIR")) as path:
        yield path


@contextmanager
def _folder(where: str | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="weft-bench-", dir=where) as name:
        yield Path(name)


def machine() -> dict[str, str]:
    """What the figures depend on; no names of hosts or paths."""
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "processor": _processor(),
        "cpus": str(os.cpu_count()),
        "load": f"{os.getloadavg()[0]:.1f}",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "disk": _file_system(Path(os.environ.get("WEFT_BENCH_DIR", tempfile.gettempdir())).resolve()),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _file_system(path: Path) -> str:
    """Its type. On tmpfs a sync costs nothing, and figures of durable work mean nothing."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return "unknown"
    fitting = [(len(Path(where).parts), kind) for _, where, kind, *_ in mounts if path.is_relative_to(where)]
    kind = max(fitting, default=(0, "unknown"))[1]
    return "tmpfs: syncs cost nothing, set WEFT_BENCH_DIR to a folder on a disk" if kind == "tmpfs" else kind


def memory_bytes() -> int:
    """Of this process: its own, and its part of what it shares."""
    try:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
