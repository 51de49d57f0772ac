"""Turns errors of SQLite into errors of weft."""

from __future__ import annotations

import sqlite3

from executor.errors import Conflict, DatabaseDamaged, DatabaseFull, DatabaseUnavailable, DatabaseWriteFailed, Fenced
from executor.kernel.store.sqlite.connection import CommitUncertain, Stale, full_hint, is_full

RESTORE_HINT = "Stop the server and run `weft restore` with a backup; it keeps the damaged file next to the new one."
NO_DATABASE_HINT = f"If it is another program's file, name weft's with --db or WEFT_DB. If it is weft's: {RESTORE_HINT}"
UNAVAILABLE = (
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_NOMEM,
)


def as_weft_error(error: Exception, again: bool = False, path: str = "") -> Exception:
    """Errors of our own, and bugs, stay as they are. DatabaseWriteFailed is worth another try; `again` makes an I/O
    error one: it hit a COMMIT that is known not to be on disk."""
    if isinstance(error, Stale):
        return Fenced(f"run {error.run}: the epoch or the seq of an append is no longer current", run=error.run)
    if isinstance(error, CommitUncertain) and isinstance(error.__cause__, sqlite3.Error):
        error = error.__cause__
    if not isinstance(error, sqlite3.Error):
        return error
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # the rest is the extended code
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or (again and code == sqlite3.SQLITE_IOERR):
        return DatabaseWriteFailed(f"the write failed after all retries: {error}")
    if code == sqlite3.SQLITE_CONSTRAINT:
        return Conflict(f"the database rejected a row: {error}")
    if code == sqlite3.SQLITE_FULL or (code in UNAVAILABLE and path and is_full(path)):
        return DatabaseFull(f"the disk is full: {error}", hint=full_hint(path))
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        unknown = "not a database" in str(error)
        hint = NO_DATABASE_HINT if unknown else RESTORE_HINT
        return DatabaseDamaged(f"the file is damaged or is not a database: {error}", hint=hint)
    if code in UNAVAILABLE:
        return DatabaseUnavailable(f"the database cannot be used: {error}")
    return error
