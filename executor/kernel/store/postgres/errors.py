"""Turns errors of PostgreSQL into errors of weft."""

from __future__ import annotations

from typing import Final

import psycopg

from executor.errors import BadRequest, Conflict, DatabaseFull, DatabaseUnavailable, DatabaseWriteFailed
from executor.kernel.store.postgres.connection import LOST, CommitUncertain

AGAIN: Final = ("40P01", "40001", "55P03", "57014")  # deadlock, serialization, a lock was not to be had, a time limit
FULL: Final = ("53100",)
# Messages of a server that accepts no session now. The first three have one SQLSTATE, which libpq does not pass on.
PASSING: Final = (
    "the database system is",
    "not yet accepting connections",
    "terminating connection",
    "too many clients",
    "too many connections",
    "remaining connection slots",
    "pause",
)
NOT_STORABLE: Final = (None, "22021", "22P05")  # psycopg raises it without asking; a NUL, or half of a character


def message_of(error: BaseException) -> str:
    return " ".join(str(error).split())


def as_weft_error(error: Exception) -> Exception:
    """Errors of our own, and bugs, stay as they are. DatabaseWriteFailed is worth another try: nothing is on disk, or
    what may be made twice (a schema, the row of a writer)."""
    if isinstance(error, CommitUncertain) and isinstance(error.__cause__, psycopg.Error):
        error = error.__cause__
    if not isinstance(error, psycopg.Error):
        return error
    state = error.sqlstate or ""
    text = message_of(error)
    if state in AGAIN or state.startswith(LOST) or (isinstance(error, psycopg.OperationalError) and not state):
        return DatabaseWriteFailed(f"the write failed after all retries: {text}")
    if state.startswith("23"):
        return Conflict(f"the database rejected a row: {text}")
    if isinstance(error, psycopg.DataError):
        return not_storable(error)
    if state in FULL:
        return DatabaseFull(f"the disk of the database is full: {text}")
    if isinstance(error, psycopg.OperationalError):
        return DatabaseUnavailable(f"the database cannot be used: {text}")
    return error


def may_pass(error: Exception) -> bool:
    """Returns True if a session could not be opened for a reason that ends by itself: there is no server, or it is
    about to start or to stop. A refusal for good, such as of a wrong password, is FATAL with another message."""
    text = str(error.__cause__ if isinstance(error, CommitUncertain) else error)
    return "FATAL" not in text or any(words in text for words in PASSING)


def not_storable(error: psycopg.DataError) -> Exception:
    """A text that no text of PostgreSQL can be, such as one with a NUL; else the error itself."""
    if error.sqlstate in NOT_STORABLE:
        return BadRequest(f"PostgreSQL cannot store this text: {message_of(error)}", code="text_not_storable")
    return error
