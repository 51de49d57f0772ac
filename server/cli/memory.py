"""`weft memory`: what agents remember between runs."""

from __future__ import annotations

import click

from server.cli.common import OK, call, show


@click.group()
def memory() -> None:
    """The memory of agents between runs."""


@memory.command(name="list")
@click.argument("workflow", required=False)
@click.option("--json", "as_json", is_flag=True)
@click.pass_obj
def list_memories(url: str, workflow: str | None, as_json: bool) -> int:
    """List conversations, of WORKFLOW or of all."""
    found = call(url, lambda client: client.memories(workflow))["conversations"]
    lines = (f"{one['workflow'] or 'scope ' + one['scope']}  {one['key']}  {one['turns']} turns" for one in found)
    show(found, as_json, lines, none="Nothing is remembered.")
    return OK


@memory.command(name="show")
@click.argument("key")
@click.option("--workflow", default="", help="The workflow that it belongs to.")
@click.option("--scope", default="", help="Or the scope.")
@click.option("--json", "as_json", is_flag=True)
@click.pass_obj
def show_memory(url: str, key: str, workflow: str, scope: str, as_json: bool) -> int:
    """Show the turns of the conversation KEY."""
    turns = call(url, lambda client: client.memory(key, workflow=workflow, scope=scope))["turns"]
    show(turns, as_json, (f"{said['role']}: {said['text']}" for turn in turns for said in turn["messages"]))
    return OK


@memory.command(name="delete")
@click.argument("key")
@click.option("--workflow", default="", help="The workflow that it belongs to.")
@click.option("--scope", default="", help="Or the scope.")
@click.pass_obj
def delete_memory(url: str, key: str, workflow: str, scope: str) -> int:
    """Delete the conversation KEY."""
    turns = call(url, lambda client: client.delete_memory(key, workflow=workflow, scope=scope))["deleted"]
    click.echo(f"Deleted {turns} turns.", err=True)
    return OK


COMMANDS = (memory,)
