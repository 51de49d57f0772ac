"""Reads journals of runs of durable functions from a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from compiler.tracing.durable import BODY, TYPE
from executor.service.replay.journals import Journal
from server.client import AsyncClient

OPEN: Final = ("waiting", "running")
RUNS_MAX: Final = 50  # the newest
HINT: Final = 'Put the new calls under `if weft.patched("name"):`, or the old ones back: an open run waits until then.'


class Fit(Struct, frozen=True):
    """`parts`: where the run and the code part, or ""."""

    run: str
    workflow: str
    parts: str


async def journal_of(client: AsyncClient, run_id: str) -> tuple[Journal, str] | None:
    """Return the journal of a run, and the function by its name in documents; None if the run is of something else, or
    has not begun it. Raises ClientError."""
    run = await client.get_run(run_id)
    if not any(each["key"] == BODY for each in run["nodes"]):
        return None
    node = await client.node(run_id, BODY)
    params: Any = node["input"]
    if node["type"] != TYPE or params is None:
        return None
    events: list[Any] = []
    while page := (await client.events(run_id, len(events)))["events"]:
        events += page
    arguments = params.get("arguments") or {}
    code = params.get("code") or ""
    return Journal.of_events(run_id, run["workflow"], run["status"], arguments, events, code), params["function"]


async def open_journals(client: AsyncClient, workflow: str, last: int = RUNS_MAX) -> list[Journal]:
    """Return those of the open runs of a workflow. Raises ClientError."""
    pages = [await client.runs(workflow=workflow, status=status, limit=last) for status in OPEN]
    newest = sorted((run["id"] for page in pages for run in page["runs"]), reverse=True)[:last]
    return await _journals(client, newest)


async def last_journals(client: AsyncClient, workflow: str, last: int) -> list[Journal]:
    """Return those of the newest runs of a workflow. Raises ClientError."""
    return await _journals(client, [run["id"] for run in (await client.runs(workflow=workflow, limit=last))["runs"]])


async def _journals(client: AsyncClient, runs: Sequence[str]) -> list[Journal]:
    found = [await journal_of(client, run) for run in runs]
    return [one[0] for one in found if one is not None]
