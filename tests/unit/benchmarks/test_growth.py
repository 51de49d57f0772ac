"""What the growth benchmarks run, and what they make of it; no time is asserted."""

from __future__ import annotations

import pytest

from benchmarks import growth
from benchmarks.growth import FLAT, UNIT, Growing
from benchmarks.sample import Program
from benchmarks.sequence import Part
from benchmarks.statistics import Sample


@pytest.mark.parametrize("shape", list(growth.SHAPES))
def test_each_shape_makes_its_steps(shape: str) -> None:
    cpu_us, memory = growth.steps(shape, "3")
    assert cpu_us > 0
    assert memory == int(memory)


def test_a_full_database_is_looked_at_in_each_way() -> None:
    assert len(growth.looks("looks", "30")) == len(growth.LOOKED)


def test_each_size_stands_beside_the_one_before() -> None:
    def take(one: Program) -> Sample:
        size = int(one.arguments[1])
        return Sample((2.0 if size == 10 else 3.0, 500.0 * size), 0.0)

    growing = Growing(
        "chain", (10, 100, 1_000), growth.steps, (Part("a step of {}", UNIT, FLAT),), "memory, {}", samples=1
    )
    found = growing.figures("growth", 12, take)
    assert [one.name for one in found] == [
        "a step of 100 ÷ 10",
        "memory, 10 to 100",
        "a step of 1,000 ÷ 100",
        "memory, 100 to 1,000",
    ]
    assert [one.ratio for one in found] == [1.5, None, 1.0, None]
    assert [one.verdict for one in found] == ["MISSED", "met", "met", "met"]
    assert found[1].counted == 500


def test_a_busy_machine_gives_no_memory_either() -> None:
    growing = Growing("chain", (10, 100), growth.steps, (Part("a step of {}", UNIT, FLAT),), "memory, {}")
    [figure] = growing.figures("growth", 3, lambda one: Sample((1.0, 1.0), 2.0))
    assert figure.busy
