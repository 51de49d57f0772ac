"""`weft export`: outputs of a workflow's blocks, as CSV or as a SQLite file for other tools."""

from __future__ import annotations

import csv
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from server.cli.common import ANY_DATABASE, Refused, database_of, name_of, refused_by

if TYPE_CHECKING:
    from executor.service.upkeep.sql.asking import Query


@click.command()
@click.argument("workflow")
@click.option("--node", "block", metavar="BLOCK", help="Only this block. Required for CSV.")
@click.option("--format", "form", type=click.Choice(["csv", "sqlite"]), default="csv", show_default=True)
@click.option("--to", "target", type=click.Path(dir_okay=False, path_type=Path), help="File to write.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(0.1, 86_400), default=600, show_default=True, help="Seconds."
)
@ANY_DATABASE
def export(
    workflow: str,
    block: str | None,
    form: str,
    target: Path | None,
    force: bool,
    timeout_s: float,
    db: Path | str | None,
) -> None:
    """Write outputs of a workflow's blocks as CSV or SQLite.

    A row for each output of a block, with a column for each known property of the output, as in the views of `weft
    sql`, and the output itself. Reads the database, beside a running server or without one.
    """
    from executor.blocks.types.registry import Registry
    from executor.errors import WeftError
    from executor.service.upkeep import export as exporting
    from executor.service.upkeep.opening import open_asking

    if form == "csv" and block is None:
        raise Refused("CSV needs a block.", f"weft export {workflow} --node BLOCK, or --format sqlite for all blocks")
    if form == "sqlite" and target is None:
        raise Refused("SQLite needs a file.", "Add --to FILE.")
    if target is not None and target.exists() and not force:
        raise Refused(f"{target} already exists.", "Use --force to replace it.")
    database = database_of(db)
    if target is not None and target.exists() and isinstance(database, Path) and target.samefile(database):
        raise Refused(f"{target} is the database itself.")
    try:
        with closing(open_asking(database, Registry.load())) as asking:
            wanted = exporting.tables(asking, workflow, block)
            if form == "sqlite":
                assert target is not None
                for name, count in exporting.write_sqlite(asking, wanted, target, timeout_s).items():
                    click.echo(f"{name}  {count} rows")
            elif target is None:
                _write_csv(exporting.rows_of(asking, wanted[0], timeout_s), sys.stdout)
            else:
                with exporting.replacing(target) as part, part.open("w", newline="", encoding="utf-8") as out:
                    _write_csv(exporting.rows_of(asking, wanted[0], timeout_s), out)
    except WeftError as error:
        raise refused_by(error) from None
    except sqlite3.Error as error:
        raise Refused(f"{name_of(database)} cannot be read, or {target} cannot be written: {error}.") from None
    except OSError as error:
        raise Refused(f"{target} cannot be written: {error.strerror}.") from None


def _write_csv(rows: Query, out: TextIO) -> None:
    writer = csv.writer(out)
    writer.writerow(rows.columns)
    writer.writerows(rows)


COMMANDS = (export,)
