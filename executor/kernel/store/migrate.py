"""Brings a SQLite file to the schema of this code: numbered SQL files, forward only, all that are missing in one
transaction.

The number of the last one applied is the file's `user_version`. A file with a higher number was written by a newer
weft and is refused untouched. A file that is in use already is copied first: `weft.db.schema-1` is what was there
before schema 2, complete and on disk. Two processes may open a file at once: the number is read again inside the
transaction, and while it is open no other process writes, so nothing gets between the copy and the change.
"""

from __future__ import annotations

import logging
import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from importlib.resources import files

from msgspec import Struct

from executor.errors import DatabaseUnavailable, ForeignDatabase, SchemaTooNew, SchemaUnreleased
from executor.kernel.store.sqlite.connection import Database, check_log, create_private, sync_directory
from executor.kernel.store.sqlite.readers import plain_read_only

log = logging.getLogger("weft.store")


APPLICATION_ID = 0x77656674  # "weft"
# Files of before the first release, whose schemas had numbers of their own, are known by a table of events. From this
# number on they have the tables and columns of schema 1, but for those with a default.
UNRELEASED_MIN = 28
TABLES_UNRELEASED = frozenset(("events", "old_events"))
TABLES = frozenset(("workflows", "plans", "blobs", "waits", "inbox", "signals", "writers"))  # so had all of them


class Migration(Struct, frozen=True):
    number: int
    name: str
    sql: str


def migrate(database: Database, migrations: Sequence[Migration]) -> int:
    """Apply what is missing. Returns the version of the file now. Raises ForeignDatabase, SchemaTooNew,
    SchemaUnreleased, DatabaseUnavailable (no copy could be made, or there is a log but no database), sqlite3.Error:
    each leaves the file as it was."""
    newest = migrations[-1].number
    check_log(database.path)
    refuse_newer(_glance(database.path), newest)
    refuse_others(database.db, database.path)
    found = version_of(database.db)
    refuse_newer(found, newest)
    if found < newest:
        _apply(database, migrations)
        # The connection that changed the schema stays slow: an update of a run costs it four times the time of one that
        # found the schema as it is (SQLite 3.40.1, both measured over 3,000 runs).
        database.drop()
    return newest


def packaged_migrations(database: str = "sqlite") -> list[Migration]:
    """Return the `sql/<database>/NNNN_name.sql` files that come with this package, in order: 1, 2, 3, ..."""
    found = []
    for file in files("executor.kernel.store").joinpath("sql", database).iterdir():
        match = re.fullmatch(r"(\d{4})_(\w+)\.sql", file.name)
        if match:
            found.append(Migration(int(match[1]), match[2], file.read_text("utf-8")))
    found.sort(key=lambda migration: migration.number)
    assert [m.number for m in found] == list(range(1, len(found) + 1)), "migrations must be numbered 1, 2, 3, ..."
    return found


def version_of(db: sqlite3.Connection) -> int:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    assert isinstance(version, int)
    return version


def _glance(path: str) -> int:
    """Return the schema version of the file, which is opened for reading only: opening it for writing would switch it
    to a WAL, and closing it would copy an existing one. Returns 0 if it cannot be read; opening it for writing raises
    the reason."""
    try:
        with closing(plain_read_only(path)) as db:
            refuse_others(db, path)
            return version_of(db)
    except sqlite3.Error:
        return 0


def refuse_others(db: sqlite3.Connection, path: str) -> None:
    """An empty file may become a database of weft. Raises ForeignDatabase, SchemaUnreleased."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if tables & TABLES_UNRELEASED and tables >= TABLES:
        raise SchemaUnreleased(f"the file {path}", version_of(db), UNRELEASED_MIN)
    if application == APPLICATION_ID or (application == 0 and not tables):
        return
    raise ForeignDatabase(
        f"{path} is not a weft database: it belongs to another program",
        hint="Set another file with --db or WEFT_DB. A missing file is created.",
    )


def refuse_newer(found: int, newest: int, what: str = "the database") -> None:
    if found > newest:
        raise SchemaTooNew(
            f"{what} has schema {found}, but this weft supports schemas up to {newest}",
            hint="use the weft version that wrote it, or a newer one",
        )


def _apply(database: Database, migrations: Sequence[Migration]) -> None:
    newest = migrations[-1].number
    with database.tx("migrate") as tx:
        found = version_of(tx.db)
        if found >= newest:
            return  # another process was faster
        if found:
            copy = _copy(database, found)
            log.info(
                "migrating %s from schema %d to %d; a copy of the old file is in %s", database.path, found, newest, copy
            )
        for migration in migrations:
            if migration.number > found:
                for statement in split(migration.sql):
                    tx.db.execute(statement)
        tx.db.execute(f"PRAGMA application_id = {APPLICATION_ID:d}")  # a pragma takes no parameters
        tx.db.execute(f"PRAGMA user_version = {newest:d}")


def _copy(database: Database, found: int) -> str:
    """Copy the file as it is, by a connection of its own: one that is inside a transaction cannot. Returns where. A
    copy of the same schema from an earlier try, or from before the file was restored to it, is replaced."""
    target = f"{database.path}.schema-{found}"
    draft = f"{target}.part"
    try:
        with suppress(FileNotFoundError):
            os.unlink(draft)  # of a process that was killed here
        create_private(draft)
        with closing(database.another()) as db:
            db.execute("VACUUM INTO ?", (draft,)).fetchall()
        descriptor = os.open(draft, os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(draft, target)
        sync_directory(target)
    except (OSError, sqlite3.Error, DatabaseUnavailable) as error:
        with suppress(OSError):
            os.unlink(draft)
        raise DatabaseUnavailable(
            f"{database.path} has schema {found} and was not migrated, because it could not be copied to {target}:"
            f" {error}",
            hint="free space for a second file of this size in that directory, then start again",
        ) from error
    return target


def split(script: str) -> Iterator[str]:
    """Return the statements of a script. `Connection.executescript` commits the open transaction first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    assert not re.sub(r"--.*", "", statement).strip(), f"unfinished statement: {statement.strip()[:80]}"
