"""What an expectation is: after each event, the status of the run and of the node key the event is about."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from compiler.keys import join_key
from executor.kernel.journal.projection import Entry, NodeState, Projection

FILE = Path(__file__).with_name("runs.json")
Json = dict[str, Any]


def load() -> list[Json]:
    streams: list[Json] = orjson.loads(FILE.read_bytes())
    return streams


def entry(event: Json) -> Entry:
    """Of an event as it comes over HTTP."""
    return Entry(
        event["seq"], event["at_ms"], event["type"], event["node"], event["path"], event["attempt"], event["data"]
    )  # fmt: skip


def expected(events: Iterable[Json]) -> list[Json]:
    """One for each event. The two ends of a container are one, as the editor shows them."""
    run = Projection()
    containers: dict[str, NodeState] = {}
    told = []
    for event in events:
        state = run.apply(entry(event))
        if state is not None and event["node"] != event["block"]:
            key = join_key(event["block"], event["path"])
            if key not in containers:
                containers[key] = NodeState(event["block"], event["path"], container=True)
            state = containers[key]
            state.apply(entry(event))
        told.append({"run": run.status, "node": None if state is None else _shown(state)})
    return told


def _shown(state: NodeState) -> Json:
    shown: Json = {
        "key": join_key(state.node, state.path),
        "status": state.status,
        "route": state.route,
        "started_at": state.started_at_ms,
        "finished_at": state.finished_at_ms,
        "lost": state.lost,
        "cached": state.cached,
        "reused": state.reused,
    }
    if state.reason is not None:
        shown |= {"reason": state.reason, "because": state.because}
    if state.status in ("failed", "cancelled", "retrying") and state.error is not None:
        shown["error"] = state.error["code"]
    if state.steps is not None:
        shown["steps"] = [[step.n, step.status, step.times, step.finished_at_ms] for step in state.steps.in_order()]
    if not state.container:
        shown["attempt"] = state.attempt
        shown["attempts"] = [
            [attempt.attempt, attempt.started_at_ms, attempt.finished_at_ms]
            for attempt in state.attempts.values()
            if attempt.started_at_ms is not None
        ]
    return shown
