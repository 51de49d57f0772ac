"""`weft token` and `weft link`: the ways into a server for programs and for browsers."""

from __future__ import annotations

import os

import click

from server.cli.common import OK, Refused, call


@click.command()
def token() -> int:
    """Print the server's token.

    Programs send it in the header `Authorization: Bearer TOKEN`. It is WEFT_TOKEN, or the one that `weft serve` made at
    its first start and keeps beside the database (WEFT_DB or WEFT_DATA, else ./.weft/weft.db).
    """
    from server.tokens import OFF, read, token_path
    from server.variables import SettingsError, check_names, database_path

    configured = os.environ.get("WEFT_TOKEN")
    if configured == OFF:
        raise Refused("WEFT_TOKEN is off: the server requires no token.", "Unset it to have a token.")
    try:
        check_names(os.environ)
        path = token_path(database_path(os.environ))
        if not configured and not path.is_file():
            raise Refused(
                f"There is no token file {path}.",
                "`weft serve` creates it at its first start. Run this in the same folder and with the same WEFT_DB or "
                "WEFT_DATA, or set WEFT_TOKEN.",
            )
        click.echo(configured or read(path))
    except SettingsError as error:
        raise Refused(f"{error}") from None
    return OK


@click.command()
@click.pass_obj
def link(url: str) -> int:
    """Print a link that signs a browser in.

    It works once, within 10 minutes.
    """
    made = call(url, lambda client: client.sign_in_link())
    click.echo(made["url"])
    click.echo(f"It works once, within {made['expires_in_s'] // 60} minutes.", err=True)
    return OK


COMMANDS = (token, link)
