"""A new SQLite database of a test is a copy of one that was migrated: all migrations take 15 ms, and thousands of tests
need a database. What tests start as processes migrates, and so do tests that watch or break the connection."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from executor.kernel.store.migrate import Migration, migrate, packaged_migrations
from executor.kernel.store.sqlite import writer
from executor.kernel.store.sqlite.connection import Database, plain_connect, sync_directory


def install() -> None:
    """From now on in this process."""
    writer.migrate = _copied_or_migrated  # type: ignore[attr-defined]  # `writer` only imports it


def _copied_or_migrated(database: Database, migrations: Sequence[Migration]) -> int:
    path = database.path
    plain = database._connect is plain_connect and database.fault is None and not database.is_open
    if plain and not any(os.path.exists(f"{path}{suffix}") for suffix in ("", "-wal", "-journal")):
        _copy(path)
    return migrate(database, migrations)


def _copy(path: str) -> None:
    """All of it at once, as another process or thread may open it. Where that fails, opening it reports the reason."""
    try:
        sync_directory(path)
        with tempfile.NamedTemporaryFile(dir=os.path.dirname(path) or ".", prefix=".fresh-") as file:
            file.write(_migrated())
            file.flush()
            os.link(file.name, path)
    except OSError:
        return


@cache
def _migrated() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "weft.db")
        migrate(Database(str(path), 500, plain_connect, None), packaged_migrations())
        return path.read_bytes()
