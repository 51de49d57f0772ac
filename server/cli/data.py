"""`weft sql` and `weft export`: what runs left in the database, asked with SQL or written to files."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from server.cli.common import ANY_DATABASE, Refused, database_of, name_of, refused_by
from server.cli.render import plain

if TYPE_CHECKING:
    from executor.service.upkeep.sql.asking import Query, View

CELL_CHARS_MAX = 60
LAST_RESORT_S = 1.0


@click.command()
@click.argument("query", required=False)
@ANY_DATABASE
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@click.option(
    "--limit", type=click.IntRange(1, 1_000_000), default=1000, show_default=True, help="Maximum number of rows."
)
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(0.1, 3600), default=10, show_default=True, help="Seconds."
)
@click.option(
    "--last",
    type=click.IntRange(1, 1_000_000),
    metavar="N",
    help="events, outputs, attempts, nodes and steps have the N newest runs only.",
)
@click.option("--views", "list_views", is_flag=True, help="List the generated views and their columns.")
def sql(
    query: str | None,
    db: Path | str | None,
    form: str,
    limit: int,
    timeout_s: float,
    last: int | None,
    list_views: bool,
) -> None:
    """Ask the database with one SQL statement (- for stdin). Nothing can be changed.

    Tables and views are described in docs/reference/database.md. Each block with a known output has a view
    out_WORKFLOW_BLOCK with a column for each property.
    """
    from executor.blocks.types.registry import Registry
    from executor.errors import WeftError
    from executor.service.upkeep.sql import open_asking

    if query is None and not list_views:
        raise Refused("A query is required.", "Example: weft sql 'SELECT id, workflow, status FROM runs LIMIT 10'")
    database = database_of(db)
    try:
        with closing(open_asking(database, Registry.load(), last=last)) as asking:
            if list_views:
                _print_views(asking.views, form)
                return
            text = sys.stdin.read() if query == "-" else query or ""
            with _last_resort(timeout_s + LAST_RESORT_S):
                found = asking.query(text, timeout_s=timeout_s, rows_max=limit)
                _PRINT[form](found)
    except WeftError as error:
        raise refused_by(error) from None
    except sqlite3.Error as error:
        raise Refused(f"{name_of(database)} cannot be read: {error}.") from None
    if found.more:
        click.echo(f"Only the first {limit} rows are shown. Use --limit for more.", err=True)


@contextmanager
def _last_resort(seconds: float) -> Iterator[None]:
    """End the process if the block takes longer. SQLite checks its time limit between two steps; one call of printf and
    one sort are a single step, however long. The connection only reads, so nothing is left incomplete."""

    from executor.service.upkeep.sql.asking import too_long

    def end() -> None:
        error = refused_by(too_long())
        error.show()
        os._exit(error.code)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _print_views(views: list[View], form: str) -> None:
    if form == "json":
        click.echo(json.dumps([{n: getattr(v, n) for n in ("name", "workflow", "block", "columns")} for v in views]))
        return
    for view in views:
        click.echo(f"{view.name}  ({', '.join(view.columns)})")
    if not views:
        click.echo("No views: no stored workflow has a block with a known output.", err=True)


def _print_table(found: Query) -> None:
    rows = [[_cell(value) for value in row] for row in found]
    widths = [max(len(line[n]) for line in [list(found.columns), *rows]) for n in range(len(found.columns))]
    room = shutil.get_terminal_size((160, 24)).columns if sys.stdout.isatty() else None
    for line in [list(found.columns), ["-" * width for width in widths], *rows]:
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        click.echo(text[:room])


def _print_csv(found: Query) -> None:
    writer = csv.writer(sys.stdout)
    writer.writerow(found.columns)
    writer.writerows(["" if value is None else value for value in row] for row in found)


def _print_json(found: Query) -> None:
    """An object a line: rows come out as they are read."""
    for row in found:
        click.echo(json.dumps(dict(zip(found.columns, row, strict=True)), ensure_ascii=False))


def _cell(value: Any) -> str:
    text = "" if value is None else plain(str(value))
    return text if len(text) <= CELL_CHARS_MAX else text[: CELL_CHARS_MAX - 1] + "…"


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
    from executor.service.upkeep.sql import open_asking

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


_PRINT = {"table": _print_table, "csv": _print_csv, "json": _print_json}
COMMANDS = (
    sql,
    export,
)
