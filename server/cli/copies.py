"""`weft backup`, `restore` and `migrate-store`: copies of whole databases."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import click

from server.cli.common import (
    ANY_DATABASE,
    Database,
    Refused,
    check_variables,
    counted,
    database_file,
    existing_database,
    refused_by,
)
from server.cli.render import plain
from server.cli.upkeep import keys_of, on_file, secrets_of
from server.reach import database_address

if TYPE_CHECKING:
    from executor.service.upkeep.restore_postgres import Restored
    from executor.service.upkeep.transfer import Copied


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@ANY_DATABASE
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def backup(file: Path, db: Path | str | None, force: bool) -> None:
    """Copy the database to FILE, while the server works or not.

    The copy is one moment of the database, checked and on disk when this returns.
    """
    from executor.service.upkeep import backup as copies

    path = existing_database(_of_sqlite(db, f"pg_dump --format=custom --file={file}"))
    made = on_file(lambda: copies.backup(path, file, replace=force))
    click.echo(f"{made.path}: {counted(made.runs, 'run')}, {made.open_runs} of them open; {made.bytes:,} bytes.")
    click.echo(_about_key(path.with_suffix(".key")), err=True)


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@ANY_DATABASE
@click.option("--force", is_flag=True, help="Replace the current database, which is kept next to the new one.")
def restore(file: Path, db: Path | str | None, force: bool) -> None:
    """Make FILE, a backup, the database. All servers and workers must be stopped.

    On PostgreSQL, FILE is a dump of `pg_dump --format=custom`. Runs that were open when the backup was made resume when
    the server starts, and repeat their work after it.
    """
    from executor.service.upkeep import backup as copies

    if db is None:
        check_variables()
        db = database_address(os.environ)
    if isinstance(db, str):
        _restore_postgres(file, db, force)
        return
    path = database_file(db)
    if path.exists() and path.samefile(file):
        raise Refused(f"{file} is the database itself.")
    found, previous = on_file(lambda: copies.restore(file, path, replace=force))
    click.echo(f"{path}: {counted(found.runs, 'run')}, {found.open_runs} of them open.")
    if previous is not None:
        click.echo(f"The previous database is {previous}.", err=True)
    key = path.with_suffix(".key")
    if not key.exists() and not os.environ.get("WEFT_SECRET_KEY"):
        click.echo(
            f"There is no {key}: no process starts on the database without the key that it was made with. "
            "Put the old key file there first, or set WEFT_SECRET_KEY.",
            err=True,
        )


@click.command("migrate-store")
@click.argument("source", type=Database())
@click.argument("target", type=Database())
def migrate_store(source: Path | str, target: Path | str) -> None:
    """Copy a database from SQLite to PostgreSQL, or back.

    One of SOURCE and TARGET is a file, the other an address; a SOURCE from before weft 0.1.0 may be copied to either.
    Everything is copied with its ids and numbers, read back and compared. All servers and workers on both must be
    stopped. SOURCE is not changed; TARGET must be empty, and stays so when anything fails.
    """
    from executor.errors import WeftError
    from executor.service.upkeep.transfer import transfer

    check_variables()
    if isinstance(source, Path) and not source.is_file():
        raise Refused(f"There is no database {source}.")

    def tell(copied: Copied) -> None:
        if copied.count:
            click.echo(f"{copied.name}: {counted(copied.count, 'row' if copied.name != 'journals' else 'run')}")

    try:
        transfer(source, target, tell)
    except WeftError as error:
        raise refused_by(error) from None
    except (sqlite3.Error, OSError) as error:
        raise Refused(f"Failed: {error}.") from None
    click.echo("Done: all rows and all events were read back, and are those of the source.")
    click.echo(
        "Set WEFT_DB to the new database for every server and worker, and do not start one on the old database again.",
        err=True,
    )
    key = source.with_suffix(".key") if isinstance(source, Path) else None
    if key is not None and key.exists() and not os.environ.get("WEFT_SECRET_KEY"):
        click.echo(f'Links that were sent stay valid with the same key: WEFT_SECRET_KEY="hex:$(cat {key})"', err=True)
    else:
        click.echo("Links that were sent stay valid with the same WEFT_SECRET_KEY.", err=True)


def _restore_postgres(file: Path, address: str, force: bool) -> None:
    from executor.kernel.process.extras import needs_psycopg
    from executor.service.upkeep.findings import Evidence

    def progress(line: str) -> None:
        click.echo(line, err=True)

    def work() -> Restored:
        with needs_psycopg():
            from executor.service.upkeep.restore_postgres import restore as restored
        evidence = Evidence(secrets=secrets_of(address), keys=keys_of(address))
        return restored(file, address, replace=force, evidence=evidence, progress=progress)

    made = on_file(work)
    click.echo(f"{made.database}: {counted(made.runs, 'run')}, {made.open_runs} of them open.")
    if made.previous is not None:
        progress(f"The previous database is {made.previous}. Once you no longer need it: dropdb {made.previous}")
    for condition in made.report.conditions:
        if condition.name in ("schema", "key") and condition.level != "ok":
            progress(f"{condition.name}: {plain(condition.what)}; {plain(condition.fix)}")


def _of_sqlite(db: Path | str | None, command: str) -> Path | None:
    """`--db`, when it is a file. `command`: what PostgreSQL has for it. Raises Refused."""
    if isinstance(db, str) or (db is None and database_address(os.environ) is not None):
        address = '"$WEFT_DB"' if db is None else "ADDRESS"
        message = "This command copies SQLite files, and the database is on PostgreSQL."
        raise Refused(message, f"Use its own means: {command} --dbname={address}")
    return db


def _about_key(key: Path) -> str:
    if os.environ.get("WEFT_SECRET_KEY"):
        return "WEFT_SECRET_KEY is not in it: keep a copy in another place. No process starts on the backup without it."
    return f"The key file {key} is not in it: keep a copy in another place. No process starts on the backup without it."
