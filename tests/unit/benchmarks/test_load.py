from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import load
from benchmarks.load import Reading, busy_ticks, foreign


def test_all_but_idle_and_waiting_for_the_disk_is_busy() -> None:
    assert busy_ticks("cpu  1 20 300 4000 50000 600000 7000000 80000000 0 0") == 87600321


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (Reading(12.0, 7.0, 3.0), 0.5),  # 2 s busy in 2 s, 1 s of it ours
        (Reading(12.0, 6.0, 3.0), 0.0),
        (Reading(12.0, 5.5, 3.0), 0.0),  # ticks are coarse
        (Reading(10.0, 9.0, 2.0), None),
        (None, None),
    ],
)
def test_foreign_load_is_what_was_busy_and_not_ours(after: Reading | None, expected: float | None) -> None:
    assert foreign(Reading(10.0, 5.0, 2.0), after) == expected


def test_a_system_that_does_not_say_has_no_reading(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(load, "STAT", tmp_path / "missing")
    assert load.reading() is None


def test_readings_only_grow() -> None:
    before, after = load.reading(), load.reading()
    if before is None or after is None:
        pytest.skip("this system has no /proc/stat")
    assert after.at_s >= before.at_s
    assert after.busy_s >= before.busy_s
    assert after.own_s >= before.own_s
