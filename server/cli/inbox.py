"""`weft inbox`, `weft signal`, `weft signals`, `weft withdraw`, `weft signing-key`: people and programs that runs wait
for."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from executor.runtime.links import Signed

# What people and programs can do something about; there may be any number of timers and child runs besides.
ANSWERED = ("approval", "form", "attention", "signal", "webhook")


@click.command()
@click.option("--kind", type=click.Choice([*ANSWERED, "child", "timer"]))
@click.option("--workflow", help="Only waits of runs of this workflow.")
@click.option("--run", "run_id", metavar="RUN", help="Only waits of this run.")
@click.option("--limit", type=click.IntRange(1, 1000), default=200, show_default=True)
@click.option("--json", "as_json", is_flag=True)
@click.pass_obj
def inbox(url: str, kind: str | None, workflow: str | None, run_id: str | None, limit: int, as_json: bool) -> int:
    """List open waits with their links, oldest first. Timers and child runs only with --kind."""
    from server import cli
    from server.cli.render import inbox_lines
    from server.client import WeftClient

    async def pages(client: WeftClient) -> list[dict[str, Any]]:
        kinds = (kind,) if kind else ANSWERED
        return [await client.waits_page(kind=one, workflow=workflow, run=run_id, limit=limit) for one in kinds]

    found = cli._call(url, pages)
    waits: list[dict[str, Any]] = [wait for page in found for wait in page["waits"]]
    waits = sorted(waits, key=lambda wait: (wait["opened_at_ms"], wait["run"], wait["id"]))[:limit]
    in_all = sum(page["counts"]["pending"] for page in found)
    if as_json:
        click.echo(json.dumps(waits, indent=2, ensure_ascii=False))
        return cli.OK
    for line in inbox_lines(waits):
        click.echo(line)
    if not waits:
        click.echo("No open waits.", err=True)
    elif in_all > len(waits):
        click.echo(f"There are {in_all} open waits. Use filters or a higher --limit to see more.", err=True)
    return cli.OK


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("name")
@click.option("--payload", metavar="JSON|@FILE", help="Data of the signal, as JSON or @FILE.")
@click.option("--correlation", help="Only waits with this correlation, or with none, receive it.")
@click.option("--key", help="Dedupe key: a repeated key has no effect.")
@click.option("--by", default=None, help="Name to record. Default: your login name.")
@click.pass_obj
def signal(
    url: str, run_id: str, name: str, payload: str | None, correlation: str | None, key: str | None, by: str | None
) -> int:
    """Send the signal NAME to RUN. It is kept until a block waits for it."""
    from server import cli

    value = cli._read_input(payload, "--payload")
    sent = cli._call(
        url,
        lambda client: client.signal(
            run_id, name, value, correlation=correlation, dedupe_key=key, by=by or cli._login()
        ),
    )
    news = "sent" if sent["new"] else "had been sent before"
    click.echo(f"Signal {sent['seq']} ({name}) to run {run_id} {news}.")
    return cli.OK


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--name", help="Only signals of this name.")
@click.option("--correlation", help="Only signals with this correlation.")
@click.option("--json", "as_json", is_flag=True)
@click.pass_obj
def signals(url: str, run_id: str, name: str | None, correlation: str | None, as_json: bool) -> int:
    """List signals sent to RUN and what received them."""
    from server import cli
    from server.cli.render import signal_lines

    found = cli._call(url, lambda client: client.signals(run_id, name=name, correlation=correlation))
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return cli.OK
    for line in signal_lines(found):
        click.echo(line)
    if not found:
        click.echo("No signals.", err=True)
    return cli.OK


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("wait")
@click.option("--by", default=None, help="Name to record. Default: your login name.")
@click.option("--reason", default="", help="Recorded in the error of the block.")
@click.pass_obj
def withdraw(url: str, run_id: str, wait: str, by: str | None, reason: str) -> int:
    """Take back what RUN asks. WAIT is the node that waits, such as ask@review#2, or the id of the wait.

    The block fails with wait_cancelled, which its error handle may catch.
    """
    from server import cli

    done = cli._call(url, lambda client: client.withdraw(run_id, wait, by=by or cli._login(), reason=reason))
    click.echo(f"Withdrew {done['label']!r} of run {run_id}.")
    return cli.OK


@click.command(name="signing-key")
@click.option(
    "--for",
    "what",
    type=click.Choice(["notifications", "requests"]),
    default="notifications",
    show_default=True,
    help="notifications: webhooks of notify and WEFT_NOTIFY_WEBHOOK. requests: what a callback block sends.",
)
def signing_key(what: Signed) -> int:
    """Print the key that signs outgoing webhooks.

    Run it where the server runs and with its settings (WEFT_SECRET_KEY, or the key file beside WEFT_DB).
    """
    from executor.runtime.links import Links
    from server import cli
    from server.settings import load_settings, read_secret
    from server.variables import SettingsError

    try:
        settings = load_settings(os.environ)
        key = Links(read_secret(settings), settings.base_url).signing_key(what)
    except SettingsError as error:
        raise cli._Refused(str(error)) from None
    click.echo(key.hex())
    return cli.OK


COMMANDS = (inbox, signal, signals, withdraw, signing_key)
