"""`weft usage`: tokens and costs by day, workflow or model."""

from __future__ import annotations

import click

from server.cli.common import call, show, with_json
from server.cli.render import usage_lines


@click.command()
@click.option("--by", type=click.Choice(["day", "workflow", "model"]), default="day", show_default=True)
@click.option(
    "--from", "first", metavar="DAY", help="First day in UTC, such as 2026-11-01. Default: 29 days before --to."
)
@click.option("--to", metavar="DAY", help="Last day in UTC. Default: today.")
@click.option("--workflow", metavar="NAME", help="Only this workflow.")
@with_json
def usage(url: str, by: str, first: str | None, to: str | None, workflow: str | None, as_json: bool) -> None:
    """Show the tokens and costs of models."""
    found = call(url, lambda client: client.usage(by=by, first=first, to=to, workflow=workflow))
    show(found, as_json, usage_lines(found))


COMMANDS = (usage,)
