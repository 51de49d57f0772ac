"""How figures are taken and what one looks like. Knows no benchmark.

Ours and its floor run in turns, in one process, and the best of the repeats counts for both: noise of a shared machine
only ever adds time. So compare ratios; absolute figures belong to the machine they were taken on.
"""

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
from msgspec import Struct

T = TypeVar("T")


class Figure(Struct, frozen=True, omit_defaults=True):
    """One line of the report. `ours` and `floor` are in `unit`; `must` and `aim` bound the ratio, or `ours` itself when
    `absolute`. With `more_is_better` the bounds are minima."""

    name: str
    unit: str
    ours: float
    floor: float | None = None
    must: float | None = None
    aim: float | None = None
    absolute: bool = False
    more_is_better: bool = False
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return self.ours / self.floor if self.floor else None

    @property
    def verdict(self) -> str:
        """`aim`, `must` or `MISSED`; empty when nothing is asked."""
        value = self.ours if self.absolute else self.ratio
        if value is None or self.must is None:
            return ""
        sign = -1 if self.more_is_better else 1
        if self.aim is not None and value * sign <= self.aim * sign:
            return "aim"
        return "must" if value * sign <= self.must * sign else "MISSED"


def best(repeat: int, *programs: Callable[[], float]) -> list[float]:
    """The least that each program returned, run in turns `repeat` times."""
    least = [float("inf")] * len(programs)
    for _ in range(repeat):
        for n, program in enumerate(programs):
            gc.collect()
            least[n] = min(least[n], program())
    return least


def on_loop(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine function on a fresh uvloop."""
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
    with tempfile.TemporaryDirectory(prefix="weft-bench-", dir=os.environ.get("WEFT_BENCH_DIR")) as name:
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
