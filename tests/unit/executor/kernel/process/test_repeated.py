"""One cause is one line of the log a minute, whatever it stops."""

from __future__ import annotations

import logging

import pytest

from executor.errors import DatabaseFull, DatabaseUnavailable, DatabaseWriteFailed
from executor.kernel.process.repeated import EVERY_S, SHOWN_MAX, Outage

LOG = logging.getLogger("weft.tests")


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_an_outage_is_one_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    outage = Outage(clock := Clock())
    for _ in range(3):
        outage.log(LOG, DatabaseUnavailable("it is away"), "claiming failed")
        outage.log(LOG, DatabaseWriteFailed("no answer"), "writing failed", 5)
    clock.now_s += EVERY_S
    outage.log(LOG, DatabaseUnavailable("it is still away"), "claiming failed")
    assert caplog.messages == [
        "the database failed: it is away: claiming failed (1 times)",
        "the database failed: it is still away: writing failed (15 times), claiming failed (3 times)",
    ]


def test_another_cause_has_a_line_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    outage = Outage(Clock())
    outage.log(LOG, DatabaseUnavailable("it is away"), "claiming failed")
    outage.log(LOG, DatabaseFull("the disk is full"), "writing failed")
    outage.log(LOG, DatabaseFull("the disk is full"), "writing failed")
    assert len(caplog.messages) == 2 and "the disk is full" in caplog.messages[1]


def test_a_line_has_a_bound(caplog: pytest.LogCaptureFixture) -> None:
    outage = Outage(clock := Clock())
    for n in range(SHOWN_MAX + 3):
        outage.log(LOG, DatabaseUnavailable("it is away"), f"part {n} failed")
    clock.now_s += EVERY_S
    outage.log(LOG, DatabaseUnavailable("it is away"), "part 1 failed")
    assert caplog.messages[-1].endswith(", and 2 others") and caplog.messages[-1].count("times") == SHOWN_MAX
