"""`weft serve`: the server in this process."""

from __future__ import annotations

import atexit
import html
import os
import tempfile
import webbrowser
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import click

from server.variables import SettingsError

if TYPE_CHECKING:
    pass


@click.command()
@click.option("--host", help="Address to listen on (WEFT_HOST, else 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), help="Port (WEFT_PORT, else 8765). 0: a free one.")
@click.option(
    "--db",
    type=click.Path(dir_okay=False),
    help="SQLite file (WEFT_DB, or weft.db in WEFT_DATA, else ./.weft/weft.db).",
)
@click.option("--open", "open_browser", is_flag=True, help="Open it in the browser, signed in.")
def serve(host: str | None, port: int | None, db: str | None, open_browser: bool) -> int:
    """Start the server and resume the runs that were open.

    It prints a link that signs a browser in. The first start makes a token for programs, which `weft token` prints.
    """
    from server.process import EXIT_USAGE
    from server.process import serve as run_server
    from server.settings import load_settings

    options = {"WEFT_HOST": host, "WEFT_PORT": port, "WEFT_DB": db, "WEFT_DATA": None if db is None else ""}
    try:
        settings = load_settings({**os.environ, **{name: str(v) for name, v in options.items() if v is not None}})
    except SettingsError as error:
        click.echo(f"Error: {error}", err=True)
        return EXIT_USAGE
    return run_server(settings, show=_show_in_browser if open_browser else None)


def _show_in_browser(url: str) -> None:
    """Beside the server. The browser opens a file, readable by its owner alone, that redirects to `url`: all users of
    the machine can read its command line."""
    Thread(target=_open_file_to, args=(url,), daemon=True).start()


def _open_file_to(url: str) -> None:
    descriptor, path = tempfile.mkstemp(prefix="weft-", suffix=".html")
    atexit.register(lambda: Path(path).unlink(missing_ok=True))
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(url)}"><title>weft</title>\n'
        )
    webbrowser.open(Path(path).as_uri())


COMMANDS = (serve,)
