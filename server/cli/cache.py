"""`weft cache`: results that blocks with a `policy.cache` left for later runs."""

from __future__ import annotations

import click

from server.cli.common import OK, call, counted


@click.group()
def cache() -> None:
    """Manage cached results of blocks."""


@cache.command()
@click.option("--workflow", help="Only results of this workflow.")
@click.pass_obj
def clear(url: str, workflow: str | None) -> int:
    """Delete cached results, so that the blocks run again next time."""
    cleared = call(url, lambda client: client.clear_cache(workflow))
    click.echo(f"{counted(cleared, 'result')} deleted.")
    return OK


COMMANDS = (cache,)
