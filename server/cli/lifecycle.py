"""`weft fork`, `weft retry`, `weft migrate`: repairing runs."""

from __future__ import annotations

import json
from typing import Any

import click

from server.cli.common import Refused, call, show, with_json
from server.cli.reading import parse_json
from server.cli.render import plain


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--at", "seq", type=click.IntRange(1), required=True, help="Last event to copy.")
@click.option(
    "--set", "edits", metavar="KEY=JSON", multiple=True, help="Replace the recorded output of a node. Repeatable."
)
@click.option("--key", help="Idempotency key: the same key returns the same run.")
@with_json
def fork(url: str, run_id: str, seq: int, edits: tuple[str, ...], key: str | None, as_json: bool) -> None:
    """Start a new run from an event of RUN. `weft events RUN` shows their numbers."""
    outputs: dict[str, Any] = {}
    for edit in edits:
        node, sign, text = edit.partition("=")
        if not sign:
            raise Refused(f"--set {edit} has no =", "Write --set 'NODE=JSON', for example --set 'draft={\"n\": 1}'.")
        outputs[node] = parse_json(text, f"--set {node}")
    made = call(url, lambda client: client.fork(run_id, seq, outputs, idempotency_key=key))
    show(made, as_json, [f"run {made['run']} continues from event {made['seq']} of {run_id}"])


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("node")
@click.option("--key", help="Idempotency key: the same key returns the same run.")
@with_json
def retry(url: str, run_id: str, node: str, key: str | None, as_json: bool) -> None:
    """Run NODE of RUN again, and what follows it. NODE is a node key, such as send@review#5. A run that has ended is
    not changed: a new run repeats NODE and what follows it. In an open run the next attempt of NODE is due now."""
    made = call(url, lambda client: client.retry(run_id, node, idempotency_key=key))
    lines = {
        "now": f"run {run_id}: the next attempt of {node} is due now",
        "from_block": f"run {made['run']} runs {made['block']} and everything after it again",
        "from_node": f"run {made['run']} runs {node} and everything after it again",
        "whole_container": f"run {made['run']} runs all of {made['block']} again: other nodes in it had run too",
    }
    show(made, as_json, [lines[made["how"]]])


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--version", type=click.IntRange(1), required=True, help="Version of its workflow.")
@with_json
def migrate(url: str, run_id: str, version: int, as_json: bool) -> None:
    """Move the open run RUN to another version of its workflow. What it has done must fit that version."""
    from server.client import ApiError

    async def move(client: Any) -> dict[str, Any]:
        try:
            return dict(await client.migrate(run_id, version))
        except ApiError as error:
            for conflict in error.problem.get("conflicts") or []:
                click.echo(plain(f"{conflict['node'] or 'the run'}: {conflict['why']}"), err=True)
            raise

    answer = call(url, move)
    if as_json:
        click.echo(json.dumps(answer, indent=2))
    elif answer["moved"]:
        click.echo(f"run {run_id} now uses version {version}")
    else:
        click.echo(f"run {run_id} moves to version {version} when its worker responds, if it still fits", err=True)


COMMANDS = (fork, retry, migrate)
