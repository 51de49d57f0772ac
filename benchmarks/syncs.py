"""Syncs to disk per step, counted: exact, and free of noise.

    python -m benchmarks.syncs chain|fan|runs [size]     one workload, to be run under strace

With strace the program is run once more doing nothing but opening and closing its database, and the difference is
counted; without it, the store's own count of commits stands in, each of which is one sync.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

from benchmarks import workloads
from benchmarks.measure import Figure, folder, on_loop
from benchmarks.workloads import Document, Noop, all_ended, engine_on
from executor.store.sqlite.store import SQLiteStore

# name: (document, steps of one run, runs, syncs per step that must not be passed)
WORKLOADS: dict[str, tuple[Callable[[], Document], int, int, float]] = {
    "chain": (lambda: workloads.chain(500), 500, 1, 1.05),
    "fan": (lambda: workloads.fan(2_000), 2_002, 1, 0.05),
    "runs": (lambda: workloads.chain(20), 20, 200, 0.05),
}
NAMES = {"chain": "W1", "fan": "W2", "runs": "W4"}


def syncs(repeat: int) -> Iterator[Figure]:
    for name, (_, size, runs, must) in WORKLOADS.items():
        if shutil.which("strace"):
            count, how = _traced(name) - _traced("nothing"), "fsync and fdatasync calls, by strace"
        else:
            count, how = on_loop(partial(_run, name)), "commits of the store"
        yield Figure(f"{NAMES[name]} syncs per step", "", count / size / runs, None, must, absolute=True, note=how)


@cache
def _traced(name: str) -> int:
    """fsync and fdatasync calls of a process that runs one workload."""
    with folder() as path:
        log = path / "calls"
        command = ["strace", "-f", "-e", "trace=fsync,fdatasync", "-o", str(log)]
        program = [sys.executable, "-m", "benchmarks.syncs", name]
        subprocess.run([*command, *program], check=True, cwd=Path(__file__).parents[1], env=os.environ)
        return len(re.findall(r"^\d+ +(?:fsync|fdatasync)\(", log.read_text(), re.MULTILINE))


async def _run(name: str) -> int:
    """Run one workload; `nothing` only opens and closes. Returns the store's count of commits."""
    noop = Noop()
    with folder() as path:
        store = SQLiteStore(path / "weft.db")
        async with engine_on(path, noop, store) as engine:
            if name in WORKLOADS:
                make, size, runs, _ = WORKLOADS[name]
                document = make()
                reached = noop.after(size * runs)
                await asyncio.gather(*(engine.submit(document) for _ in range(runs)))
                await reached
                await all_ended(engine)
        return store.stats.commits


BENCHMARKS: dict[str, Callable[[int], Iterator[Figure]]] = {"syncs": syncs}

if __name__ == "__main__":
    on_loop(lambda: _run(sys.argv[1]))
