"""`weft dev`: a server with the workflows of one Python file, restarted when the file changes."""

from __future__ import annotations

from pathlib import Path

import click

from server.cli.common import Refused, check_variables, run_async
from server.cli.serve import show_in_browser


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--port", type=click.IntRange(0, 65535), help="Port (WEFT_PORT, else 8765). 0: a free one.")
@click.option(
    "--db",
    type=click.Path(dir_okay=False),
    help="SQLite file (WEFT_DB, or weft.db in WEFT_DATA, else ./.weft/weft.db).",
)
@click.option("--open", "open_browser", is_flag=True, help="Open the canvas in the browser, signed in.")
def dev(file: Path, port: int | None, db: str | None, open_browser: bool) -> int:
    """Serve the workflows in a Python file, again on each save.

    It listens on 127.0.0.1 alone, deploys the workflows of the file, registers its steps, and prints links to the
    canvas. A file with errors is shown; the last good version continues.
    """
    from server.dev.loop import develop, environment

    check_variables()
    if not file.is_file():
        raise Refused(f"There is no file {file}.")
    show = show_in_browser if open_browser else None
    return run_async(develop(file.resolve(), environment(db, port), click.echo, show))


COMMANDS = (dev,)
