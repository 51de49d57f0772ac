"""What the store on PostgreSQL makes of statements and of errors."""

from __future__ import annotations

import inspect
import re

import pytest

pytest.importorskip("psycopg")

import psycopg

import executor.kernel.store.postgres.dialect as dialect
from executor.errors import Conflict, DatabaseFull, DatabaseUnavailable, DatabaseWriteFailed, Fenced
from executor.kernel.store.postgres.dialect import TEXTS
from executor.kernel.store.postgres.errors import as_weft_error


def test_parameters_and_pieces() -> None:
    assert TEXTS["SELECT a FROM t WHERE a = :a AND b::text LIKE '%x'"] == (
        "SELECT a FROM t WHERE a = %(a)s AND b::text LIKE '%%x'"
    )
    assert "jsonb_array_elements_text((%(ids)s)::jsonb)" in TEXTS["a IN $texts(:ids)"]
    assert "value::bigint" in TEXTS["a IN $numbers(:ns)"]
    assert "(value ->> 0)::bigint, (value ->> 1)::text" in TEXTS["(a, b) IN $rows(:rows, nt)"]
    assert TEXTS["FROM t $index(i) WHERE a"] == "FROM t  WHERE a"


def test_nothing_is_sent_to_listeners_in_a_transaction() -> None:
    """It would hold a lock of the whole database over the sync."""
    assert not re.search(r"notify", inspect.getsource(dialect), re.IGNORECASE)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (psycopg.errors.DeadlockDetected("deadlock"), DatabaseWriteFailed),
        (psycopg.errors.LockNotAvailable("lock timeout"), DatabaseWriteFailed),
        (psycopg.errors.AdminShutdown("terminating connection"), DatabaseWriteFailed),
        (psycopg.errors.CannotConnectNow("the database system is starting up"), DatabaseWriteFailed),
        (psycopg.OperationalError("server closed the connection unexpectedly"), DatabaseWriteFailed),
        (psycopg.errors.UniqueViolation("duplicate key"), Conflict),
        (psycopg.errors.DiskFull("no space left"), DatabaseFull),
        (psycopg.errors.OutOfMemory("out of memory"), DatabaseUnavailable),
    ],
)
def test_what_postgresql_says_in_our_words(error: psycopg.Error, kind: type[Exception]) -> None:
    assert type(as_weft_error(error)) is kind


def test_errors_of_our_own_and_bugs_stay_as_they_are() -> None:
    for error in (Fenced("fenced", run="r"), psycopg.errors.UndefinedTable("no table"), ValueError("x")):
        assert as_weft_error(error) is error
