"""`weft why`, `weft state` and `weft diff`: looking back at runs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from server.cli.common import FAILED, OK, call, counted, show, with_json
from server.cli.render import error_text, plain, short, step_lines, styled_status, traceback_lines, with_clock

if TYPE_CHECKING:
    from server.client import AsyncClient

Json = Mapping[str, Any]


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("node", required=False)
@click.option("--at", "seq", type=click.IntRange(1), metavar="N", help="After event N. Default: now.")
@click.pass_obj
def why(url: str, run_id: str, node: str | None, seq: int | None) -> None:
    """Explain the state of RUN's nodes, or of NODE alone."""

    async def ask(client: AsyncClient) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]], Mapping[str, Any]]:
        about: Mapping[str, Any] = {} if node and not seq else await client.get_run(run_id)
        found = (await client.why(run_id, node, seq))["why"]
        one = node and not seq and len(found) == 1
        return about, found, await client.node(run_id, found[0]["key"], preview=200) if one else {}

    about, found, detail = call(url, ask)
    if seq is not None:
        _warn_past_the_end(seq, about["seq"])
        about = {}
    if error := about.get("error"):
        place = f" at {error['block']}" if error.get("block") else ""
        click.echo(f"{styled_status(about['status'])}{plain(place)}: {plain(error_text(error))}")
        _echo_traceback(None if node else error)
    elif about.get("finished_at_ms"):
        click.echo(styled_status(about["status"]))
    for item in found:
        click.echo(f"{item['key']}  {styled_status(item['state'])}")
        for reason in item["reasons"]:
            click.echo(f"  {plain(with_clock(reason))}")
    _echo_traceback(detail.get("error"))
    steps = detail.get("steps") or ()
    for step, line in zip(steps, step_lines(steps), strict=True):
        click.echo(f"  {line}")
        if (step.get("error") or {}).get("traceback", "") not in (detail.get("error") or {}).get("traceback", ""):
            _echo_traceback(step["error"])  # the block did not fail because of it
    checkpoint = detail.get("checkpoint")
    if checkpoint is not None:
        cut = checkpoint["value_truncated"]
        value = checkpoint["value_preview"] if cut else json.dumps(checkpoint["value"], ensure_ascii=False)
        label = with_clock(f"attempt {checkpoint['attempt']} saved a checkpoint at {checkpoint['at_ms']} ms: ")
        click.echo(f"  {label}{plain(value)}")


def _echo_traceback(error: Json | None) -> None:
    for line in traceback_lines(error, indent=4):
        click.echo(line)


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--at", "seq", type=click.IntRange(1), metavar="N", help="After event N. Default: now.")
@with_json
def state(url: str, run_id: str, seq: int | None, as_json: bool) -> None:
    """Show the state of RUN after an event.

    Its nodes, waits and variables.
    """
    found = call(url, lambda client: client.state(run_id, seq))
    _warn_past_the_end(seq, found["seq"])
    show(found, as_json, _state_lines(found))


@click.command()
@click.argument("a", metavar="RUN")
@click.argument("b", metavar="OTHER")
@with_json
def diff(url: str, a: str, b: str, as_json: bool) -> int:
    """Show where two runs part, and what came out differently.

    Times and ids do not count. Exit code 0: nothing differs; 1: something does.
    """
    found = call(url, lambda client: client.diff(a, b))
    show(found, as_json, _diff_lines(found))
    return OK if found["same"] else FAILED


def _warn_past_the_end(asked: int | None, last: int) -> None:
    if asked is not None and asked > last:
        click.echo(f"There is no event {asked}. This is the state after event {last}, the last one.", err=True)


def _state_lines(found: Json) -> Iterator[str]:
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(found["at_ms"] / 1000))
    yield f"{found['run']}  {styled_status(found['status'])}  event {found['seq']} of {found['last_seq']}  {clock}"
    if found["error"]:
        yield f"  error: {plain(found['error']['message'])}"
    for node in found["nodes"]:
        tries = f", attempt {node['attempt']}" if node["attempt"] > 1 else ""
        yield f"  {node['key']}  {styled_status(node['status'])}{tries}"
    for wait in found["waits"]:
        yield f"  {wait['key']} waits: {wait['kind']}{_until(wait['due_ms'])}"
    for retry in found["retries"]:
        yield f"  {retry['key']} is retried (attempt {retry['attempt']}){_until(retry['due_ms'])}"
    for container in found["containers"]:
        done, count = container["closed"], container["count"]
        yield f"  {container['key']} ({container['kind']}): {done} of {count} done, {container['opened'] - done} open"
    if found["ready"]:
        yield f"  starts next: {', '.join(found['ready'][:10])}"
    for name, value in found["variables"].items():
        yield f"  {plain(name)} = {plain(json.dumps(value, ensure_ascii=False))}"


def _until(due_ms: int | None) -> str:
    return "" if due_ms is None else time.strftime(", until %Y-%m-%d %H:%M:%S", time.localtime(due_ms / 1000))


def _diff_lines(found: Json) -> Iterator[str]:
    for name in ("a", "b"):
        run = found[name]
        version = f" version {run['version']}" if run["version"] is not None else ""
        events = counted(run["seq"], "event")
        yield f"{name}  {run['run']}  {styled_status(run['status'])}  {run['workflow']}{version}, {events}"
    if found["same"]:
        yield "Only times and ids differ."
        return
    if found["diverged"]:
        yield "First difference:"
        yield from (f"  {name}  {_event(found['diverged'][name])}" for name in ("a", "b"))
    yield from _values("input", found["input"])
    yield from _values("output", found["output"])
    for node in found["nodes"]:
        yield f"{node['key']}  {_node(node['a'])} | {_node(node['b'])}"
        yield from _values("", node["output"])
    for name in ("a", "b"):
        only = found[f"only_{name}"]
        if only:
            yield f"only in {name}: {', '.join(only[:20])}{' …' if len(only) > 20 else ''}"
    yield f"Nodes: {found['equal']} equal, {found['differing']} not."


def _event(event: Json | None) -> str:
    if event is None:
        return "(its journal ends)"
    detail = event["output"] if event["output"] is not None else short(event["data"]) if event["data"] else ""
    return f"event {event['seq']}  {event['type']}  {event['key'] or ''}  {plain(detail)[:120]}".rstrip()


def _node(node: Json) -> str:
    more = node["error"] or (node["route"] if node["route"] not in (None, "out") else "")
    return styled_status(node["status"]) + (f" ({more})" if more else "")


def _values(name: str, differences: list[Json]) -> Iterator[str]:
    for one in differences:
        a, b = ("(nothing)" if one[side] is None else plain(one[side])[:80] for side in ("a", "b"))
        yield f"    {name}{one['pointer'] or ('' if name else '(all of it)')}: {a} | {b}"


COMMANDS = (why, state, diff)
