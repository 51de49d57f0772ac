from __future__ import annotations

import pytest

from benchmarks import syncs
from benchmarks.statistics import Target
from benchmarks.syncs import Counted


def no_sample(one: object) -> object:
    raise AssertionError("counted, not sampled")


def test_the_median_of_what_a_workload_adds_to_a_process_that_only_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([300, 6, 206, 6, 208, 6])
    monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/strace")
    monkeypatch.setattr(syncs, "traced", lambda name: next(counts))
    [figure] = Counted("W1", "chain", Target(1.05)).figures("syncs", 12, no_sample)  # type: ignore[arg-type]  # never called
    assert (figure.counted, figure.verdict) == (202 / 200, "met")
    assert "strace" in figure.note


def test_without_strace_the_commits_of_the_store_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(syncs, "commits", lambda name: 60)
    [figure] = Counted("W4", "runs", Target(0.05)).figures("syncs", 12, no_sample)  # type: ignore[arg-type]  # never called
    assert (figure.counted, figure.verdict) == (0.06, "MISSED")
    assert "strace" not in figure.note


def test_a_counted_workload_runs() -> None:
    [opened], [fan] = syncs.run("nothing"), syncs.run("fan")
    assert fan > opened
