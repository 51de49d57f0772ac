"""Brings a SQLite file to the schema of this code: numbered SQL files, forward only, each in a transaction of its own.

The number of the last one applied is the file's `user_version`. A file with a higher number was written by a newer
weft and is refused untouched. Two processes may open a new file at once: the number is read again inside the
transaction.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from importlib.resources import files

from msgspec import Struct

from executor.errors import SchemaTooNew
from executor.store.connection import Database


class Migration(Struct, frozen=True):
    number: int
    name: str
    sql: str


def migrate(database: Database, migrations: Sequence[Migration]) -> int:
    """Apply what is missing. Returns the version of the file now. Raises SchemaTooNew; sqlite3.Error leaves the file
    as it was."""
    newest = migrations[-1].number
    found = version_of(database.db)
    if found > newest:
        raise SchemaTooNew(
            f"the database has schema {found}, this weft knows schemas up to {newest}",
            hint="use the weft that wrote it, or a newer one",
        )
    for migration in migrations:
        if migration.number > found:
            _apply(database, migration)
    if found < newest:
        # The connection that changed the schema stays slow: an update of a run costs it four times the time of one that
        # found the schema as it is (SQLite 3.40.1, both measured over 3,000 runs).
        database.drop()
    return newest


def packaged_migrations() -> list[Migration]:
    """The `sql/sqlite/NNNN_name.sql` files that come with this package, in order: 1, 2, 3, ..."""
    found = []
    for file in files("executor.store").joinpath("sql", "sqlite").iterdir():
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


def _apply(database: Database, migration: Migration) -> None:
    with database.tx("migrate") as tx:
        if version_of(tx.db) >= migration.number:
            return  # another process was faster
        for statement in split(migration.sql):
            tx.db.execute(statement)
        tx.db.execute(f"PRAGMA user_version = {migration.number:d}")  # a pragma takes no parameters


def split(script: str) -> Iterator[str]:
    """The statements of a script. `Connection.executescript` would do, but it commits the open transaction first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    assert not re.sub(r"--.*", "", statement).strip(), f"unfinished statement: {statement.strip()[:80]}"
