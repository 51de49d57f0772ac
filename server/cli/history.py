"""`weft why`, `state`, `diff` and `trace`: how a run came to its state."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from executor.kernel.process.extras import install
from server.cli.common import BAD_ARGUMENTS, FAILED, OK, Refused, call, counted, show, with_json
from server.cli.render import error_text, plain, short, step_lines, styled_status, traceback_lines, with_clock

if TYPE_CHECKING:
    from executor.service.telemetry.spans import Span, Trace
    from server.client import AsyncClient

Json = Mapping[str, Any]
BAR = 24  # cells of the time of the whole run
NAME = 34
PAGE = 1_000


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

    Its nodes, waits, variables, and what a durable function has published.
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
    if found.get("state") is not None:
        yield f"  published: {plain(json.dumps(found['state'], ensure_ascii=False))}"


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


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--otlp", metavar="URL", help="Send the trace to this collector (OTLP over HTTP) instead.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header for --otlp. Repeatable.")
@with_json
def trace(url: str, run_id: str, otlp: str | None, headers: tuple[str, ...], as_json: bool) -> None:
    """Show where the time of RUN went.

    Its nodes, attempts and steps as a tree, each with its time and a bar in the time of the run.
    """
    found = call(url, lambda client: _trace_of(client, run_id))
    if otlp is not None:
        _send(found, otlp, headers)
        return
    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
        return
    for line in tree_lines(found, int(time.time() * 1000)):
        click.echo(line)
    if found.left_out:
        click.echo(f"{found.left_out} more spans are left out.", err=True)


async def _trace_of(client: AsyncClient, run_id: str) -> Trace:
    from executor.kernel.journal.projection import Entry
    from executor.service.telemetry.spans import TracedRun, TraceMaker

    run: Mapping[str, Any] = await client.get_run(run_id)
    graph: Mapping[str, Any] = await client.graph(run_id)
    root, parent = await _above(client, run)
    traced = TracedRun(
        run["id"],
        run["workflow"],
        run["version"],
        run["status"],
        run["created_at_ms"],
        run["finished_at_ms"],
        root,
        parent,
    )
    maker = TraceMaker(traced, {node["id"]: node["type"] for node in graph["nodes"]})
    after = 0
    while True:
        events = (await client.events(run_id, after, PAGE))["events"]
        for event in events:
            of = event["node"], event["path"], event["attempt"]
            maker.add(Entry(event["seq"], event["at_ms"], event["type"], *of, event["data"]))
        if len(events) < PAGE:
            return maker.trace()
        after = events[-1]["seq"]


async def _above(client: AsyncClient, run: Mapping[str, Any]) -> tuple[str | None, tuple[str, str] | None]:
    """Return the topmost run above, and the run and the wait that started this one."""
    first: tuple[str, str] | None = None
    root: str | None = None
    while parent := run.get("parent"):
        root = parent["run"]
        above: Mapping[str, Any] = await client.get_run(parent["run"])
        if first is None:
            attempt = next((child["attempt"] for child in above["children"] if child["run"] == run["id"]), 1)
            first = parent["run"], f"{parent['key']}!{attempt}"
        run = above
    return root, first


def tree_lines(trace: Trace, now_ms: int) -> Iterator[str]:
    """Yield the lines of the tree: parents above their children, in the order of their starts. The only attempt of a
    node is not shown by itself if it has no children."""
    below: dict[str | None, list[Span]] = {}
    for span in trace.spans:
        below.setdefault(span.parent, []).append(span)
    root = trace.spans[0]
    end_ms = root.end_ms or max(now_ms, *(span.end_ms or 0 for span in trace.spans))
    whole = (root.start_ms, max(1, end_ms - root.start_ms))

    def lines(span: Span, depth: int) -> Iterator[str]:
        under = below.get(span.id, [])
        if span.kind == "node" and len(under) == 1 and under[0].kind == "attempt":
            error = span.error or under[0].error
            yield _line(span, depth, whole, now_ms, error)
            under = below.get(under[0].id, [])
        else:
            yield _line(span, depth, whole, now_ms, span.error)
        for each in sorted(under, key=lambda each: each.start_ms):
            yield from lines(each, depth + 1)

    yield from lines(root, 0)


def _line(span: Span, depth: int, whole: tuple[int, int], now_ms: int, error: Mapping[str, Any] | None) -> str:
    start_ms, length_ms = whole
    end_ms = span.end_ms if span.end_ms is not None else max(span.start_ms, min(now_ms, start_ms + length_ms))
    first = min(BAR - 1, max(0, (span.start_ms - start_ms) * BAR // length_ms))
    cells = max(1, min(BAR - first, round((end_ms - span.start_ms) * BAR / length_ms)))
    bar = " " * first + "#" * cells
    name = plain("  " * depth + str(span.attributes.get("weft.node", span.name) if span.kind == "node" else span.name))
    name = name if len(name) <= NAME else f"{name[: NAME - 3]}..."
    wait = f"  {plain(error_text(error))}" if error else ""
    took = _took(end_ms - span.start_ms) + ("" if span.end_ms is not None else " so far")
    return f"{name:<{NAME}} |{bar:<{BAR}}| {took:>9}  {styled_status(span.status)}{wait}"


def _took(ms: int) -> str:
    if ms < 10_000:
        return f"{ms} ms"
    seconds = ms / 1000
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _send(trace: Trace, url: str, headers: tuple[str, ...]) -> None:
    from urllib.parse import urlsplit

    pairs = dict(header.partition("=")[::2] for header in headers)
    if not all(name and value for name, value in pairs.items()):
        raise Refused("--header must have the form NAME=VALUE.")
    if urlsplit(url).scheme not in ("http", "https"):
        raise Refused("--otlp must be the URL of a collector, such as http://127.0.0.1:4318.")
    try:
        from executor.service.telemetry.otlp import Collector
    except ImportError:
        raise Refused("Sending traces needs a library.", install("otel"), BAD_ARGUMENTS) from None
    collector = Collector(url if urlsplit(url).path.strip("/") else f"{url.rstrip('/')}/v1/traces", pairs)
    ended = sum(span.end_ms is not None for span in trace.spans)
    if not collector.export(trace):
        raise Refused(f"The collector at {url} did not take the trace.")
    click.echo(f"Sent {ended} spans of trace {trace.id}.", err=True)
