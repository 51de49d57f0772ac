"""`weft top`: what a server and its database do, renewed every second."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from server.cli.common import call
from server.cli.render import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from server.client import AsyncClient

Json = Mapping[str, Any]
ROWS_MAX = 8  # of each table: a short terminal has 24 lines
LONGEST_S = 3600.0


@click.command()
@click.option("--once", is_flag=True, help="Print one frame and end, for scripts.")
@click.option("--every", type=click.FloatRange(0.2, LONGEST_S), default=1.0, show_default=True, help="Seconds.")
@click.pass_obj
def top(url: str, once: bool, every: float) -> None:
    """Show running, waiting and queued runs, live.

    Rates are those of the server that answers; open runs are counted in the whole database. Ctrl+C ends it.
    """
    if once:
        shown = call(url, lambda client: client.stats())
        click.echo("\n".join(frame(shown, None)))
        return
    dumb = not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb" or find_spec("rich") is None
    call(url, lambda client: _lines_for_ever(client, every) if dumb else _screen(client, every))


async def _lines_for_ever(client: AsyncClient, every: float) -> None:
    """Print one frame below the other, for a terminal that cannot move its cursor."""
    import asyncio

    before: Json | None = None
    while True:
        now: Json = await client.stats()
        click.echo("\n".join([*frame(now, before), ""]))
        before = now
        await asyncio.sleep(every)


async def _screen(client: AsyncClient, every: float) -> None:
    import asyncio

    from rich.console import Console
    from rich.live import Live

    console = Console()
    before: Json | None = None
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            now: Json = await client.stats()
            live.update(_fitted(frame(now, before), console.size.height), refresh=True)
            before = now
            await asyncio.sleep(every)


def _fitted(lines: list[str], height: int) -> RenderableType:
    from rich.text import Text

    return Text("\n".join(lines[: max(1, height - 1)]), no_wrap=True, overflow="ellipsis")


def frame(now: Json, before: Json | None) -> list[str]:
    """Return one frame, as lines. `before` is the previous answer; rates are those of the time between the two."""
    return list(_frame(now, before))


def _frame(now: Json, before: Json | None) -> Iterator[str]:
    process = now["process"]
    clock = time.strftime("%H:%M:%S", time.localtime(now["at_ms"] / 1000))
    lag = f"event loop lag {process['event_loop_lag_ms']:.1f} ms"
    yield f"weft top  {clock}  database {_bytes(now['database_bytes'])}  {lag}"
    open = now["runs_open"]
    yield "runs      " + "  ".join(f"{open.get(status, 0)} {status}" for status in ("queued", "running", "waiting"))
    ended = process["runs_ended"]
    yield "ended     " + "  ".join(
        f"{ended.get(status, 0)} {status}" for status in ("succeeded", "failed", "cancelled")
    )
    if before is not None:
        yield f"a second  {'  '.join(_rates(now, before))}"
    late = [(name, now[key]) for name, key in (("timers", "timer_lag_ms"), ("schedules", "schedule_lag_ms"))]
    lateness = "  ".join(f"{name} {ms / 1000:.1f} s late" for name, ms in late if ms > 1000)
    waits = "  ".join(f"{count} {plain(kind)}" for kind, count in now["waits_open"].items()) or "none"
    yield f"waits     {waits}  messages to send {now['notifications_pending']}{'  ' + lateness if lateness else ''}"
    yield f"streams   {process['event_streams']}  write retries {process['write_retries']}"
    yield ""
    yield f"{'POOL':<24} {'QUEUED':>8} {'OLDEST':>9}"
    for queue in now["queues"][:ROWS_MAX] or [{"pool": "(nothing is queued)", "runs": 0, "oldest_ms": 0}]:
        yield f"{plain(queue['pool'])[:24]:<24} {queue['runs']:>8} {queue['oldest_ms'] / 1000:>7.1f} s"
    yield ""
    yield f"{'WORKER':<24} {'RUNS':>8} {'LEASE':>9}"
    for worker in now["workers"][:ROWS_MAX]:
        lease = f"{worker['lease_ms'] / 1000:.0f} s" if worker["lease_ms"] > 0 else "over"
        yield f"{plain(worker['name'])[:24]:<24} {worker['runs']:>8} {lease:>9}"
    if len(now["workers"]) > ROWS_MAX:
        yield f"and {len(now['workers']) - ROWS_MAX} more"
    yield ""
    yield f"{'BLOCK (most time first)':<24} {'ATTEMPTS':>8} {'MEAN':>11} {'TOTAL':>9}"
    for block in process["blocks"][:ROWS_MAX]:
        mean_ms = block["seconds"] * 1000 / max(1, block["attempts"])
        yield f"{plain(block['block'])[:24]:<24} {block['attempts']:>8} {mean_ms:>8.1f} ms {block['seconds']:>7.1f} s"


def _rates(now: Json, before: Json) -> Iterator[str]:
    seconds = max(0.001, (now["at_ms"] - before["at_ms"]) / 1000)
    mine, theirs = now["process"], before["process"]
    same = mine["worker"] == theirs["worker"]  # else another server has answered: its counters are its own

    def rate(more: float) -> float:
        return max(0.0, more) / seconds if same else 0.0

    yield f"{rate(mine['runs_started'] - theirs['runs_started']):.1f} started"
    yield f"{rate(sum(mine['runs_ended'].values()) - sum(theirs['runs_ended'].values())):.1f} ended"
    yield f"{rate(_attempts(mine) - _attempts(theirs)):.1f} attempts"
    yield f"{rate(mine['commits'] - theirs['commits']):.1f} commits"


def _attempts(process: Json) -> int:
    return sum(block["attempts"] for block in process["blocks"])


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
