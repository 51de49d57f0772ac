"""`weft backtest`, `keep` and `kept`: a workflow that is tested by its own runs."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from server.cli.common import FAILED, OK, Refused, call, counted, show, with_json
from server.cli.reading import read_documents
from server.cli.render import plain

if TYPE_CHECKING:
    from server.client import AsyncClient

LAST_MAX: Final = 1_000
SHOWN: Final = 3  # differences of one run
VALUE: Final = 60  # characters
WORDS: Final = {
    "same": "same",
    "changed": "other values",
    "other_way": "another way",
    "would_call": "would call",
    "failed": "fails",
    "not_replayed": "not replayed",
}
COLORS: Final = {"same": "green", "failed": "red", "would_call": "yellow", "not_replayed": "yellow"}


@click.command()
@click.argument("name")
@click.option("--last", type=click.IntRange(1, LAST_MAX), help=f"The last N runs that have ended. Default: {50}.")
@click.option("--kept", "only_kept", is_flag=True, help="The runs that are kept as tests.")
@click.option("--version", type=click.IntRange(1), help="Play this version. Default: the active one.")
@click.option("--draft", is_flag=True, help="Play the draft of NAME that was changed last.")
@click.option("--file", help="Play the workflow in this file (- for stdin).")
@with_json
def backtest(
    url: str, name: str, last: int | None, only_kept: bool, version: int | None, draft: bool, file: str | None,
    as_json: bool,
) -> int:  # fmt: skip
    """Play a workflow against recorded runs of NAME, and show what would differ.

    Nothing outside is called. Exit code 0: all runs do the same; 1: one differs, or cannot be played.
    """
    if sum((version is not None, draft, file is not None)) > 1:
        raise Refused("--version, --draft and --file exclude each other.")
    document = None if file is None else read_documents(file)[0]

    async def play(client: AsyncClient) -> list[dict[str, Any]]:
        draft_id = await _draft_of(client, name) if draft else None
        left, before = last or (LAST_MAX if only_kept else 50), None
        found: list[dict[str, Any]] = []
        total = 0
        while left:
            page = await client.backtest(
                name, document, draft=draft_id, version=version, kept=only_kept, last=left, before=before
            )
            found += [dict(run) for run in page["runs"]]
            left, before = left - len(page["runs"]), page["next"]
            if before is None:
                break
            total = total or page["total"]
            if sys.stderr.isatty():
                click.echo(f"\r{len(found)} of {total}", nl=False, err=True)
        return found

    runs = call(url, play)
    if not runs:
        what = "kept run" if only_kept else "run that has ended"
        raise Refused(f"There is no {what} of '{name}'.", "`weft runs` lists runs; `weft keep RUN` keeps one.")
    counts = Counter(run["result"] for run in runs)
    summary = ", ".join(f"{counts[result]} {word}" for result, word in WORDS.items() if counts[result])
    if as_json:
        click.echo(json.dumps({"counts": {key: counts[key] for key in WORDS}, "runs": runs}, indent=2))
    else:
        show(runs, False, (line for run in runs if run["result"] != "same" for line in _lines(run)))
        click.echo(f"{counted(len(runs), 'run')}: {summary}.")
    return OK if counts["same"] == len(runs) else FAILED


async def _draft_of(client: AsyncClient, name: str) -> str:
    page = await client.drafts()
    for each in page["drafts"]:
        if name in (each["base_name"], each["name"]):
            return each["id"]
    raise Refused(f"There is no draft of '{name}'.", "Open the workflow in the editor, or use --file.")


def _lines(run: Mapping[str, Any]) -> Iterator[str]:
    result, way = run["result"], run["way"]
    version = "" if run["version"] is None else f" version {run['version']}"
    word = click.style(f"{WORDS[result]:<12}", fg=COLORS.get(result))
    yield f"{word}  {run['run']}{version}  {plain(run['reason'])}".rstrip()
    if way is not None:
        before, now = (", ".join(way[side]) or "nothing" for side in ("before", "now"))
        yield f"    {way['key']}: {plain(before)} -> {plain(now)}"
    nodes = [node for node in run["differences"] if way is None or node["key"] != way["key"] or node["error"]]
    for node in nodes[:SHOWN]:
        value = node["value"]
        said = [f"would {node['would']}"] if node["would"] else []
        if value is not None:
            said.append(f"{value['pointer']} {_value(value['a'])} -> {_value(value['b'])}".lstrip())
        yield f"    {node['key']}: {plain(', '.join([*said, node['error']] if node['error'] else said))}"
    more = len(nodes) - SHOWN
    if more > 0:
        yield f"    and {counted(more, 'block')} more"


def _value(text: str | None) -> str:
    return "nothing" if text is None else text if len(text) <= VALUE else f"{text[:VALUE]}…"


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--note", default="", help="What the run tests.")
@click.option("--drop", is_flag=True, help="Keep it no longer.")
@click.pass_obj
def keep(url: str, run_id: str, note: str, drop: bool) -> None:
    """Keep RUN as a test: no age deletes it."""
    if drop:
        dropped = call(url, lambda client: client.drop_kept(run_id))["dropped"]
        click.echo(f"{run_id} is kept no longer." if dropped else f"{run_id} was not kept.")
        return
    kept_run = call(url, lambda client: client.keep(run_id, note))
    click.echo(f"{run_id} is kept as a test of {kept_run['workflow']}.")


@click.command()
@click.argument("name")
@with_json
def kept(url: str, name: str, as_json: bool) -> None:
    """List the runs of NAME that are kept as tests."""
    found = call(url, lambda client: client.kept(name))["kept"]
    lines = (f"{each['run']}  {plain(each['note'])}".rstrip() for each in found)
    show(found, as_json, lines, none="None is kept. Keep one with `weft keep RUN`.")
