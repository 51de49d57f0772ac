"""The `weft` command: start the server, check and draw plans without it, and drive runs through its HTTP API.

Exit codes: 0 done; 1 the run failed, or the document has errors; 2 the run was cancelled; 3 the run waits for an
answer or a signal; 4 the arguments are wrong, or the server refused them; 5 no server answers. Results go to stdout,
everything said about them to stderr, so a pipe gets data only. Heavy imports are inside the commands:
`weft --help` answers at once.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import getpass
import html
import json
import os
import sys
import tempfile
import webbrowser
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from server.cli import access, export, history, inbox, lifecycle, sql, triggers, upkeep, workflows
from server.cli.cache import cache
from server.cli.sections import Sections
from server.tokens import find, is_token
from server.variables import DEFAULT_URL, SettingsError, check_names, server_url

if TYPE_CHECKING:
    from compiler.plan import Plan
    from compiler.render import Format
    from server.client import ClientError, WeftClient

OK, FAILED, CANCELLED, WAITING, BAD_ARGUMENTS, NO_SERVER = 0, 1, 2, 3, 4, 5
EXIT_BY_STATUS = {"succeeded": OK, "failed": FAILED, "cancelled": CANCELLED, "waiting": WAITING}
T = TypeVar("T")


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit. Wrong arguments exit with 4, because 2 says that a run was cancelled."""
    try:
        code = weft.main(arguments, prog_name="weft", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = OK
    except click.ClickException as error:
        error.show()
        code = error.code if isinstance(error, _Refused) else BAD_ARGUMENTS
    except click.Abort:
        click.echo("Stopped.", err=True)
        code = 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left: `weft events … | head`
        code = OK
    sys.exit(code if isinstance(code, int) else OK)


class _Refused(click.ClickException):
    """An error with its exit code and the next step."""

    def __init__(self, message: str, hint: str = "", code: int = BAD_ARGUMENTS) -> None:
        super().__init__(message)
        self.hint = hint
        self.code = code

    def show(self, file: Any = None) -> None:
        click.echo(f"{click.style('Error:', fg='red', bold=True)} {self.message}", err=True)
        if self.hint:
            click.echo(f"  {self.hint}", err=True)


@click.group(cls=Sections, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--url", help=f"The server to talk to (WEFT_URL, else the port WEFT_PORT here, else {DEFAULT_URL}).")
@click.version_option(package_name="weft", message="weft %(version)s")
@click.pass_context
def weft(ctx: click.Context, url: str | None) -> None:
    """Run workflows that people draw: durably, with approvals, and with every step on record.

    `weft serve` starts the server. Commands find its token by themselves where it runs; elsewhere set WEFT_TOKEN.
    """
    ctx.obj = url or server_url(os.environ)
    if os.environ.get("NO_COLOR"):
        ctx.color = False


# Without a server


@weft.command()
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

    given = {"WEFT_HOST": host, "WEFT_PORT": port, "WEFT_DB": db, "WEFT_DATA": None if db is None else ""}
    try:
        settings = load_settings({**os.environ, **{name: str(v) for name, v in given.items() if v is not None}})
    except SettingsError as error:
        click.echo(f"Error: {error}", err=True)
        return EXIT_USAGE
    return run_server(settings, show=_show_in_browser if open_browser else None)


@weft.command()
@click.argument("file")
@click.option("--trigger", help="Block to start at, if there are several triggers.")
@click.option("--json", "as_json", is_flag=True, help="Findings as JSON.")
def validate(file: str, trigger: str | None, as_json: bool) -> int:
    """Check the workflow in FILE (- for stdin). Exit code 1 when it has errors."""
    from server.cli.render import diagnostic_lines

    _, found = _compile(_read_document(file), trigger)
    errors = sum(d["severity"] == "error" for d in found)
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        for line in diagnostic_lines(found):
            click.echo(line)
        click.echo(_count(errors, "error") + ", " + _count(len(found) - errors, "warning"), err=True)
    return FAILED if errors else OK


@weft.command()
@click.argument("workflow", metavar="NAME|FILE")
@click.option("--trigger", help="Block to start at, if there are several triggers.")
@click.option("--version", type=click.IntRange(1), help="Version of a stored workflow. Default: the active one.")
@click.option("--expanded", is_flag=True, help="Show each branch of a parallel whose number of branches is known.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "dot", "mermaid"]), default="text", show_default=True
)
@click.pass_obj
def plan(url: str, workflow: str, trigger: str | None, version: int | None, expanded: bool, form: Format) -> int:
    """Show what a workflow is compiled to.

    One in a file needs no server. Nothing runs.
    """
    from server.cli.render import diagnostic_lines

    if not _is_file(workflow):
        drawn = _call(
            url,
            lambda client: client.plan(workflow, version=version, trigger=trigger, form=form, expanded=expanded),
        )
        click.echo(json.dumps(json.loads(drawn), indent=2, ensure_ascii=False) if form == "json" else drawn)
        return OK
    from compiler.render import render

    compiled, found = _compile(_read_document(workflow), trigger)
    if compiled is None:
        for line in diagnostic_lines(found):
            click.echo(line, err=True)
        return FAILED
    click.echo(render(compiled, form, expanded=expanded))
    return OK


# With a server


@weft.command()
@click.argument("file")
@click.option("--name", help="Name of the workflow. Default: the name in the document.")
@click.pass_obj
def deploy(url: str, file: str, name: str | None) -> int:
    """Store the workflow in FILE as the active version of NAME."""
    document = _read_document(file)
    saved = _call(url, lambda client: client.deploy(document, name))
    _say_warnings(saved)
    click.echo(workflows.stored_line(saved))
    return OK


@weft.command()
@click.argument("workflow", metavar="NAME|FILE")
@click.option("--input", "input_text", metavar="JSON|@FILE", help="Input of the run, as JSON or @FILE.")
@click.option("--trigger", help="Block to start at, if there are several triggers.")
@click.option("--version", type=click.IntRange(1), help="Version of a stored workflow. Default: the active one.")
@click.option("--stop-after", metavar="BLOCK", help="Stop after this block.")
@click.option("--key", help="Idempotency key: the same key returns the same run.")
@click.option("--follow", is_flag=True, help="Wait until it ends or needs an answer, and print its output.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON: the answer, or with --follow the events, one per line."
)
@click.pass_obj
def run(
    url: str,
    workflow: str,
    input_text: str | None,
    trigger: str | None,
    version: int | None,
    stop_after: str | None,
    key: str | None,
    follow: bool,
    as_json: bool,
) -> int:
    """Run a stored workflow, or the document in a file.

    With --follow the exit code tells the result: 0 succeeded, 1 failed, 2 cancelled, 3 waiting for an answer or a
    signal.
    """
    from server.cli import follow as following

    value = _read_input(input_text)
    what = _read_document(workflow) if _is_file(workflow) else workflow
    if version is not None and what is not workflow:
        raise _Refused("--version is for stored workflows.", "Leave it out to run a file, or name a stored workflow.")

    async def start(client: WeftClient) -> str:
        started = await client.start(
            what, input=value, trigger=trigger, version=version, idempotency_key=key, stop_after=stop_after
        )
        _say_warnings(started)
        if follow:
            click.echo(f"run {started['run']}  {client.url}{started['urls']['page']}", err=True)
            return await following.follow(client, started["run"], as_json=as_json)
        if as_json:
            click.echo(json.dumps(started, indent=2))
        else:
            click.echo(f"run {started['run']} {started['status']}")
            click.echo(f"  status  {client.url}{started['urls']['self']}")
            click.echo(f"  events  {client.url}{started['urls']['events']}")
            click.echo(f"  page    {client.url}{started['urls']['page']}")
        return "accepted"

    return EXIT_BY_STATUS.get(_call(url, start), OK)


@weft.command()
@click.argument("run_id", metavar="RUN")
@click.option("--after", type=click.IntRange(0), default=0, help="Only events after this number.")
@click.option("--follow", is_flag=True, help="Show new events until the run ends.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
@click.pass_obj
def events(url: str, run_id: str, after: int, follow: bool, as_json: bool) -> int:
    """Print the journal of RUN."""
    from server.cli import follow as following

    _call(url, lambda client: following.print_events(client, run_id, after, live=follow, as_json=as_json))
    return OK


@weft.command()
@click.argument("run_id", metavar="RUN")
@click.argument("node", required=False)
@click.option("--at", "seq", type=click.IntRange(1), metavar="N", help="After event N. Default: now.")
@click.pass_obj
def why(url: str, run_id: str, node: str | None, seq: int | None) -> int:
    """Explain the state of RUN's nodes, or of NODE alone."""
    from server.cli.render import error_text, plain, styled_status, with_clock

    async def ask(client: WeftClient) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any] | None]:
        about = {} if node and not seq else await client.run(run_id)
        found = await client.why(run_id, node, seq)
        one = node and not seq and len(found) == 1
        kept = (await client.node(run_id, found[0]["key"], preview=200))["checkpoint"] if one else None
        return about, found, kept

    about, found, kept = _call(url, ask)
    if seq is not None:
        history.say_if_past_the_end(seq, about["seq"])
        about = {}
    if error := about.get("error"):
        place = f" at {error['block']}" if error.get("block") else ""
        click.echo(f"{styled_status(about['status'])}{plain(place)}: {plain(error_text(error))}")
    elif about.get("finished_at_ms"):
        click.echo(styled_status(about["status"]))
    for item in found:
        click.echo(f"{item['key']}  {styled_status(item['state'])}")
        for reason in item["reasons"]:
            click.echo(f"  {plain(with_clock(reason))}")
    if kept is not None:
        cut = kept["value_truncated"]
        value = kept["value_preview"] if cut else json.dumps(kept["value"], ensure_ascii=False)
        said = with_clock(f"attempt {kept['attempt']} saved a checkpoint at {kept['at_ms']} ms: ")
        click.echo(f"  {said}{plain(value)}")
    return OK


@weft.command()
@click.argument("token", metavar="TOKEN|LINK")
@click.option("--action", help="One of the actions, such as approve.")
@click.option("--field", "fields", multiple=True, metavar="NAME=VALUE", help="A field of the form. Repeatable.")
@click.option("--by", default=None, help="Name to record. Default: your login name.")
@click.pass_obj
def answer(url: str, token: str, action: str | None, fields: tuple[str, ...], by: str | None) -> int:
    """Answer a wait by its link or token. The first answer counts."""
    origin, token = _split_link(token)
    pairs = [_split_field(text) for text in fields]

    async def send(client: WeftClient) -> dict[str, Any]:
        wait = await client.wait(token)
        return await client.answer(token, _typed(pairs, wait.get("schema")), action=action, by=by or _login())

    # The link is its own credential; our server's token is for our server alone.
    wait = _call(origin or url, send, with_token=origin in (None, url.rstrip("/")))
    click.echo(f"Answered {wait['label']!r} of run {wait['run']}.")
    return OK


@weft.command()
@click.argument("run_id", metavar="RUN")
@click.option("--reason", default="", help="Recorded in the journal.")
@click.pass_obj
def cancel(url: str, run_id: str, reason: str) -> int:
    """Cancel RUN and the runs it has started. Running blocks are stopped and waits are closed."""
    if _call(url, lambda client: client.cancel(run_id, reason)):
        click.echo(f"{run_id} is being cancelled.")
        return OK
    raise _Refused(f"Run {run_id} has already ended.", f"See `weft events {run_id}`.")


@weft.command()
@click.option("--workflow", help="Only runs of this workflow.")
@click.option("--parent", help="Only runs started by this run.")
@click.option("--status", type=click.Choice(["queued", "running", "waiting", "succeeded", "failed", "cancelled"]))
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@click.option("--json", "as_json", is_flag=True)
@click.pass_obj
def runs(url: str, workflow: str | None, parent: str | None, status: str | None, limit: int, as_json: bool) -> int:
    """List runs, newest first."""
    from server.cli.render import run_lines

    found = _call(url, lambda client: client.runs(workflow=workflow, status=status, parent=parent, limit=limit))
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return OK
    for line in run_lines(found):
        click.echo(line)
    if not found:
        narrowed = workflow or parent or status
        click.echo("No runs match." if narrowed else "No runs yet. Start one with `weft run NAME`.", err=True)
    return OK


weft.add_command(cache)
for _topic in (access, lifecycle, inbox, history, upkeep, sql, export, triggers, workflows):
    for _command in _topic.COMMANDS:
        weft.add_command(_command)


# Helpers


def _call(url: str, action: Callable[[WeftClient], Awaitable[T]], *, with_token: bool = True) -> T:
    """Await `action(client)` and turn what the client raises into an exit."""
    from server.client import ClientError, WeftClient

    _check_variables()
    _check_address(url)
    try:
        token = find(os.environ, url) if with_token else None
    except SettingsError as error:
        raise _Refused(f"{error}") from None
    if token and not is_token(token):
        raise _Refused(
            "WEFT_TOKEN contains characters that are not allowed in a token.", "Set it to the token of the server."
        )

    async def go() -> T:
        async with WeftClient(url, token or None) as client:
            return await action(client)

    try:
        return _run(go())
    except ClientError as error:
        raise _refused(error) from None


def _check_variables() -> None:
    try:
        check_names(os.environ)
    except SettingsError as error:
        raise _Refused(f"{error}") from None


def _check_address(url: str) -> None:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine:
        raise _Refused(
            f"{url!r} is not the address of a server.",
            f"Set WEFT_URL or --url to what `weft serve` prints, such as {DEFAULT_URL}.",
        )


def _run(work: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        raise click.Abort from None


def _refused(error: ClientError) -> _Refused:
    from server.cli.render import diagnostic_lines
    from server.client import ApiError

    if not isinstance(error, ApiError):
        return _Refused(error.message, error.hint, NO_SERVER)
    found = error.problem.get("diagnostics") or []
    hint = "\n  ".join(diagnostic_lines(found)) or error.hint
    message = (
        error.message
        if error.problem.get("pointer") in (None, "") or found
        else f"{error.problem['pointer']}: {error.message}"
    )
    if error.status == 401:
        if os.environ.get("WEFT_TOKEN"):
            message = "The server refused the token in WEFT_TOKEN."
        hint = (
            "The token is next to the database: run this in the folder where `weft serve` runs, or with its WEFT_DB or "
            "WEFT_DATA. Elsewhere set WEFT_TOKEN to what `weft token` prints there."
        )
    elif error.code == "no_such_route":
        hint = "WEFT_URL and --url are the server's address alone, without /api; is the server as new as this command?"
    return _Refused(message, hint, NO_SERVER if error.status >= 500 else BAD_ARGUMENTS)


def _compile(document: Any, trigger: str | None) -> tuple[Plan | None, list[dict[str, Any]]]:
    """(plan or None, findings as JSON), in this process, without a server."""
    import msgspec

    from compiler.compile import compile_document
    from executor.blocks.python import python_blocks
    from executor.blocks.registry import Registry
    from executor.sandbox import Sandbox

    _check_variables()
    named = [part.strip() for part in os.environ.get("WEFT_FUNCTIONS", "").split(",") if part.strip()]
    try:
        own = python_blocks(named)
    except ValueError as error:
        raise _Refused(f"WEFT_FUNCTIONS: {error}") from None
    sandbox = Sandbox()
    try:
        compiled = compile_document(document, Registry.load(own, sandbox=sandbox), trigger=trigger)
    finally:
        sandbox.close()
    return compiled.plan, msgspec.to_builtins(compiled.diagnostics)


def _show_in_browser(url: str) -> None:
    """Beside the server. The browser is given a file, for its owner alone, that leads to `url`: what is in its command
    line can be read by all users of the machine."""
    Thread(target=_open_file_to, args=(url,), daemon=True).start()


def _open_file_to(url: str) -> None:
    descriptor, path = tempfile.mkstemp(prefix="weft-", suffix=".html")
    atexit.register(lambda: Path(path).unlink(missing_ok=True))
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(url)}"><title>weft</title>\n'
        )
    webbrowser.open(Path(path).as_uri())


def _is_file(text: str) -> bool:
    """A path, not the name of a stored workflow."""
    return text == "-" or text.endswith(".json") or os.sep in text or os.path.isfile(text)


def _read_document(path: str) -> Any:
    return _parse(_read(path), path)


def _read_input(text: str | None, option: str = "--input") -> Any:
    if text is None:
        return None
    if text.startswith("@"):
        return _parse(_read(text[1:]), text[1:])
    return _parse(text, option)


def _read(path: str) -> str:
    try:
        if path == "-":
            return sys.stdin.read()
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        raise _Refused(f"There is no file {path!r}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise _Refused(f"{path} cannot be read: {error}") from None


def _parse(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise _Refused(
            f"{where} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.",
            f"Text needs double quotes, in a shell for example: {where} '{{\"amount\": 120}}'"
            if where.startswith("--")
            else "",
        ) from None


def _split_link(text: str) -> tuple[str | None, str]:
    """(origin of the server or None, token) of a token or of a link `https://host/resume/{token}`."""
    if "://" not in text:
        return None, text.rpartition("/")[2]
    from urllib.parse import urlsplit

    parts = urlsplit(text)
    before, found, token = parts.path.rpartition("/resume/")
    if not found or not token.strip("/"):
        raise _Refused(
            f"{text} is not a resume link.", "They look like http://127.0.0.1:8765/resume/<token>; see `weft inbox`."
        )
    return f"{parts.scheme}://{parts.netloc}{before.removesuffix('/api')}", token.strip("/")


def _split_field(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise _Refused(f"--field must be NAME=VALUE, not {text!r}.")
    return name, value


def _typed(pairs: list[tuple[str, str]], schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Values as the form's schema wants them: `amount=3` is a number if the field is one. Text that does not fit stays
    text, and the server says what is wrong with it."""
    properties = (schema or {}).get("properties", {})
    fields: dict[str, Any] = {}
    for name, text in pairs:
        wanted = properties.get(name, {}).get("type", "string")
        fields[name] = text
        if wanted != "string":
            with contextlib.suppress(json.JSONDecodeError):
                fields[name] = json.loads(text)
    return fields


def _say_warnings(answer: dict[str, Any]) -> None:
    from server.cli.render import diagnostic_lines

    for line in diagnostic_lines(answer.get("diagnostics") or []):
        click.echo(line, err=True)


def _login() -> str | None:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no such user, as in some containers
        return None


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
