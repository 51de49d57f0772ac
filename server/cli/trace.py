"""`weft trace`: the time of a run, as a tree with bars; and the trace of any run sent to a collector."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from executor.kernel.process.extras import install
from server.cli.common import BAD_ARGUMENTS, Refused, call, with_json
from server.cli.render import error_text, plain, styled_status

if TYPE_CHECKING:
    from executor.service.telemetry.spans import Span, Trace
    from server.client import AsyncClient

BAR = 24  # cells of the time of the whole run
NAME = 34
PAGE = 1_000


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


COMMANDS = (trace,)
