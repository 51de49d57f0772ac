"""What the figures of a fleet are made of; no workers are started, and no time is asserted."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks import fleet
from benchmarks.fleet import Curve
from benchmarks.sample import Program
from benchmarks.statistics import Sample


async def test_steps_are_counted_in_a_file_of_the_process(tmp_path: Path) -> None:
    counters = [tmp_path / str(os.getpid()), tmp_path / "of another that has not begun"]
    assert fleet._done(counters) == [0, 0]
    for _ in range(3):
        assert await fleet.step(str(tmp_path))
    assert fleet._done(counters) == [3, 0]


def test_cpu_time_is_that_of_a_process_and_of_what_it_has_started() -> None:
    own = fleet._cpu_s([os.getpid()])
    assert 0 < own <= fleet._cpu_of_tree_s(os.getpid())


def test_one_worker_shares_with_no_other() -> None:
    def take(one: Program) -> Sample:
        workers = int(one.arguments[0])
        return Sample((1_000.0 * workers, 200.0, 50.0, 0.7, 1.2), 0.0)

    found = Curve((1, 4)).figures("fleet", 12, take)
    assert [one.name for one in found] == [
        "1 worker: rate",
        "1 worker: worker CPU",
        "1 worker: database CPU",
        "4 workers: rate",
        "4 workers: worker CPU",
        "4 workers: database CPU",
        "4 workers: smallest share",
        "4 workers: largest share",
    ]
    assert [one.verdict for one in found[-2:]] == ["MISSED", "met"]
    assert {one.samples for one in found} == {fleet.SAMPLES}
