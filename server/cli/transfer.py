"""`weft migrate-store`: a whole database from a SQLite file to PostgreSQL, or back, or from before 0.1.0."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import click

from server.cli.common import Database, Refused, check_variables, counted, refused_by

if TYPE_CHECKING:
    from executor.service.upkeep.transfer import Copied


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


COMMANDS = (migrate_store,)
