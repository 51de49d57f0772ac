"""`weft connection`: credentials of services, picked from a list in blocks. Values come from stdin or a prompt."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs, urlsplit

import click

from server.cli.common import call, show, with_json

if TYPE_CHECKING:
    from server.client.answers import ConnectionSpec

KINDS = ("oauth2_code", "oauth2_client", "api_key", "basic", "bearer")
_OF_PROVIDER = ("authorize_url", "token_url", "scopes", "issuer", "client_auth", "parameters", "pkce")
STATES = {
    "ready": "ready",
    "sign_in": "needs a sign-in",
    "sign_in_again": "needs a new sign-in",
    "unreadable": "cannot be opened",
}


@click.group()
def connection() -> None:
    """Connections: credentials that blocks use by name."""


@connection.command(name="add")
@click.argument("name", metavar="NAME")
@click.option("--provider", default="", help="A well-known OAuth provider, such as github. It sets what is not said.")
@click.option("--kind", type=click.Choice(KINDS), default=None, help="Required without --provider.")
@click.option("--hosts", default="", help="Where it may be sent to, comma list: api.example.com,http://127.0.0.1:8080")
@click.option("--username", default="", help="Of basic.")
@click.option("--in", "where", type=click.Choice(("header", "query")), default="header", help="Where an API key goes.")
@click.option("--as", "field", default="Authorization", help="Header or query parameter of an API key.")
@click.option("--prefix", default="", help="In front of an API key.")
@click.option("--token-url", default="", help="Of OAuth 2.")
@click.option("--authorize-url", default="", help="Of OAuth 2 with a sign-in.")
@click.option("--client-id", default="", help="Of OAuth 2.")
@click.option("--scopes", default="", help="Of OAuth 2, with spaces between.")
@click.option("--issuer", default="", help="Of OAuth 2: what the provider calls itself.")
@click.option(
    "--client-auth", type=click.Choice(("body", "header")), default=None, help="Where the client secret goes."
)
@click.option("--public", is_flag=True, help="An OAuth client without a secret.")
@with_json
def add(
    url: str,
    /,
    name: str,
    provider: str,
    kind: str | None,
    hosts: str,
    where: str,
    field: str,
    public: bool,
    as_json: bool,
    **more: str | None,
) -> None:
    """Add the connection NAME, or replace it. The key, token, password or client secret is read from stdin or asked
    for."""
    known = _known(url, provider) if provider else {}
    if provider and kind not in (None, "oauth2_code"):
        raise click.UsageError("--provider is for connections of kind oauth2_code")
    places = [host.strip() for host in hosts.split(",") if host.strip()] or known.get("hosts")
    if kind is None and not provider:
        raise click.UsageError("--kind or --provider is required")
    if not places:
        raise click.UsageError("--hosts is required")
    if public and not known.get("pkce", True):
        raise click.UsageError(f"{known['title']} has no clients without a secret")
    value = ""
    if not public:
        if sys.stdin.isatty():
            value = click.prompt("Value", hide_input=True, confirmation_prompt=True)
        else:
            value = sys.stdin.read().removesuffix("\n").removesuffix("\r")
    begin = {key: known[key] for key in _OF_PROVIDER if key in known}
    spec: dict[str, Any] = {"kind": kind or "oauth2_code", "hosts": places, "secret": value}
    spec |= {"where": where, "name": field} | begin | {key: said for key, said in more.items() if said}
    made = call(url, lambda client: client.put_connection(name, cast("ConnectionSpec", spec)))
    lines = [_line(made)]
    if made["state"] == "sign_in":
        lines.append(f"Sign in with `weft connection connect {name}`.")
    show(made, as_json, lines)


@connection.command(name="list")
@with_json
def list_connections(url: str, as_json: bool) -> None:
    """List the names, kinds, states and hosts of connections."""
    found = call(url, lambda client: client.connections())["connections"]
    none = "No connections. Add one with `weft connection add NAME --kind bearer --hosts api.example.com`."
    show(found, as_json, map(_line, found), none=none)


@connection.command(name="delete")
@click.argument("name", metavar="NAME")
@click.pass_obj
def delete_connection(url: str, name: str) -> None:
    """Delete the connection NAME."""
    call(url, lambda client: client.delete_connection(name))
    click.echo(f"Deleted {name}.", err=True)


@connection.command()
@click.argument("name", metavar="NAME")
@click.pass_obj
def connect(url: str, name: str) -> None:
    """Sign in to the connection NAME in a browser."""
    begun = call(url, lambda client: client.connect(name))
    click.echo(f"Open this address in a browser and sign in:\n\n{begun['url']}\n", err=True)
    click.echo(f"Then paste the address to which the browser was sent, {begun['redirect_uri']}?...", err=True)
    answer = click.prompt("Address", err=True).strip()
    said = {key: values[0] for key, values in parse_qs(urlsplit(answer).query).items()}
    if "state" not in said:
        raise click.UsageError("this address has no state and code in it")
    known: dict[str, str] = {key: said[key] for key in ("state", "code", "error", "iss") if key in said}
    made = call(url, lambda client: client.connected(**known))
    click.echo(_line(made))


def _known(url: str, provider: str) -> Mapping[str, Any]:
    """Return the server's settings for a provider."""
    found = {each["id"]: each for each in call(url, lambda client: client.connections())["providers"]}
    if provider not in found:
        raise click.UsageError(f"there is no provider {provider!r}; there are {', '.join(found)}")
    return found[provider]


def _line(one: Mapping[str, Any]) -> str:
    problem = f": {one['problem']}" if one["problem"] else ""
    return f"{one['name']}  {one['kind'] or 'unknown'}  {STATES[one['state']]}{problem}  {', '.join(one['hosts'])}"


COMMANDS = (connection,)
