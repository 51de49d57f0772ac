"""`weft memory` and `weft usage`: what agents remember between runs, and what models cost."""

from __future__ import annotations

import click

from server.cli.common import call, show, with_json
from server.cli.render import usage_lines


@click.group()
def memory() -> None:
    """The memory of agents between runs."""


@memory.command(name="list")
@click.argument("workflow", required=False)
@with_json
def list_memories(url: str, workflow: str | None, as_json: bool) -> None:
    """List conversations, of WORKFLOW or of all."""
    found = call(url, lambda client: client.memories(workflow))["conversations"]
    lines = (f"{one['workflow'] or 'scope ' + one['scope']}  {one['key']}  {one['turns']} turns" for one in found)
    show(found, as_json, lines, none="Nothing is remembered.")


@memory.command(name="show")
@click.argument("key")
@click.option("--workflow", default="", help="The workflow that it belongs to.")
@click.option("--scope", default="", help="Or the scope.")
@with_json
def show_memory(url: str, key: str, workflow: str, scope: str, as_json: bool) -> None:
    """Show the turns of the conversation KEY."""
    turns = call(url, lambda client: client.memory(key, workflow=workflow, scope=scope))["turns"]
    show(turns, as_json, (f"{said['role']}: {said['text']}" for turn in turns for said in turn["messages"]))


@memory.command(name="delete")
@click.argument("key")
@click.option("--workflow", default="", help="The workflow that it belongs to.")
@click.option("--scope", default="", help="Or the scope.")
@click.pass_obj
def delete_memory(url: str, key: str, workflow: str, scope: str) -> None:
    """Delete the conversation KEY."""
    turns = call(url, lambda client: client.delete_memory(key, workflow=workflow, scope=scope))["deleted"]
    click.echo(f"Deleted {turns} turns.", err=True)


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
