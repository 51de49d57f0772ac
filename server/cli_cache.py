"""`weft cache`: results that blocks with a `policy.cache` left for later runs."""

from __future__ import annotations

import click


@click.group()
def cache() -> None:
    """Cached results of blocks."""


@cache.command()
@click.option("--workflow", help="Only what runs of this workflow left.")
@click.pass_obj
def clear(url: str, workflow: str | None) -> int:
    """Forget cached results: the blocks run again the next time."""
    from server.cli import OK, _call, _count

    cleared = _call(url, lambda client: client.clear_cache(workflow))
    click.echo(f"{_count(cleared, 'result')} forgotten.")
    return OK
