"""`weft secret`: values that workflows read as ${NAME}. They come from stdin or a prompt, never from an argument."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from server.cli.common import call, show, with_json
from server.cli.upkeep import span

if TYPE_CHECKING:
    from server.client.answers import SecretView


@click.group()
def secret() -> None:
    """Secrets: values that workflows read as ${NAME}."""


@secret.command(name="set")
@click.argument("name", metavar="NAME")
@click.option("--hosts", default="", help="Where it may be sent to, comma list: api.example.com,http://127.0.0.1:8080")
@click.option(
    "--in",
    "places",
    multiple=True,
    metavar="PLACE",
    help="Where in a request it may stand: header:NAME, query:NAME, path or body. Repeatable; without it anywhere.",
)
@with_json
def set_secret(url: str, name: str, hosts: str, places: tuple[str, ...], as_json: bool) -> None:
    """Set the secret NAME, or replace its value. The value is read from stdin or asked for."""
    if sys.stdin.isatty():
        value = click.prompt("Value", hide_input=True, confirmation_prompt=True)
    else:
        value = sys.stdin.read().removesuffix("\n").removesuffix("\r")
    listed = [host.strip() for host in hosts.split(",") if host.strip()]
    made = call(url, lambda client: client.put_secret(name, value, listed, places))
    where = ", ".join(made["hosts"]) or "no host: it can be sent nowhere until it is set again with --hosts"
    show(made, as_json, [f"{name} version {made['version']}, for {where}{_in(made)}"])


@secret.command(name="list")
@with_json
def list_secrets(url: str, as_json: bool) -> None:
    """List the names, versions, hosts and places of secrets."""
    found = call(url, lambda client: client.secrets())["secrets"]
    lines = (
        f"{one['name']}  version {one['version']}  {', '.join(one['hosts']) or 'no hosts'}{_in(one)}" for one in found
    )
    show(found, as_json, lines, none="No secrets. Set one with `weft secret set NAME --hosts api.example.com`.")


@secret.command(name="delete")
@click.argument("name", metavar="NAME")
@click.pass_obj
def delete_secret(url: str, name: str) -> None:
    """Delete the secret NAME."""
    call(url, lambda client: client.delete_secret(name))
    click.echo(f"Deleted {name}.", err=True)


@secret.command()
@click.option(
    "--grace",
    "grace_s",
    default="7d",
    show_default=True,
    callback=span,
    metavar="TIME",
    help="How long links, webhook secrets, addresses of pages and signatures of the old key count. 0s: no more.",
)
@click.pass_obj
def rekey(url: str, grace_s: float) -> None:
    """Change to the present key of the server, which also has the old one (WEFT_OLD_SECRET_KEY).

    Secrets are encrypted with the present key, and open waits get new links.
    """
    done = call(url, lambda client: client.rekey_secrets(grace_s=round(grace_s)))
    resealed, relinked = done["resealed"], done["relinked"]
    click.echo(f"{resealed} secrets are encrypted with the present key.", err=True)
    click.echo(f"{relinked} open waits have new links.", err=True)


def _in(one: SecretView) -> str:
    """Return where in a request it may stand, or nothing for anywhere."""
    return f", in {', '.join(one['places'])}" if one["places"] else ""


COMMANDS = (secret,)
