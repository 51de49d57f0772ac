"""The sizing tables of the docs are what the model makes of its inputs."""

from __future__ import annotations

from pathlib import Path

from benchmarks.sizing import Inputs, by_processes, by_volume, tables

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "run-on-postgresql.md"


def test_the_page_has_these_tables() -> None:
    text = PAGE.read_text()
    for each in tables():
        assert each in text, "run `python -m benchmarks.sizing`"


def test_a_billion_runs_a_month() -> None:
    ((_, runs, steps, database, workers, _, disk),) = by_volume(Inputs(), [10**9])
    assert (runs, steps) == ("386", "15,432")
    assert (database, workers, disk) == ("0.71", "2.9", "12,000 GB")


def test_each_notification_wakes_each_process() -> None:
    few, many = by_processes(Inputs(), [10, 100])
    assert (few[-1], many[-1]) == ("0.0045", "0.45")
