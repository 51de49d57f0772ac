from __future__ import annotations

import sqlite3

import pytest

from executor.errors import Conflict, DatabaseDamaged, DatabaseFull, DatabaseUnavailable, DatabaseWriteFailed
from executor.store.sqlite.connection import CommitUncertain
from executor.store.sqlite.writer import Retry, as_weft_error


def test_delays_double_up_to_a_cap_and_spread_by_a_quarter() -> None:
    retry = Retry()
    middle = [round(retry.delay_s(attempt, 0.5) * 1000) for attempt in range(1, 9)]
    assert middle == [50, 100, 200, 250, 250, 250, 250, 250]
    assert retry.delay_s(1, 0.0) == pytest.approx(0.0375)
    assert retry.delay_s(1, 1.0) == pytest.approx(0.0625)


def error(code: int, kind: type[sqlite3.Error] = sqlite3.OperationalError) -> sqlite3.Error:
    made = kind("injected")
    made.sqlite_errorcode = code
    return made


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_BUSY, DatabaseWriteFailed),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, DatabaseWriteFailed),
        (sqlite3.SQLITE_LOCKED, DatabaseWriteFailed),
        (sqlite3.SQLITE_FULL, DatabaseFull),
        (sqlite3.SQLITE_IOERR_FSYNC, DatabaseUnavailable),
        (sqlite3.SQLITE_CORRUPT, DatabaseDamaged),
        (sqlite3.SQLITE_CANTOPEN, DatabaseUnavailable),
        (sqlite3.SQLITE_CONSTRAINT_UNIQUE, Conflict),
        (sqlite3.SQLITE_ERROR, sqlite3.OperationalError),
    ],
)
def test_what_sqlite_says_in_our_words(code: int, kind: type[Exception]) -> None:
    assert type(as_weft_error(error(code))) is kind


def test_an_io_error_of_a_commit_that_did_not_happen_is_worth_another_try() -> None:
    uncertain = CommitUncertain()
    uncertain.__cause__ = error(sqlite3.SQLITE_IOERR_WRITE)
    assert type(as_weft_error(uncertain)) is DatabaseUnavailable
    assert type(as_weft_error(uncertain, again=True)) is DatabaseWriteFailed
    uncertain.__cause__ = error(sqlite3.SQLITE_FULL)
    assert type(as_weft_error(uncertain, again=True)) is DatabaseFull


def test_bugs_stay_what_they_are() -> None:
    bug = TypeError("a bug")
    assert as_weft_error(bug) is bug
    misuse = sqlite3.ProgrammingError("no code at all")
    assert as_weft_error(misuse) is misuse
