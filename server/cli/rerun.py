"""`weft rerun`: runs that have ended start again, or continue with another version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from server.cli.common import Refused, call, show, with_json
from server.cli.render import plain

if TYPE_CHECKING:
    from server.client import AsyncClient

FATES = {"kept": "kept", "maybe": "runs if its input changes", "again": "runs again", "new": "runs, is new"}
LAST_MAX = 100


@click.command()
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--version", metavar="N|active|draft", help="Continue with this version, or the draft.")
@click.option("--from", "start", metavar="BLOCK", help="Run this block again, and all after it.")
@click.option("--again", metavar="BLOCK", multiple=True, help="Run this block again in any case. Repeatable.")
@click.option("--preview", is_flag=True, help="Only list what would run.")
@click.option("--failed", is_flag=True, help="In place of RUN: failed runs of a workflow.")
@click.option("--workflow", metavar="NAME", help="With --failed: of this workflow.")
@click.option(
    "--last", type=click.IntRange(1, LAST_MAX), default=20, show_default=True, help="With --failed: the newest."
)
@click.option("--key", help="Idempotency key: the same key returns the same run.")
@with_json
def rerun(
    url: str,
    run_id: str | None,
    version: str | None,
    start: str | None,
    again: tuple[str, ...],
    preview: bool,
    failed: bool,
    workflow: str | None,
    last: int,
    key: str | None,
    as_json: bool,
) -> None:
    """Start RUN again from a block, or let it continue with another version or the draft: what is unchanged is not run
    again."""
    if failed == bool(run_id) or failed != bool(workflow):
        raise Refused("Name a run, or use --failed with --workflow.", "weft rerun --failed --workflow NAME --last 20")
    if version is None and (preview or again):
        raise Refused("--preview and --again need --version.", "Use --version draft, or a number.")
    number: int | str | None = int(version) if version is not None and version.isdecimal() else version

    async def ask(client: AsyncClient) -> list[dict[str, Any]]:
        found = [run_id] if run_id else []
        if workflow is not None:
            page = await client.runs(workflow=workflow, status="failed", limit=last)
            found = [run["id"] for run in page["runs"]]
        answers: list[dict[str, Any]] = []
        for run in found:
            if preview and number is not None:
                answers.append(dict(await client.continuation(run, number, start=start)))
            else:
                once = f"{key}:{run}" if key and failed else key
                more = list(again) or None
                made = await client.rerun(run, start, version=number, again=more, idempotency_key=once)
                answers.append({**made, "source": run})
        return answers

    answers = call(url, ask)
    lines = [line for answer in answers for line in (_fates(answer) if preview else [_made(answer)])]
    show(answers[0] if run_id else answers, as_json, lines, "No runs match.")


def _made(answer: dict[str, Any]) -> str:
    return f"run {answer['run']} continues {answer['source']}"


def _fates(answer: dict[str, Any]) -> list[str]:
    lines = [f"run {answer['run']}"]
    for block in answer["blocks"]:
        notes = [
            FATES[block["fate"]],
            *([f"{block['kept']} kept"] if block["kept"] > 1 else []),
            *([f"{block['calls']} calls kept"] if block["calls"] else []),
            *(["changes something outside"] if block["effect"] == "write" and block["fate"] != "kept" else []),
        ]
        lines.append(plain(f"  {block['block']:<20} {', '.join(notes)}"))
    return lines
