"""`weft secret` and `weft connection`: values that blocks read by name. They come from stdin or a prompt, never from an
argument."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs, urlsplit

import click

from server.cli.common import call, show, with_json
from server.cli.upkeep import span

if TYPE_CHECKING:
    from server.client.answers import ConnectionSpec, ConnectionView, SecretView

KINDS = ("oauth2_code", "oauth2_client", "api_key", "basic", "bearer", "ssh")
_OF_PROVIDER = ("authorize_url", "token_url", "scopes", "issuer", "client_auth", "parameters", "pkce")
STATES = {
    "ready": "ready",
    "sign_in": "needs a sign-in",
    "sign_in_again": "needs a new sign-in",
    "unreadable": "cannot be opened",
}


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
    value = _read_value()
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


@click.group()
def connection() -> None:
    """Connections: credentials that blocks use by name."""


@connection.command(name="add")
@click.argument("name", metavar="NAME")
@click.option("--provider", default="", help="A well-known OAuth provider, such as github. It sets what is not said.")
@click.option("--kind", type=click.Choice(KINDS), default=None, help="Required without --provider.")
@click.option("--hosts", default="", help="Where it may be sent to, comma list: api.example.com,http://127.0.0.1:8080")
@click.option("--username", default="", help="Of basic and ssh.")
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
@click.option("--check-url", default="", help="What a test requests: it answers only with the credential.")
@click.option("--host-key", default=None, help="Of ssh: the public key of the server, or its fingerprint SHA256:….")
@click.option(
    "--passphrase-file",
    "passphrase",
    type=click.File(),
    callback=lambda _, __, file: file and file.read().removesuffix("\n"),
    help="Of ssh: a file with that of the private key.",
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
    """Add the connection NAME, or replace it. The key, token, password, private key or client secret is read from stdin
    or asked for."""
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
    value = "" if public else _read_value()
    spec: dict[str, Any] = {"kind": kind or "oauth2_code", "hosts": places, "secret": value}
    spec |= {"where": where, "name": field} | known_of(known) | {key: given for key, given in more.items() if given}
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
@click.option("--service", default="", help="The connector whose sign-in check is requested, such as slack.")
@click.option("--base-url", default="", metavar="URL", help="The address of the service, if its blocks have another.")
@with_json
def test(url: str, name: str, service: str, base_url: str, as_json: bool) -> None:
    """Ask the service of the connection NAME who is signed in. Fails unless the service accepts the credential."""
    if base_url and not service:
        raise click.UsageError("--base-url needs --service")
    found = call(url, lambda client: client.test_connection(name, service=service, base_url=base_url))
    who = f" as {found['who']}" if found["who"] else ""
    hints = {
        "nothing": "name its connector with --service",
        "hosts": f"{found['hint']}, or name the address of the service with --service and --base-url",
    }
    hint = hints.get(found["outcome"], found["hint"])
    said = f"{found['called']} answered {found['status']} in {found['took_ms']} ms: signed in{who}"
    show(found, as_json, [said if found["ok"] else f"{found['message']}\n{hint}".strip()])
    sys.exit(0 if found["ok"] else 1)


@connection.command()
@click.argument("name", metavar="NAME")
@click.pass_obj
def connect(url: str, name: str) -> None:
    """Sign in to the connection NAME in a browser."""
    click.echo(_line(sign_in(url, name)))


def sign_in(url: str, name: str) -> ConnectionView:
    """Print where to sign in, ask for the address that the browser was sent to, and return the connection."""
    begun = call(url, lambda client: client.connect(name))
    click.echo(f"Open this address in a browser and sign in:\n\n{begun['url']}\n", err=True)
    click.echo(f"Then paste the address to which the browser was sent, {begun['redirect_uri']}?...", err=True)
    answer = click.prompt("Address", err=True).strip()
    given = {key: values[0] for key, values in parse_qs(urlsplit(answer).query).items()}
    if "state" not in given:
        raise click.UsageError("this address has no state and code in it")
    known: dict[str, str] = {key: given[key] for key in ("state", "code", "error", "iss") if key in given}
    return call(url, lambda client: client.connected(**known))


def _read_value() -> str:
    if sys.stdin.isatty():
        return str(click.prompt("Value", hide_input=True, confirmation_prompt=True))
    return sys.stdin.read().removesuffix("\n").removesuffix("\r")


def known_of(provider: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a connection that a well-known provider sets."""
    return {key: provider[key] for key in _OF_PROVIDER if key in provider}


def _known(url: str, provider: str) -> Mapping[str, Any]:
    found = {each["id"]: each for each in call(url, lambda client: client.connections())["providers"]}
    if provider not in found:
        raise click.UsageError(f"there is no provider {provider!r}; there are {', '.join(found)}")
    return found[provider]


def _line(one: Mapping[str, Any]) -> str:
    problem = f": {one['problem']}" if one["problem"] else ""
    return f"{one['name']}  {one['kind'] or 'unknown'}  {STATES[one['state']]}{problem}  {', '.join(one['hosts'])}"
