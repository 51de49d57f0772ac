"""Read-only SQL on a database for people, and its views. Opens the session of each kind of database."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from compiler.catalog import Catalog
from executor.kernel.process.extras import needs_psycopg
from executor.kernel.store.reading import Reading
from executor.service.upkeep.sql.asking import Asking


def open_reading(database: Path | str) -> Reading:
    """Open a file, or the address of a PostgreSQL database. Raises StoreError, on SQLite sqlite3.Error when the file is
    no database of weft."""
    if isinstance(database, Path):
        from executor.kernel.store.sqlite.reading import open_reading as of_file

        return of_file(database)
    with needs_psycopg():
        from executor.kernel.store.postgres.reading import open_reading as of_address
    return of_address(database)


def open_asking(
    database: Path | str, catalog: Catalog, env_names: Sequence[str] = (), last: int | None = None
) -> Asking:
    """Open a database for statements of people. `last`: the views of journals have the newest so many runs only. Raises
    like `open_reading`."""
    if isinstance(database, Path):
        from executor.service.upkeep.sql.sqlite import open_asking as of_file

        return of_file(database, catalog, env_names, last)
    with needs_psycopg():
        from executor.service.upkeep.sql.postgres import open_asking as of_address
    return of_address(database, catalog, env_names, last)
