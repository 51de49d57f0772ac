"""A sequence: the samples of weft, of its floor and of other systems, in turns, each in a fresh process.

A sample waits (not for ever) until other programs leave the machine alone, and is thrown away when they did not
meanwhile. Rounds are repeated until each program has the samples that are wanted, at most twice as many times; when
by then no sample at all was quiet, the machine is busy, and there is no second half.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Struct

from benchmarks import load
from benchmarks.sample import Program
from benchmarks.statistics import Figure, Sample, Series, Spread, Target

# Others may use this much of a processor when a sample starts.
START_MAX = 0.3
LOOK_S = 0.1
# For a quiet moment, in one sequence.
WAIT_MAX_S = 5.0
LEAST = 2  # samples, of a benchmark that takes long
ROUNDS_MAX = 2
SAMPLE_MAX_S = 300

Take = Callable[[Program], Sample]


class Benchmark(Protocol):
    def figures(self, section: str, wanted: int, take: Take) -> list[Figure]: ...


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
        series = collect(programs, max(LEAST, wanted // self.share), take)
        floor = "floor" if self.floor else ""
        rows = [(floor, self.target), *((name, self.others_target) for name in self.others)]
        return [
            Figure(
                section=section,
                name=self.name,
                unit=self.unit,
                ours=series["ours"].spread(),
                beside=series[beside].spread() if beside else None,
                beside_name=beside,
                target=target,
                samples=sum(len(series[who].samples) for who in ("ours", beside) if who),
                thrown=sum(series[who].thrown for who in ("ours", beside) if who),
                note=self.note if beside == floor else "",
            )
            for beside, target in rows
        ]


class AtAnyLoad(Struct, frozen=True):
    """A benchmark of CPU time, which other programs disturb less than the time that goes by: no sample is thrown away,
    as its programs are taken in turn."""

    benchmark: Benchmark

    def figures(self, section: str, wanted: int, take: Take) -> list[Figure]:
        return self.benchmark.figures(section, wanted, lambda program: Sample(take(program).values))


class Part(Struct, frozen=True):
    """One of the values of a program. `beside`: the floor has it too."""

    name: str
    unit: str
    target: Target | None = None
    beside: bool = True
    note: str = ""


class Parted(Struct, frozen=True):
    """A benchmark whose programs measure several things at once: a value for each of `parts`. `share`: see Sampled."""

    parts: tuple[Part, ...]
    ours: Program
    floor: Program | None = None
    share: int = 1

    def figures(self, section: str, wanted: int, take: Take) -> list[Figure]:
        programs = {"ours": self.ours, **({"floor": self.floor} if self.floor else {})}
        series = collect(programs, max(LEAST, wanted // self.share), take)
        found = []
        for n, part in enumerate(self.parts):
            beside = [series["floor"]] if self.floor and part.beside else []
            found.append(
                Figure(
                    section,
                    part.name,
                    part.unit,
                    spread_of(series["ours"], n),
                    spread_of(beside[0], n) if beside else None,
                    "floor" if beside else "",
                    target=part.target,
                    samples=sum(len(one.samples) for one in [series["ours"], *beside]),
                    thrown=sum(one.thrown for one in [series["ours"], *beside]),
                    note=part.note,
                )
            )
        return found


def spread_of(series: Series, n: int) -> Spread | None:
    """Return the spread of value `n` of the samples, which each have several."""
    return Series([Sample((sample.values[n],), sample.foreign) for sample in series.samples]).spread()


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
        values = program.run(SAMPLE_MAX_S)
        return Sample(values, load.foreign(before, load.reading()))

    def wait(self) -> None:
        while self._waited_s < WAIT_MAX_S:
            before = load.reading()
            time.sleep(LOOK_S)
            self._waited_s += LOOK_S
            others = load.foreign(before, load.reading())
            if others is None or others <= START_MAX:
                break
