"""`weft user`, `weft token` and `weft audit`: the users of the server, their tokens, and their changes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import click

from server.cli.common import FAILED, OK, Refused, call, show, with_json
from server.cli.render import plain

ROLES = ("viewer", "approver", "editor", "admin")
ROLE = click.Choice(ROLES)
TOKEN_ROLE = click.Choice(("metrics", *ROLES))
TIMES = ("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")


@click.group()
def user() -> None:
    """People who use the server.

    A viewer sees workflows and runs. An approver also sees the links of requests and answers them. An editor also
    changes workflows and runs them. An admin also decides about people, tokens, secrets and webhooks.
    """


@user.command()
@click.argument("id", metavar="ID")
@click.option("--role", type=ROLE, required=True)
@click.option("--name", default="", help="The name that is shown. Default: ID.")
@click.option("--again", is_flag=True, help="Print a new sign-in link for a user who exists.")
@click.pass_obj
def invite(url: str, id: str, role: str, name: str, again: bool) -> None:
    """Add the user ID and print a link that signs them in.

    It works once, within 10 minutes. ID is what documents call them by, such as ada or ada@example.com.
    """
    made = call(url, lambda client: client.link_for(id) if again else client.invite(id, role, name))
    click.echo(made["url"])
    click.echo(f"It signs in one browser as {id}, within {made['expires_in_s'] // 60} minutes.", err=True)


@user.command(name="list")
@with_json
def list_users(url: str, as_json: bool) -> None:
    """List the users."""
    found = call(url, lambda client: client.users())
    show(found, as_json, [f"{each['id']:<24} {each['role']:<10} {plain(each['name'])}" for each in found["users"]])


@user.command()
@click.argument("id", metavar="ID")
@click.argument("role", type=ROLE)
@click.pass_obj
def role(url: str, id: str, role: str) -> None:
    """Change the role of the user ID. It counts from their next request."""
    call(url, lambda client: client.set_role(id, role))
    click.echo(f"{id} is {role} now.", err=True)


@user.command()
@click.argument("id", metavar="ID")
@click.pass_obj
def remove(url: str, id: str) -> None:
    """Remove the user ID, with their sessions and tokens.

    What they made stays. Schedules of theirs, which continue to start runs, are listed.
    """
    removed = call(url, lambda client: client.remove_user(id))
    click.echo(f"Removed {id}.", err=True)
    if removed["schedules"]:
        listed = ", ".join(map(plain, removed["schedules"]))
        click.echo(f"Schedules of {id} continue: {listed}. See `weft cron show` and `weft cron disable`.", err=True)


@click.group(invoke_without_command=True)
@click.pass_context
def token(context: click.Context) -> int:
    """Print the server's token, or manage tokens of programs.

    Programs send a token in the header `Authorization: Bearer TOKEN`. That of the server is WEFT_TOKEN, or the one that
    `weft serve` made at its first start and keeps beside the database (WEFT_DB or WEFT_DATA, else ./.weft/weft.db). It
    may do everything: give programs tokens of their own.
    """
    return OK if context.invoked_subcommand is not None else _print_token()


def _print_token() -> int:
    from server.reach import OFF, SettingsError, database_path, read, token_path
    from server.variables import check_names

    configured = os.environ.get("WEFT_TOKEN")
    if configured == OFF:
        raise Refused("WEFT_TOKEN is off: the server requires no token.", "Unset it to have a token.")
    try:
        check_names(os.environ)
        if configured:
            click.echo(configured)
            return OK
        path = token_path(database_path(os.environ))
        if not path.is_file():
            raise Refused(
                f"There is no token file {path}.",
                "`weft serve` creates it at its first start. Run this in the same folder and with the same WEFT_DB or "
                "WEFT_DATA, or set WEFT_TOKEN.",
            )
        click.echo(read(path))
    except SettingsError as error:
        raise Refused(f"{error}") from None
    return OK


@token.command()
@click.argument("name", metavar="NAME")
@click.option("--role", type=TOKEN_ROLE, default="editor", show_default=True)
@click.option("--days", type=click.IntRange(1, 3650), default=90, show_default=True, help="How long it works.")
@click.option("--workflow", "workflows", multiple=True, help="Only this workflow and its runs; can be repeated.")
@click.pass_obj
def create(url: str, name: str, role: str, days: int, workflows: tuple[str, ...]) -> None:
    """Create a token for the program NAME and print it, this once.

    The role metrics reads the metrics of the server, for Prometheus, and nothing else.
    """
    made = call(url, lambda client: client.make_token(name, role, days, list(workflows) or None))
    click.echo(made["token"])
    click.echo(f"It works until {_day(made['expires_at_ms'])}. It cannot be shown again.", err=True)


@token.command(name="list")
@with_json
def list_tokens(url: str, as_json: bool) -> None:
    """List the tokens of programs, without their secrets."""
    found = call(url, lambda client: client.tokens())
    show(found, as_json, [_token_line(each) for each in found["tokens"]])


@token.command()
@click.argument("id", metavar="ID")
@click.pass_obj
def revoke(url: str, id: str) -> None:
    """Revoke the token ID: the part between `weft_` and the second `_`."""
    call(url, lambda client: client.revoke_token(id))
    click.echo(f"Revoked {id}.", err=True)


@click.group(invoke_without_command=True)
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@click.option("--actor", help="Only this one, such as user:ada or token:ID.")
@click.option("--text", help="Only rows with this in the action, the object or the detail.")
@click.option("--since", type=click.DateTime(TIMES), help="Only from this time on, in UTC.")
@click.option("--until", type=click.DateTime(TIMES), help="Only before this time, in UTC.")
@click.option("--before", type=click.IntRange(1), metavar="N", help="Only rows before number N: the next page.")
@click.option("--json", "as_json", is_flag=True)
@click.pass_context
def audit(context: click.Context, /, as_json: bool, **only: Any) -> None:
    """List changes and who made them, newest first."""
    if context.invoked_subcommand is None:
        for name in ("since", "until"):
            only[name] = None if only[name] is None else round(only[name].replace(tzinfo=UTC).timestamp() * 1000)
        found = call(context.obj, lambda client: client.audit(**only))
        show(found, as_json, [_audit_line(row) for row in found["rows"]])


@audit.command()
@click.pass_obj
def verify(url: str) -> None:
    """Check that no row of the audit was changed, removed or added.

    Exits with 1 if one was. Keep the hash that it prints elsewhere: a forger can compute all rows again, but not with
    the same hash.
    """
    found = call(url, lambda client: client.verify_audit())
    if not found["valid"]:
        raise Refused(f"Row {found['broken_at']} of the audit is not as it was written.", code=FAILED)
    click.echo(f"{found['rows']} rows, as they were written. Hash of the last: {found['hash'] or '-'}")


def _token_line(token: Mapping[str, Any]) -> str:
    used = _day(token["used_at_ms"]) if token["used_at_ms"] else "never"
    only = f", only {', '.join(map(plain, token['workflows']))}" if token["workflows"] else ""
    until, whose = _day(token["expires_at_ms"]), token["user"] or "-"
    return f"{token['id']}  {token['role']:<9} until {until}  used {used:<10} {whose}  {plain(token['name'])}{only}"


def _audit_line(row: Mapping[str, Any]) -> str:
    at = datetime.fromtimestamp(row["at_ms"] / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    method = row["action"].partition(" ")[0]
    what = f"{method} {plain(row['object'])}" + (f" ({plain(row['detail'])})" if row["detail"] else "")
    return f"{row['n']:>6}  {at}  {plain(row['actor']):<18} {what}"


def _day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d")
