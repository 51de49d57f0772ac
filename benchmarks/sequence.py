"""A sequence: the samples of weft, of its floor and of other systems, in turns, each in a fresh process.

A sample waits (not for ever) until other programs leave the machine alone, and is thrown away when they did not
meanwhile. Rounds are repeated until each program has the samples that are wanted, at most twice as many times; when
by then no sample at all was quiet, the machine is busy, and there is no second half.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping

from msgspec import Struct

from benchmarks import load
from benchmarks.sample import ROOT, Program, values_in
from benchmarks.statistics import Figure, Sample, Series, Target

# Others may use this much of a processor when a sample starts.
START_MAX = 0.3
LOOK_S = 0.1
# For a quiet moment, in one sequence.
WAIT_MAX_S = 10.0
ROUNDS_MAX = 2
SAMPLE_MAX_S = 300

Take = Callable[[Program], Sample]


class Sampled(Struct, frozen=True):
    """A benchmark: what is run, and what is asked of it. `others`: more systems beside which weft is set, by name.
    `share`: a benchmark that takes long wants only one in so many samples."""

    name: str
    unit: str
    ours: Program
    floor: Program | None = None
    target: Target | None = None
    note: str = ""
    share: int = 1
    others: Mapping[str, Program] = {}
    others_target: Target | None = None

    def figures(self, section: str, wanted: int, take: Take) -> list[Figure]:
        programs = {"ours": self.ours, **({"floor": self.floor} if self.floor else {}), **self.others}
        series = collect(programs, max(3, wanted // self.share), take)
        beside = [("floor", self.target)] if self.floor else []
        beside += [(name, self.others_target) for name in self.others]
        return [
            Figure(
                section=section,
                name=self.name,
                unit=self.unit,
                ours=series["ours"].spread(),
                beside=series[name].spread() if name else None,
                beside_name=name,
                target=target,
                samples=sum(len(series[who].samples) for who in ("ours", name) if who),
                thrown=sum(series[who].thrown for who in ("ours", name) if who),
                note=self.note if name in ("", "floor") else "",
            )
            for name, target in beside or [("", self.target)]
        ]


def collect(programs: Mapping[str, Program], wanted: int, take: Take) -> dict[str, Series]:
    """In every other round in reverse, so that none always comes after the same one."""
    series = {name: Series() for name in programs}
    for n in range(wanted * ROUNDS_MAX):
        for name in list(programs)[:: -1 if n % 2 else 1]:
            series[name].samples.append(take(programs[name]))
        if all(one.quiet >= wanted for one in series.values()):
            break
        if n + 1 == wanted and not any(one.quiet for one in series.values()):
            break
    return series


class Taker:
    """Takes samples, and waits before each until the machine is quiet: `WAIT_MAX_S` altogether."""

    def __init__(self) -> None:
        self._waited_s = 0.0

    def __call__(self, program: Program) -> Sample:
        self.wait()
        before = load.reading()
        ended = subprocess.run(
            program.command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=SAMPLE_MAX_S
        )
        return Sample(values_in(ended.stdout), load.foreign(before, load.reading()))

    def wait(self) -> None:
        while self._waited_s < WAIT_MAX_S:
            before = load.reading()
            time.sleep(LOOK_S)
            self._waited_s += LOOK_S
            others = load.foreign(before, load.reading())
            if others is None or others <= START_MAX:
                break
