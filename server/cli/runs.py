"""`weft run`, `runs`, `events`, `cancel`, `fork`, `retry`, `rerun` and `migrate`: runs, through the API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from server.cli.common import CANCELLED, FAILED, OK, WAITING, Refused, call, print_warnings, show, with_json
from server.cli.reading import is_file, parse_json, read_documents, read_input, source_findings
from server.cli.render import plain, run_lines

if TYPE_CHECKING:
    from server.client import AsyncClient

EXIT_BY_STATUS = {"succeeded": OK, "failed": FAILED, "cancelled": CANCELLED, "waiting": WAITING}


@click.command()
@click.argument("workflow", metavar="NAME|FILE")
@click.option("--input", "input_text", metavar="JSON|@FILE", help="Input of the run, as JSON or @FILE.")
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="FIELD=PATH",
    help="Upload a file into a field of the input. Repeatable.",
)
@click.option("--trigger", help="Block to start at, if there are several triggers.")
@click.option("--version", type=click.IntRange(1), help="Version of a stored workflow. Default: the active one.")
@click.option("--stop-after", metavar="BLOCK", help="Stop after this block.")
@click.option("--key", help="Idempotency key: the same key returns the same run.")
@click.option(
    "--follow", is_flag=True, help="Wait until it ends, or needs an answer while no timer is due, and print its output."
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON: the answer, or with --follow the events, one per line."
)
@click.pass_obj
def run(
    url: str,
    workflow: str,
    input_text: str | None,
    files: tuple[str, ...],
    trigger: str | None,
    version: int | None,
    stop_after: str | None,
    key: str | None,
    follow: bool,
    as_json: bool,
) -> int:
    """Run a stored workflow, or the document in a file. Workflow functions that a workflow in a Python file calls are
    stored first.

    With --follow the exit code is the result: 0 succeeded, 1 failed, 2 cancelled, 3 waiting for an answer or a
    signal.
    """
    from server.cli.follow import follow as follow_run

    value = read_input(input_text)
    paths = _files(files, value)
    what, called = read_documents(workflow) if is_file(workflow) else (workflow, [])
    print_warnings({"diagnostics": source_findings(workflow)})
    if version is not None and what is not workflow:
        raise Refused("--version is for stored workflows.", "Leave it out to run a file, or name a stored workflow.")

    async def start(client: AsyncClient) -> str:
        nonlocal value
        for field, path in paths:
            value = {**(value or {}), field: await client.upload(path)}
        for document in called:
            print_warnings(await client.deploy(document))
        started = await client.start(
            what, input=value, trigger=trigger, version=version, idempotency_key=key, stop_after=stop_after
        )
        print_warnings(started)
        if follow:
            click.echo(f"run {started['run']}  {client.url}{started['urls']['page']}", err=True)
            return await follow_run(client, started["run"], as_json=as_json)
        if as_json:
            click.echo(json.dumps(started, indent=2))
        else:
            click.echo(f"run {started['run']} {started['status']}")
            click.echo(f"  status  {client.url}{started['urls']['self']}")
            click.echo(f"  events  {client.url}{started['urls']['events']}")
            click.echo(f"  page    {client.url}{started['urls']['page']}")
        return "accepted"

    return EXIT_BY_STATUS.get(call(url, start), OK)


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--after", type=click.IntRange(0), default=0, help="Only events after this number.")
@click.option("--follow", is_flag=True, help="Show new events until the run ends.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
@click.pass_obj
def events(url: str, run_id: str, after: int, follow: bool, as_json: bool) -> None:
    """Print the journal of RUN."""
    from server.cli.follow import print_events

    call(url, lambda client: print_events(client, run_id, after, live=follow, as_json=as_json))


@click.command()
@click.argument("draft")
@click.argument("block", required=False)
@click.option("--given", metavar="JSON|@FILE", help="Outputs of the blocks that it reads, by their ids.")
@click.option("--of", "run_id", metavar="RUN", help="Take their outputs from this run.")
@click.option("--key", help="Idempotency key: the same key returns the same run.")
@with_json
def step(
    url: str, draft: str, block: str | None, given: str | None, run_id: str | None, key: str | None, as_json: bool
) -> int:
    """Run BLOCK of a draft alone, or list its pins.

    DRAFT is its id, or the name of the draft that was changed last. Without BLOCK, its pinned blocks and their outputs
    are listed; in runs of the draft they do not run. The exit code is that of `weft run --follow`."""
    asked = read_input(given) or {}

    async def ask(client: AsyncClient) -> Any:
        drafts = (await client.drafts())["drafts"]
        id = next((each["id"] for each in drafts if draft in (each["id"], each["name"])), draft)
        blocks = (await client.draft(id))["document"].get("blocks") or {}
        if block is None:
            return {name: each["pin"]["output"] for name, each in blocks.items() if each.get("pin")}
        nodes = (await client.get_run(run_id))["nodes"] if run_id else []
        known = {node["key"]: node["output"] for node in nodes if node.get("output") is not None}
        outputs = {name: output for name, output in known.items() if name in blocks and name != block} | asked
        made = await client.run_draft(id, step={"block": block, "given": outputs}, idempotency_key=key)
        return await client.get_run(made["run"], wait_s=60)

    found = call(url, ask)
    if block is None:
        lines = [plain(f"{name:<20} {json.dumps(output)[:200]}") for name, output in found.items()]
        show(found, as_json, lines, "It has no pins.")
        return OK
    node: Any = next((each for each in found["nodes"] if each["key"] == block), {})
    what = json.dumps(node.get("output")) if node.get("error") is None else node["error"]["message"]
    show(node, as_json, [f"run {found['id']} {found['status']}", plain(what)])
    return EXIT_BY_STATUS.get(found["status"], OK)


@click.command()
@click.option("--workflow", help="Only runs of this workflow.")
@click.option("--parent", help="Only runs started by this run.")
@click.option("--status", type=click.Choice(["queued", "running", "waiting", "succeeded", "failed", "cancelled"]))
@click.option("--lacking", is_flag=True, help="Only runs that wait for code, with the reason.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@with_json
def runs(
    url: str, workflow: str | None, parent: str | None, status: str | None, lacking: bool, limit: int, as_json: bool
) -> None:
    """List runs, newest first. With --lacking, those whose code or function is not here, oldest first."""
    if lacking:
        if parent or status:
            raise Refused("--lacking goes with --workflow alone.")
        waits, without = call(url, lambda client: _lacking(client, workflow))
        waits, without = waits[:limit], without[:limit]
        lines = [plain(line) for one in waits for line in (f"{one['run']}  {one['title']}", f"    {one['text']}")]
        show([*waits, *without], as_json, [*lines, *run_lines(without)], "No run lacks its code.")
        return
    found = call(url, lambda client: client.runs(workflow=workflow, status=status, parent=parent, limit=limit))["runs"]
    filtered = workflow or parent or status
    none = "No runs match." if filtered else "No runs yet. Start one with `weft run NAME`."
    show(found, as_json, run_lines(found), none)


async def _lacking(client: AsyncClient, workflow: str | None) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return the questions of runs whose code does not fit, and the runs that the server has given back."""
    asked = (await client.waits(kind="attention", workflow=workflow, limit=1000))["waits"]
    waits = [
        {
            "run": one["run"],
            "workflow": one["workflow"],
            "opened_at_ms": one["opened_at_ms"],
            "title": one["title"],
            "text": one["request"]["text"].partition("\n")[0],
        }
        for one in asked
        if one["request"].get("reason") == "code"
    ]
    found = [await client.runs(status=each, workflow=workflow, limit=1000) for each in ("waiting", "running")]
    return waits, [run for page in found for run in page["runs"] if run["lacks"]]


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--reason", default="", help="Recorded in the journal.")
@click.option("--now", is_flag=True, help="Do not wait for cleanups.")
@click.pass_obj
def cancel(url: str, run_id: str, reason: str, now: bool) -> None:
    """Cancel RUN and the runs it has started. Running blocks are stopped and waits are closed.

    The cleanups of the run are executed before it ends. Cancel it again, or use --now, to end it without them.
    """
    from server.client import ApiError

    async def ask(client: AsyncClient) -> str | None:
        try:
            return (await client.cancel(run_id, reason, now=now))["status"]
        except ApiError as error:
            if error.code == "run_ended":
                return None
            raise

    if status := call(url, ask):
        click.echo(f"{run_id} is {'cancelled' if status == 'cancelled' else 'being cancelled'}.")
        return
    raise Refused(f"Run {run_id} has already ended.", f"See `weft events {run_id}`.")


def _files(options: Sequence[str], value: object) -> list[tuple[str, Path]]:
    """Fields and the files for them. Raises Refused."""
    if options and not (value is None or isinstance(value, dict)):
        raise Refused("--file needs an input that is an object.", "Leave --input out, or use an object.")
    found = []
    for option in options:
        field, separator, path = option.partition("=")
        if not (field and separator and path):
            raise Refused(f"--file {option} has no field.", "Use --file FIELD=PATH.")
        if not Path(path).is_file():
            raise Refused(f"There is no file {path}.", "Use --file FIELD=PATH.")
        found.append((field, Path(path)))
    return found


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

    async def ask(client: AsyncClient) -> tuple[Any, int | None]:
        made = await client.retry(run_id, node, idempotency_key=key)
        if made["how"] == "now" or made["version"] is None:
            return made, None
        return made, (await client.workflow(made["workflow"]))["version"]

    made, active = call(url, ask)
    if active not in (None, made["version"]):
        newer = f"Version {active} of {made['workflow']} is active; this run uses {made['version']}."
        click.echo(f"{newer} `weft rerun {run_id} --version {active}` continues with it.", err=True)
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


FATES = {"kept": "kept", "maybe": "runs if its input changes", "again": "runs again", "new": "runs, is new"}
FATES |= {"branch": "may run, its branch is decided again", "skipped": "not taken, as before"}
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
    """Start RUN again, or continue it with another version.

    From a block, or with another version or the draft: what is unchanged is not run again. With --failed, what would be
    repeated is listed first."""
    if failed == bool(run_id) or failed != bool(workflow):
        raise Refused("Name a run, or use --failed with --workflow.", "weft rerun --failed --workflow NAME --last 20")
    if version is None and (preview or again) and not failed:
        raise Refused("--preview and --again need --version.", "Use --version draft, or a number.")
    number: int | str | None = int(version) if version is not None and version.isdecimal() else version

    async def ask(client: AsyncClient) -> list[dict[str, Any]]:
        more = list(again) or None
        if run_id and preview and number is not None:
            return [dict(await client.continuation(run_id, number, start=start))]
        if run_id:
            made = await client.rerun(run_id, start, version=number, again=more, idempotency_key=key)
            return [{**made, "source": run_id}]
        page = await client.runs(workflow=workflow, status="failed", limit=last)
        found = [run["id"] for run in page["runs"]]
        if not found:
            return []
        shown = (await client.rerun_many(found, start, version=number, again=more, preview=True))["runs"]
        if preview:
            return [{**each, "run": each["source"]} for each in shown]
        click.echo("\n".join(line for each in shown for line in _fates({**each, "run": each["source"]})), err=True)
        answer = await client.rerun_many(found, start, version=number, again=more, idempotency_key=key)
        return [dict(each) for each in answer["runs"]]

    answers = call(url, ask)
    lines = [line for answer in answers for line in (_fates(answer) if preview else [_made(answer)])]
    show(answers[0] if run_id else answers, as_json, lines, "No runs match.")


def _made(answer: dict[str, Any]) -> str:
    if answer.get("error"):
        return plain(f"run {answer['source']}: {answer['error']}")
    return f"run {answer['run']} continues {answer['source']}"


def _fates(answer: dict[str, Any]) -> list[str]:
    lines = [plain(f"run {answer['run']}{': ' + answer['error'] if answer.get('error') else ''}")]
    for block in answer["blocks"]:
        acts = block["effect"] == "write" and block["fate"] not in ("kept", "skipped")
        notes = [
            FATES["branch" if (block["fate"], block["why"]) == ("maybe", "branch") else block["fate"]],
            *([f"{block['kept']} kept"] if block["kept"] > 1 else []),
            *([f"{block['calls']} calls kept"] if block["calls"] else []),
            *(["changes something outside"] if acts else []),
        ]
        lines.append(plain(f"  {block['block']:<20} {', '.join(notes)}"))
    return lines
