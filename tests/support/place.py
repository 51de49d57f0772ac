"""Where a database is: the path of a file of SQLite, or an address of PostgreSQL.

Tests ask a database the same questions wherever it is: one of PostgreSQL is copied into a file first.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from executor.kernel.store.migrate import packaged_migrations
from executor.kernel.store.sqlite.store import SQLiteStore

if TYPE_CHECKING:
    from executor.kernel.store.postgres.store import PostgresStore

Place = Path | str

PAGE = 1000  # rows
NOT_COPIED = ("sqlite_sequence", "sqlite_stat1")  # SQLite's own


def place_of(name: str) -> Place:
    """As the argument of a command."""
    return name if name.startswith("postgresql://") else Path(name)


def store_at(place: Place, *, fault: Callable[[str], None] = lambda name: None) -> SQLiteStore | PostgresStore:
    if isinstance(place, Path):
        return SQLiteStore(place, fault=fault)
    from executor.kernel.store.postgres.store import PostgresStore

    return PostgresStore(place, fault=fault)


@contextmanager
def as_file(place: Place) -> Iterator[Path]:
    """The file itself, or a copy of what the database holds at one moment."""
    if isinstance(place, Path):
        yield place
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weft.db"
        _copy(place, path)
        yield path


def _copy(address: str, path: Path) -> None:
    """A database without a schema becomes a file without one."""
    import psycopg

    with closing(sqlite3.connect(":memory:", isolation_level=None)) as to, psycopg.connect(address) as source:
        source.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        rows = source.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()"
        ).fetchall()
        if not rows:
            path.touch()
            return
        to.deserialize(_empty())
        to.execute("BEGIN")
        for table, columns in _tables(to).items():
            there = [column for column in columns if (table, column) in rows]
            if not there:
                continue
            names, marks = ", ".join(f'"{column}"' for column in there), ", ".join("?" * len(there))
            with source.cursor(f"rows of {table}") as cursor:
                cursor.execute(f"SELECT {names} FROM {table}".encode())
                while page := cursor.fetchmany(PAGE):
                    to.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", page)
        to.execute("COMMIT")
        path.write_bytes(to.serialize())


@cache
def _empty() -> bytes:
    """A file with the newest schema."""
    migrations = packaged_migrations()
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for migration in migrations:
            db.executescript(migration.sql)
        db.execute(f"PRAGMA user_version = {migrations[-1].number:d}")
        return db.serialize()


def _tables(db: sqlite3.Connection) -> dict[str, list[str]]:
    names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {name: _columns(db, name) for name in names if name not in NOT_COPIED}


def _columns(db: sqlite3.Connection, table: str) -> list[str]:
    return [row[0] for row in db.execute("SELECT name FROM pragma_table_info(?)", (table,))]
