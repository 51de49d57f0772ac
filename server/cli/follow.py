"""Watching a run from the command line: a live view on a terminal, one plain line for each event in a pipe.

The view goes to stderr and the run's output to stdout, so `weft run NAME --follow | jq` gets the output alone.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from contextlib import aclosing
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click
import msgspec

from executor.kernel.journal.projection import OPEN, meaning
from server.cli.render import STATUS_COLOURS, event_detail, event_line, plain, question, styled_status, traceback_lines
from server.client import PASSING, ApiError, Event, ServerUnreachable, open_waits, standing

if TYPE_CHECKING:
    from rich.table import Table

    from server.client import AsyncClient
    from server.client.answers import RunDetail, WaitView

# A parked run is looked at again after this, then after twice as long each time, up to the second or third.
LOOK_S, LOOK_MAX_S = 0.05, 10.0
CHILDREN_LOOK_S = 1.0  # what children do is not in the run's own events
LIVE_ROWS_MAX = 20  # a short terminal has 24 lines
FAILED_SHOWN = 10


async def follow(client: AsyncClient, run: str, *, as_json: bool = False) -> str:
    """Show the run, and those that continue it, until the last of them has ended or only people or signals can move it.
    Returns the status at that time.

    Prints the output (JSON) to stdout; with `as_json` the events instead, one a line.
    """
    while (after := (view := await _follow_one(client, run, as_json)).get("continued_as")) is not None:
        if not as_json:
            click.echo(f"continued as run {after}", err=True)
        run = after
    return str(view["status"]) if as_json else _report(view)


async def _follow_one(client: AsyncClient, run: str, as_json: bool) -> RunDetail:
    if as_json:
        return await _watch(client, run, lambda event: click.echo(msgspec.json.encode(event)), lambda line: None)
    if sys.stderr.isatty() and find_spec("rich") is not None:  # of the extra `server`; lines need nothing
        return await _watch_live(client, run)

    def line(text: str) -> None:
        click.echo(text, err=True)

    return await _watch(client, run, lambda event: line(event_line(event)), line)


async def print_events(client: AsyncClient, run: str, after: int, *, live: bool, as_json: bool) -> None:
    """Print the journal after `after` to stdout; with `live` until the run has ended."""

    def show(event: Event) -> None:
        click.echo(msgspec.json.encode(event) if as_json else event_line(event))

    if live:
        async with aclosing(client.follow(run, after)) as events:
            async for event in events:
                show(event)
        return
    while page := msgspec.convert((await client.events(run, after))["events"], list[Event]):
        for event in page:
            show(event)
        after = page[-1].seq


async def _parked(client: AsyncClient, run: str, shown: int) -> RunDetail | None:
    """Return the run, or None if there are events after `shown`, or if the server does not answer now: `client.follow`
    decides how long that may last."""
    try:
        view = await client.get_run(run)
        return view if view["seq"] <= shown else None
    except ServerUnreachable:
        return None
    except ApiError as error:
        if error.status in PASSING:
            return None
        raise


class Progress:
    """The newest state of each node key, folded from events; drawn as a table."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[str, int, int | None, str]] = {}  # key -> status, started ms, ended ms, detail

    def apply(self, event: Event) -> None:
        """Take in one event."""
        means = meaning(event.type, event.data)
        if means is None or event.key is None or means.status == "skipped":
            return
        # A node that starts again (a retry, the next test of a loop) moves to the end, where it is seen.
        _, started, _, _ = self._rows.pop(event.key, ("", event.at_ms, None, ""))
        ended = None if means.status in OPEN else event.at_ms
        self._rows[event.key] = (means.status, started, ended, event_detail(event))

    def table(self, now_ms: int) -> Table:
        """The rows of the nodes that run or have just ended, as of `now_ms`."""
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        rows = list(self._rows.items())
        if len(rows) > LIVE_ROWS_MAX:
            table.add_row(Text(f"… {len(rows) - LIVE_ROWS_MAX} more", style="bright_black"))
        for key, (status, started, ended, detail) in rows[-LIVE_ROWS_MAX:]:
            seconds = ((now_ms if ended is None else ended) - started) / 1000
            colour = STATUS_COLOURS[status]
            table.add_row(
                Text(status, style=colour),
                Text(key),
                Text(f"{seconds:.1f} s"),
                Text(detail, overflow="ellipsis", no_wrap=True),
            )
        return table


async def _watch(client: AsyncClient, run: str, show: Callable[[Event], None], ask: Callable[[str], None]) -> RunDetail:
    """Call `show` with each event until the run has ended or stands still, and `ask` with each question that is open
    beside a timer. Returns the run as it was then."""
    asked: set[str] = set()
    async with aclosing(client.follow(run)) as events:
        coming = asyncio.ensure_future(anext(events, None))
        look_s: float | None = None  # of a parked run; an answer may lead to no event
        has_children = False
        shown = 0
        try:
            while True:
                await asyncio.wait([coming], timeout=look_s)
                if coming.done():
                    event = coming.result()
                    if event is None:
                        return await client.get_run(run)
                    show(event)
                    shown = event.seq
                    look_s = LOOK_S if event.type == "run.parked" else None
                    has_children |= event.type == "wait.opened" and event.data.get("kind") == "child"
                    coming = asyncio.ensure_future(anext(events, None))
                if look_s is not None:
                    # The event is recorded before the row has the status: for a moment, or until another worker has the
                    # run.
                    if view := await _parked(client, run, shown):
                        if standing(view):
                            return view
                        for wait in _asks(view):
                            if wait["id"] not in asked:
                                asked.add(wait["id"])
                                ask(_question_line(wait))
                    look_s = min(2 * look_s, CHILDREN_LOOK_S if has_children else LOOK_MAX_S)
        finally:
            coming.cancel()
            await asyncio.wait([coming])


async def _watch_live(client: AsyncClient, run: str) -> RunDetail:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    progress = Progress()
    console = Console(stderr=True)

    def show(event: Event) -> None:
        progress.apply(event)
        if event.type == "node.log":  # above the table, where it stays
            console.print(Text.from_ansi(event_line(event)))

    # Redrawn four times a second from its own thread, so that the seconds of running nodes count up between events.
    with Live(console=console, get_renderable=lambda: progress.table(int(time.time() * 1000)), refresh_per_second=4):
        return await _watch(client, run, show, lambda line: console.print(Text(line), soft_wrap=True))


def _asks(run: RunDetail) -> list[WaitView]:
    """Return what people and programs can answer now."""
    if run["status"] != "waiting":
        return []
    return [wait for wait in open_waits(run) if wait["status"] == "pending" and wait["kind"] not in ("timer", "child")]


def _question_line(wait: WaitView) -> str:
    actions = f" ({', '.join(wait['actions'])})" if wait.get("actions") else ""
    return f"  {plain(question(wait))}{actions}: {wait.get('link') or wait['kind']}"


def _report(run: RunDetail) -> str:
    """Print the status, the output of a finished run, and the open waits of a waiting one. Returns the status."""
    status = str(run["status"])
    error = run.get("error") or {}
    reason = f": {plain(str(error.get('message')))}" if status == "failed" and error else ""
    click.echo(f"{styled_status(status)}{reason}", err=True)
    if reason and (hint := error.get("hint")):
        click.echo(f"  {plain(str(hint))}", err=True)
    if reason:
        for line in traceback_lines(error):
            click.echo(line, err=True)
    if status == "succeeded":
        if failed := run.get("failed_nodes"):
            more = f" and {len(failed) - FAILED_SHOWN} more" if len(failed) > FAILED_SHOWN else ""
            click.echo(
                f"  failed on the way: {', '.join(failed[:FAILED_SHOWN])}{more} (weft why {run['id']} NODE)", err=True
            )
        click.echo(json.dumps(run.get("output"), indent=2, ensure_ascii=False))
    for wait in _asks(run):
        click.echo(_question_line(wait), err=True)
    if status == "waiting":
        click.echo(f"  It resumes after an answer. Watch it with: weft events {run['id']} --follow", err=True)
    return status
