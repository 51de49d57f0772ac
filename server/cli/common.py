"""The parts that commands share: exit codes, refusals, calls of the server, databases, and how answers are shown."""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click

from server.cli.render import diagnostic_lines
from server.reach import (
    DEFAULT_DB,
    DEFAULT_URL,
    SettingsError,
    database_address,
    database_path,
    find,
    is_address,
    is_token,
)
from server.variables import check_names

if TYPE_CHECKING:
    from executor.errors import WeftError
    from server.client import AsyncClient, ClientError

OK, FAILED, CANCELLED, WAITING, BAD_ARGUMENTS, NO_SERVER = 0, 1, 2, 3, 4, 5
P = ParamSpec("P")
T = TypeVar("T")
DATABASE = click.option(
    "--db",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"SQLite file (WEFT_DB, or weft.db in WEFT_DATA, else {DEFAULT_DB}).",
)


class Database(click.Path):
    """The path of a SQLite file, or the address of a PostgreSQL database, which stays a text."""

    name = "file or address"

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and database_address({"WEFT_DB": value}) is not None:
            return value
        return super().convert(value, param, ctx)


ANY_DATABASE = click.option(
    "--db",
    type=Database(),
    help=f"SQLite file or PostgreSQL address (WEFT_DB, or weft.db in WEFT_DATA, else {DEFAULT_DB}).",
)


def with_json(command: Callable[Concatenate[Any, P], T]) -> Callable[P, T]:
    """Add --json to a command, and hand it the address of the server first."""
    return click.option("--json", "as_json", is_flag=True)(click.pass_obj(command))


class Refused(click.ClickException):
    """An error with its exit code and the next step."""

    def __init__(self, message: str, hint: str = "", code: int = BAD_ARGUMENTS) -> None:
        super().__init__(message)
        self.hint = hint
        self.code = code

    def show(self, file: Any = None) -> None:
        click.echo(f"{click.style('Error:', fg='red', bold=True)} {self.message}", err=True)
        if self.hint:
            click.echo(f"  {self.hint}", err=True)


OF_THIS_SERVER = "that of this server"


def call(
    url: str,
    action: Callable[[AsyncClient], Awaitable[T]],
    *,
    with_token: bool = True,
    token: str | None = OF_THIS_SERVER,
) -> T:
    """Await `action(client)` and turn its errors into an exit. `token`: of another server."""
    from server.client import ClientError

    check_variables()
    _check_address(url)
    try:
        token_given = token != OF_THIS_SERVER
        if not token_given:
            token = find(os.environ, url) if with_token else None
    except SettingsError as error:
        raise Refused(f"{error}") from None
    if token and not is_token(token):
        raise Refused(
            "WEFT_TOKEN contains characters that are not allowed in a token.", "Set it to the token of the server."
        )

    async def go() -> T:
        async with new_client(url, token or None) as client:
            return await action(client)

    try:
        return run_async(go())
    except ClientError as error:
        if token_given and getattr(error, "status", None) == 401:
            hint = "Set WEFT_TO_TOKEN, or --token-file, to a token of that server: `weft token` prints it there."
            raise Refused(f"The server at {url} wants another token.", hint) from None
        raise refused_by_server(error) from None


def new_client(url: str, token: str | None) -> AsyncClient:
    """A client with the time limits of a command."""
    from server.client import AsyncClient

    return AsyncClient(url, token or "")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run it to its end; Ctrl-C aborts the command."""
    import asyncio  # half of what `weft --help` would import

    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        raise click.Abort from None


def refused_by_server(error: ClientError) -> Refused:
    """Return a refusal of the server, or its absence, as an exit."""
    from server.client import ApiError

    if not isinstance(error, ApiError):
        return Refused(error.message, error.hint, NO_SERVER)
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
            "WEFT_DATA. Peers set WEFT_TOKEN to what `weft token` prints there."
        )
    elif error.code == "no_such_route":
        hint = "WEFT_URL and --url are the server's address alone, without /api; is the server as new as this command?"
    return Refused(message, hint, NO_SERVER if error.status >= 500 else BAD_ARGUMENTS)


def refused_by(error: WeftError) -> Refused:
    """Return an error of the executor as an exit, in a sentence."""
    return Refused(f"{error.message[0].upper()}{error.message[1:]}.", error.hint)


def check_variables() -> None:
    """Raises Refused for a WEFT_ name that does not exist."""
    try:
        check_names(os.environ)
    except SettingsError as error:
        raise Refused(f"{error}") from None


def _check_address(url: str) -> None:
    if not is_address(url):
        raise Refused(
            f"{url!r} is not the address of a server.",
            f"Set WEFT_URL or --url to what `weft serve` prints, such as {DEFAULT_URL}.",
        )


def existing_database(db: Path | None) -> Path:
    """The database file of this command. It is never created here: a wrong name would be an empty database."""
    path = database_file(db)
    if not path.is_file():
        raise Refused(f"There is no database {path}.", "Name it with --db, or set WEFT_DB or WEFT_DATA.")
    return path


def database_of(db: Path | str | None) -> Path | str:
    """Return an existing file, or an address: `--db`, else that of the environment. Raises Refused."""
    if db is None:
        check_variables()
        db = database_address(os.environ)
    return db if isinstance(db, str) else existing_database(db)


def name_of(database: Path | str) -> str:
    """Return the path of a file, or "the database", for messages: an address may contain credentials."""
    return str(database) if isinstance(database, Path) else "the database"


def database_file(db: Path | None) -> Path:
    """Return `--db`, else the file of the environment."""
    try:
        check_names(os.environ)
        return db or Path(database_path(os.environ))
    except SettingsError as error:
        raise Refused(f"{error}") from None


def print_warnings(answer: Mapping[str, Any]) -> None:
    """The findings of an answer, on stderr."""
    for line in diagnostic_lines(answer.get("diagnostics") or []):
        click.echo(line, err=True)


def show(answer: Any, as_json: bool, lines: Iterable[str], none: str = "") -> None:
    """Print an answer as JSON, or its `lines`; `none`, on stderr, where the answer is empty."""
    if as_json:
        click.echo(json.dumps(answer, indent=2, ensure_ascii=False))
        return
    for line in lines:
        click.echo(line)
    if none and not answer:
        click.echo(none, err=True)


def login_name() -> str | None:
    """Return the name of the user who runs the command, or None if the system has none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no such user, as in some containers
        return None


def counted(number: int, noun: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
