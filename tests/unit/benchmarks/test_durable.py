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
    assert len(durable.short("first")) == 1
    assert len(durable.short("later")) == sizes.PAUSES - 1


def test_targets_are_those_of_the_short_runs() -> None:
    bounds = {
        name: one.target.bound
        for name in ("chain", "fan", "loop", "runs", "resume")
        for one in durable.BENCHMARKS[name]
        if one.target is not None
    }
    assert bounds == {"chain": 1.6, "fan": 2.5, "loop": 2.3, "runs": 9, "resume": 6}
