"""`weft serve`, `weft token`, `weft link`: the server in this process, and the ways into a server for programs and for
browsers."""

from __future__ import annotations

import atexit
import html
import os
import tempfile
import webbrowser
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import click

from server.cli.common import call
from server.variables import SettingsError


@click.command()
@click.option("--host", help="Address to listen on (WEFT_HOST, else 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), help="Port (WEFT_PORT, else 8765). 0: a free one.")
@click.option(
    "--db",
    type=click.Path(dir_okay=False),
    help="SQLite file (WEFT_DB, or weft.db in WEFT_DATA, else ./.weft/weft.db).",
)
@click.option("--open", "open_browser", is_flag=True, help="Open it in the browser, signed in.")
@click.option(
    "--behind-proxy",
    metavar="ADDRESSES",
    help="Believe the X-Forwarded headers of these proxies, comma list (WEFT_BEHIND_PROXY). Needs WEFT_BASE_URL.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Serve /metrics without a token on this port (WEFT_METRICS_PORT). 0: a free one.",
)
@click.option(
    "--metrics-host",
    help="The address of that port, else 127.0.0.1 (WEFT_METRICS_HOST). Use 0.0.0.0 in a container.",
)
@click.option("--no-worker", is_flag=True, help="Execute no runs here: `weft worker` does, on the same database.")
@click.option("--read-only", is_flag=True, help="Show everything, execute and change nothing (WEFT_READ_ONLY).")
@click.option(
    "--dev-model",
    is_flag=True,
    help="Start `weft dev-model` as well, for the examples that ask a model; not where WEFT_MODEL_DEV is set.",
)
@click.option(
    "--build-python",
    is_flag=True,
    help="Build Python for function blocks in the background if it is missing, as `weft python build` does.",
)
def serve(
    host: str | None,
    port: int | None,
    db: str | None,
    open_browser: bool,
    behind_proxy: str | None,
    metrics_port: int | None,
    metrics_host: str | None,
    no_worker: bool,
    read_only: bool,
    dev_model: bool,
    build_python: bool,
) -> int:
    """Start the server and resume the runs that were open.

    It prints a link that signs a browser in. The first start makes a token for programs, which `weft token` prints.
    """
    from server.build_python import built_beside
    from server.dev_model.child import NotStarted, running
    from server.process import EXIT_USAGE
    from server.process import serve as run_server
    from server.settings import load_settings

    options = {"WEFT_HOST": host, "WEFT_PORT": port, "WEFT_DB": db, "WEFT_DATA": None if db is None else ""}
    options["WEFT_BEHIND_PROXY"] = behind_proxy
    options["WEFT_METRICS_PORT"] = metrics_port
    options["WEFT_METRICS_HOST"] = metrics_host
    options["WEFT_READ_ONLY"] = "true" if read_only else None
    environ = {**os.environ, **{name: str(v) for name, v in options.items() if v is not None}}
    with ExitStack() as stack:
        try:
            if dev_model and not environ.get("WEFT_MODEL_DEV"):
                environ["WEFT_MODEL_DEV"] = stack.enter_context(running())
            settings = load_settings(environ)
            if build_python:
                stack.enter_context(built_beside())
        except (SettingsError, NotStarted) as error:
            click.echo(f"Error: {error}", err=True)
            return EXIT_USAGE
        return run_server(settings, show=show_in_browser if open_browser else None, work=not no_worker)


def show_in_browser(url: str) -> None:
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


@click.command()
@click.pass_obj
def link(url: str) -> None:
    """Print a link that signs a browser in.

    It works once, within 10 minutes.
    """
    made = call(url, lambda client: client.sign_in_link())
    click.echo(made["url"])
    click.echo(f"It works once, within {made['expires_in_s'] // 60} minutes.", err=True)


COMMANDS = (
    serve,
    link,
)
