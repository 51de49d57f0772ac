"""`weft serve`, `worker`, `dev`, `dev-model` and `demo`, which are processes; `link` and `config`, which lead there."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from typing import Any

import click

from server.cli.common import BAD_ARGUMENTS, OK, Refused, call, check_variables, counted, run_async, show
from server.reach import SettingsError
from server.shipped import example

REFUSED = 2  # a process does not start with these settings
PORT = click.option("--port", type=click.IntRange(0, 65535), help="Port (WEFT_PORT, else 8765). 0: a free one.")
SERVED = click.option(
    "--db",
    type=click.Path(dir_okay=False),
    help="SQLite file (WEFT_DB, or weft.db in WEFT_DATA, else ./.weft/weft.db).",
)
METRICS_HOST = click.option(
    "--metrics-host",
    help="The address of that port, else 127.0.0.1 (WEFT_METRICS_HOST). Use 0.0.0.0 in a container.",
)


def variables_of(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables that options of the same names stand for. A database is that of no WEFT_DATA."""
    given = {name: value for name, value in options.items() if not (value is None or value is False or value == ())}
    found = {f"WEFT_{name.upper()}": value for name, value in given.items()}
    if "WEFT_DB" in found:
        found["WEFT_DATA"] = ""
    return {
        name: "true" if value is True else ",".join(value) if isinstance(value, tuple) else str(value)
        for name, value in found.items()
    }


@click.command()
@click.option("--host", help="Address to listen on (WEFT_HOST, else 127.0.0.1).")
@PORT
@SERVED
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
@METRICS_HOST
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
def serve(open_browser: bool, no_worker: bool, dev_model: bool, build_python: bool, **options: Any) -> int:
    """Start the server and resume the runs that were open.

    It prints a link that signs a browser in. The first start makes a token for programs, which `weft token` prints.
    """
    from server.build_python import built_beside
    from server.process import serve as run_server
    from server.settings import load_settings

    environ = {**os.environ, **variables_of(options)}
    with ExitStack() as stack:
        try:
            if dev_model and not environ.get("WEFT_MODEL_DEV"):
                environ["WEFT_MODEL_DEV"] = stack.enter_context(example("dev_model").running())
                environ.setdefault("WEFT_PRICE_DEV", "0/0")
            settings = load_settings(environ)
            if build_python:
                stack.enter_context(built_beside())
        except SettingsError as error:
            click.echo(f"Error: {error}", err=True)
            return REFUSED
        return run_server(settings, show=show_in_browser if open_browser else None, work=not no_worker)


def show_in_browser(url: str) -> None:
    """Beside the server. The browser opens a file, readable by its owner alone, that redirects to `url`: all users of
    the machine can read its command line."""
    Thread(target=_open_file_to, args=(url,), daemon=True).start()


def _open_file_to(url: str) -> None:
    import atexit
    import html
    import tempfile
    import webbrowser

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


@click.command()
@click.option(
    "--db",
    type=click.Path(dir_okay=False),
    help="SQLite file on this machine (WEFT_DB, or weft.db in WEFT_DATA, else ./.weft/weft.db).",
)
@click.option(
    "--grace",
    type=click.FloatRange(0, 3600),
    default=8.0,
    show_default=True,
    help="Seconds that running blocks have to end when the worker stops.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Serve /metrics and /healthz on this port (WEFT_METRICS_PORT). 0: a free one.",
)
@METRICS_HOST
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1000),
    help="Runs to execute at the same time; those that wait do not count (WEFT_CONCURRENCY, or 1000).",
)
@click.option("--pool", "pools", multiple=True, help="Execute runs of this pool; repeatable (WEFT_POOLS, or default).")
def worker(grace: float, **options: Any) -> int:
    """Execute runs, without a web server.

    Start as many as you like beside one or more `weft serve`, with the same settings. SIGTERM drains it: it claims
    nothing more, gives running blocks their grace and hands its runs to the other workers.
    """
    from server.settings import load_settings
    from server.worker import work

    try:
        settings = load_settings({**os.environ, **variables_of(options)}, serves=False)
    except SettingsError as error:
        click.echo(f"Error: {error}", err=True)
        return REFUSED
    return work(settings, grace_s=grace)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@PORT
@SERVED
@click.option("--open", "open_browser", is_flag=True, help="Open the canvas in the browser, signed in.")
def dev(file: Path, open_browser: bool, **options: Any) -> int:
    """Serve the workflows in a Python file, again on each save.

    It listens on 127.0.0.1 alone, deploys the workflows of the file, registers its steps, and prints links to the
    canvas. A file with errors is shown; the last good version continues.
    """
    from server.dev.loop import develop

    check_variables()
    if not file.is_file():
        raise Refused(f"There is no file {file}.")
    show = show_in_browser if open_browser else None
    environ = {**os.environ, **variables_of({"host": "127.0.0.1", **options})}
    return run_async(develop(file.resolve(), environ, click.echo, show))


@click.command("dev-model")
@click.option("--port", type=click.IntRange(0, 65535), default=8790, show_default=True, help="0: a free one.")
@click.option("--script", type=click.Path(path_type=Path, dir_okay=False), help="What it answers, as JSON.")
@click.option("--until-eof", is_flag=True, hidden=True, help="End when stdin does: with the process that started it.")
def dev_model(port: int, script: Path | None, until_eof: bool) -> None:
    """Serve a language model that answers from a script.

    For tests, and for examples without a key.

    It listens on 127.0.0.1 alone and speaks the wire formats of OpenAI and Anthropic. Without a script it plays those
    of the examples. Without a fitting rule it repeats the message, or returns example values if the request has an
    output schema. `GET /calls` lists the requests it received.

    The format of the script is in docs/howto/agents.md.
    """
    app, scripts = example("dev_model.app"), example("dev_model.script")
    try:
        read = scripts.of_examples() if script is None else scripts.read_script(script.read_bytes())
    except OSError as error:
        raise Refused(f"{script}: {error.strerror}") from None
    except ValueError as error:
        raise Refused(f"{script}: {error}") from None
    listening = socket.socket()
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((app.HOST, port))
        listening.listen()  # from here on clients can connect, and wait until it serves
    except OSError as error:
        listening.close()
        raise Refused(f"{error}", "Another program may use the port: choose one with --port.") from None
    url = f"http://{app.HOST}:{listening.getsockname()[1]}/v1"
    click.echo(f"dev-model: {url}\nStart the server with: WEFT_MODEL_DEV={url} weft serve")
    sys.stdout.flush()
    if until_eof:
        Thread(target=_end_with_stdin, daemon=True).start()
    try:
        app.build_server(read).run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        listening.close()


def _end_with_stdin() -> None:
    sys.stdin.buffer.read()
    os._exit(OK)


@click.command()
@click.option("--fleet", is_flag=True, required=True, help="Servers and workers on a PostgreSQL of their own.")
@click.option("--servers", type=click.IntRange(1, 8), default=2, show_default=True)
@click.option("--workers", type=click.IntRange(1, 16), default=3, show_default=True)
@click.option(
    "--runs-per-s", type=click.FloatRange(0.1, 200), default=8.0, show_default=True, help="How many runs are started."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8760, show_default=True, help="Of the page. 0: a free one."
)
def demo(fleet: bool, servers: int, workers: int, runs_per_s: float, port: int) -> None:
    """Show a fleet that shares its work while parts are killed.

    Needs the libraries of the extra `demo`. It listens on 127.0.0.1 alone, in a temporary folder that it
    deletes at the end.
    """
    import subprocess

    missing = example("fleet.database").ProgramsMissing
    try:
        example("fleet.run").show(servers, workers, runs_per_s, port, click.echo)
    except missing as error:
        raise Refused(f"{error}") from None
    except subprocess.CalledProcessError as error:
        raise Refused(f"initdb failed: {error.stderr.decode(errors='replace').strip()}") from None
    except (OSError, RuntimeError) as error:
        raise Refused(f"{error}", "Another program may use the port: choose one with --port.") from None
    except KeyboardInterrupt:
        pass


@click.command()
@click.option("--host", help="As of `weft serve`.")
@click.option("--port", help="As of `weft serve`.")
@click.option("--db", help="As of `weft serve`.")
@click.option("--behind-proxy", metavar="ADDRESSES", help="As of `weft serve`.")
@click.option("--read-only", is_flag=True, help="As of `weft serve`.")
@click.option("--all", "all_of_them", is_flag=True, help="Also settings that have their defaults.")
@click.option("--json", "as_json", is_flag=True, help="All settings, as JSON.")
def config(all_of_them: bool, as_json: bool, **options: Any) -> int:
    """Show the settings in effect here, and where they come from.

    It needs no server and shows no secret. Exit code 4 if `weft serve` would refuse a setting.
    """
    import msgspec

    from server.effective import effective, lines_of

    found = effective(os.environ, variables_of(options))
    show(msgspec.to_builtins(found), as_json, lines_of(found, all_of_them=all_of_them))
    wrong = sum(one.problem is not None for one in found)
    if wrong:
        click.echo(f"{counted(wrong, 'problem')}: a server would not start with these settings.", err=True)
    return BAD_ARGUMENTS if wrong else OK
