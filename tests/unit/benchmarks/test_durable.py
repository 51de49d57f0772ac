"""That the workloads do what they say; no time is asserted."""

from __future__ import annotations

import pytest

from benchmarks import durable, sizes, workloads
from benchmarks.workloads import Document


@pytest.mark.parametrize(
    ("document", "steps", "runs"),
    [
        (workloads.chain(3), 3, 1),
        (workloads.fan(4), 6, 1),
        (workloads.loop(3, 2), 6, 1),
        (workloads.chain(2), 2, 5),
    ],
)
async def test_a_workload_makes_all_its_steps(document: Document, steps: int, runs: int) -> None:
    [value] = await durable.once(document, steps, runs)
    assert value > 0


def test_a_step_is_an_effect() -> None:
    assert workloads.Noop.spec.effect == "write"


def test_answers_and_short_runs_are_measured_one_by_one() -> None:
    assert len(durable.resume()) == sizes.PAUSES
    assert len(durable.short()) == 2


def test_each_workload_has_its_target() -> None:
    bounds = {name: one.target.bound for name, ones in durable.WORKLOADS.items() for one in ones if one.target}
    assert bounds == {"chain": 1.45, "fan": 2.8, "loop": 1.9, "runs": 9, "resume": 6}
