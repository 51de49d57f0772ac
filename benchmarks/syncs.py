"""Syncs to disk per step, counted: exact, and free of noise.

The workloads are those that are timed. With strace, a process that runs one is compared with a process that only opens
and closes its database; without it, the store's own count of commits stands in, each of which is one sync.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Callable

from msgspec import Struct

from benchmarks import durable, workloads
from benchmarks.measure import folder
from benchmarks.sample import ROOT, program
from benchmarks.sequence import Take
from benchmarks.sizes import CHAIN, FAN, RUN_STEPS, RUNS
from benchmarks.statistics import Figure, Target
from benchmarks.workloads import Document
from executor.kernel.store.sqlite.store import SQLiteStore

# name: (document, steps of one run, runs)
WORKLOADS: dict[str, tuple[Callable[[], Document], int, int]] = {
    "chain": (lambda: workloads.chain(CHAIN), CHAIN, 1),
    "ahead": (lambda: workloads.ahead(CHAIN), CHAIN, 1),
    "fan": (lambda: workloads.fan(FAN), FAN + 2, 1),
    "runs": (lambda: workloads.chain(RUN_STEPS), RUN_STEPS, RUNS),
}
TIMES = 3


class Counted(Struct, frozen=True):
    """A benchmark that is counted, not timed. The median of three, because groups differ a little."""

    name: str
    workload: str
    target: Target

    def figures(self, section: str, wanted: int, take: Take) -> list[Figure]:
        strace = shutil.which("strace") is not None
        counts = sorted(
            traced(self.workload) - traced("nothing") if strace else commits(self.workload) for _ in range(TIMES)
        )
        _, steps, runs = WORKLOADS[self.workload]
        how = "fsync and fdatasync calls, counted by strace" if strace else "commits, counted by the store"
        value = counts[TIMES // 2] / steps / runs
        return [Figure(section, self.name, "syncs/step", counted=value, target=self.target, note=how)]


def traced(name: str) -> int:
    """fsync and fdatasync calls of a process that runs one workload."""
    with folder() as path:
        log = path / "calls"
        command = ["strace", "-f", "--seccomp-bpf", "-e", "trace=fsync,fdatasync", "-o", str(log)]
        subprocess.run([*command, *program(run, name).command], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        return len(re.findall(r"^\d+ +(?:fsync|fdatasync)\(", log.read_text(), re.MULTILINE))


def commits(name: str) -> int:
    [count] = program(run, name).run()
    return round(count)


def run(name: str) -> list[float]:
    """Run one workload; `nothing` only opens and closes. The store's count of commits."""

    async def main() -> float:
        make, steps, runs = WORKLOADS.get(name, (lambda: workloads.chain(1), 0, 0))
        document = make()
        async with durable.engine_for(document) as (engine, noop):
            await asyncio.gather(*(engine.run(document) for _ in range(runs)))
            assert noop.calls == steps * runs
            assert isinstance(engine.store, SQLiteStore)
            return engine.store.stats.commits

    return [asyncio.run(main())]


BENCHMARKS = {
    "syncs": [
        Counted("W1 syncs per step", "chain", Target(1.05)),
        Counted("W1 syncs per step, durability ahead", "ahead", Target(0.1)),
        Counted("W2 syncs per step", "fan", Target(0.05)),
        Counted("W4 syncs per step", "runs", Target(0.05)),
    ]
}
