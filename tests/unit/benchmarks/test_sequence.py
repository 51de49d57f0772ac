from __future__ import annotations

import itertools

import pytest

from benchmarks import floors, load
from benchmarks.load import Reading
from benchmarks.sample import Program, program
from benchmarks.sequence import LOOK_S, WAIT_MAX_S, AtAnyLoad, Part, Parted, Sampled, Taker, collect
from benchmarks.statistics import Figure, Sample, Spread, Target

OURS, FLOOR, PEER = Program("m:ours"), Program("m:floor"), Program("m:peer")
QUIET, BUSY = 0.1, 1.2


class Scripted:
    """Takes samples without running anything. `foreign` is the load of the samples in turn, then quiet."""

    def __init__(self, values: dict[Program, float], foreign: list[float] | None = None) -> None:
        self.samples: list[Program] = []
        self._values = values
        self._foreign = iter(foreign or [])

    def __call__(self, one: Program) -> Sample:
        self.samples.append(one)
        return Sample((self._values[one],), next(self._foreign, QUIET))


def test_programs_take_turns_and_each_second_round_is_reversed() -> None:
    take = Scripted({OURS: 2.0, FLOOR: 1.0})
    series = collect({"ours": OURS, "floor": FLOOR}, 3, take)
    assert take.samples == [OURS, FLOOR, FLOOR, OURS, OURS, FLOOR]
    assert [(one.quiet, one.thrown) for one in series.values()] == [(3, 0), (3, 0)]


def test_rounds_go_on_until_all_have_enough_quiet_samples() -> None:
    take = Scripted({OURS: 2.0, FLOOR: 1.0}, [BUSY, QUIET, QUIET, BUSY])
    series = collect({"ours": OURS, "floor": FLOOR}, 3, take)
    assert len(take.samples) == 10
    assert (series["ours"].quiet, series["ours"].thrown) == (3, 2)
    assert (series["floor"].quiet, series["floor"].thrown) == (5, 0)


def test_cpu_time_is_compared_at_any_load() -> None:
    take = Scripted({OURS: 2.0, FLOOR: 1.0}, [BUSY] * 100)
    [figure] = AtAnyLoad(Sampled("name", "us", OURS, FLOOR)).figures("durable", 3, take)
    assert (figure.samples, figure.thrown) == (6, 0) and figure.ours is not None


def test_a_busy_machine_ends_the_sequence_after_the_rounds_that_were_wanted() -> None:
    take = Scripted({OURS: 2.0, FLOOR: 1.0}, [BUSY] * 100)
    series = collect({"ours": OURS, "floor": FLOOR}, 4, take)
    assert [one.thrown for one in series.values()] == [4, 4]


def test_a_machine_that_is_busy_at_times_ends_it_after_twice_as_many() -> None:
    take = Scripted({OURS: 2.0, FLOOR: 1.0}, [QUIET, *[BUSY] * 100])
    series = collect({"ours": OURS, "floor": FLOOR}, 4, take)
    assert [len(one.samples) for one in series.values()] == [8, 8]


def test_figures_beside_the_floor_and_each_other_system_are_of_one_sequence() -> None:
    sampled = Sampled(
        "W1", "ms", OURS, FLOOR, Target(1.6), "a note", others={"Peer": PEER}, others_target=Target(3, least=True)
    )
    take = Scripted({OURS: 2.0, FLOOR: 1.0, PEER: 8.0}, [BUSY])
    floor, peer = sampled.figures("chain", 3, take)
    assert floor == Figure(
        "chain",
        "W1",
        "ms",
        Spread(2.0, 2.0, 3),
        Spread(1.0, 1.0, 4),
        "floor",
        target=Target(1.6),
        samples=8,
        thrown=1,
        note="a note",
    )
    assert (peer.beside_name, peer.ratio, peer.verdict, peer.samples) == ("Peer", 4.0, "met", 8)
    assert take.samples.count(OURS) == take.samples.count(PEER) == 4


def test_without_a_floor_there_is_one_figure() -> None:
    [figure] = Sampled("expression", "us", OURS, None, Target(200, of="value")).figures("e", 3, Scripted({OURS: 150.0}))
    assert (figure.beside_name, figure.value, figure.verdict) == ("", 150.0, "met")


def test_long_benchmarks_want_fewer_samples() -> None:
    take = Scripted({OURS: 1.0})
    Sampled("recovery", "s", OURS, share=3).figures("r", 12, take)
    assert len(take.samples) == 4


def test_a_program_that_measures_several_things_runs_once_for_all() -> None:
    class Several(Scripted):
        def __call__(self, one: Program) -> Sample:
            super().__call__(one)
            return Sample((self._values[one], 10 * self._values[one]), QUIET)

    take = Several({OURS: 2.0, FLOOR: 1.0})
    parts = (Part("rate", "1/s", Target(1, "value", least=True)), Part("CPU", "us", beside=False, note="of all"))
    rate, cpu = Parted(parts, OURS, FLOOR).figures("post", 3, take)
    assert len(take.samples) == 6
    assert (rate.name, rate.ratio, rate.verdict, rate.samples) == ("rate", 2.0, "met", 6)
    assert (cpu.name, cpu.ours, cpu.beside, cpu.beside_name, cpu.samples) == ("CPU", Spread(20, 20, 3), None, "", 3)


class FakeMachine:
    """A clock and a load of other programs, in processors, one for each look."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, foreign: list[float]) -> None:
        self.slept_s = 0.0
        self._foreign = itertools.chain(foreign, itertools.repeat(foreign[-1]))
        self._busy_s = 0.0
        monkeypatch.setattr("benchmarks.sequence.time.sleep", self._sleep)
        monkeypatch.setattr(load, "reading", lambda: Reading(self.slept_s, self._busy_s, 0.0))

    def _sleep(self, seconds: float) -> None:
        self.slept_s += seconds
        self._busy_s += next(self._foreign) * seconds


def test_a_sample_starts_when_others_leave_the_machine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = FakeMachine(monkeypatch, [BUSY, BUSY, QUIET])
    Taker().wait()
    assert machine.slept_s == pytest.approx(3 * LOOK_S)


def test_a_sequence_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = FakeMachine(monkeypatch, [BUSY])
    taker = Taker()
    taker.wait()
    assert machine.slept_s == pytest.approx(WAIT_MAX_S, abs=2 * LOOK_S)
    taker.wait()
    assert machine.slept_s == pytest.approx(WAIT_MAX_S, abs=2 * LOOK_S)


def test_a_sample_is_a_process() -> None:
    sample = Taker()(program(floors.runs, 2, 3))
    assert len(sample.values) == 1
    assert sample.values[0] > 0
