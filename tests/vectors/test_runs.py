"""The recorded streams: the projection says of each event what was recorded, and so do the views in SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any, get_args

import orjson
import pytest

from executor.kernel.core.events import Event
from executor.kernel.journal.projection import ASIDE, BLOCK_OUTPUT, CONTAINER_OUTPUT, NodeState, Projection, meaning
from executor.kernel.store.migrate import packaged_migrations
from executor.kernel.store.run_rows import Record
from executor.kernel.store.statements import TERMINAL
from executor.service.upkeep.sql.sqlite import SQLITE
from tests.support.spoil import add_event, let_change
from tests.vectors.streams import Json, entry, expected, load

STREAMS = load()
STREAM = pytest.mark.parametrize("stream", STREAMS, ids=[stream["name"] for stream in STREAMS])


@STREAM
def test_each_event_means_what_was_recorded(stream: Json) -> None:
    assert expected(stream["events"]) == stream["expected"]


@STREAM
def test_records_mean_the_same_as_entries(stream: Json) -> None:
    of_entries, of_records = Projection(), Projection()
    for event in stream["events"]:
        state = of_entries.apply(entry(event))
        data = orjson.dumps(event["data"]) if event["data"] else None
        place = event["node"], event["path"], event["attempt"]
        other = of_records.apply_record(Record(event["seq"], event["at_ms"], event["type"], *place, data))
        assert other == state and of_records.status == of_entries.status, event["seq"]
    assert of_records.nodes == of_entries.nodes


def test_the_streams_have_every_event_that_changes_a_node() -> None:
    seen = {event["type"] for stream in STREAMS for event in stream["events"]}
    data = {"error": {"code": ""}, "reason": "", "kind": "", "outcome": ""}
    types = {str(cls.__struct_config__.tag) for cls in get_args(Event)}
    assert {type for type in types - ASIDE if meaning(type, data) is not None} <= seen


# --- the views of the database ---


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as db:
        for migration in packaged_migrations():
            db.executescript(migration.sql)
        yield db


@STREAM
def test_the_views_in_sql_agree_after_each_event(db: sqlite3.Connection, stream: Json) -> None:
    run = Projection()
    add_run(db)
    for event in stream["events"]:
        add(db, event)
        run.apply(entry(event))
        db.execute("UPDATE runs SET status = ?", (run.status,))
        over = run.status in TERMINAL
        keys = {(node, path): row for node, path, *row in db.execute(NODES)}
        assert keys == {key: node_row(state, over) for key, state in run.nodes.items()}, event["seq"]
        tries = {(node, path, attempt): row for node, path, attempt, *row in db.execute(ATTEMPTS)}
        assert tries == dict(attempt_rows(run)), event["seq"]


@STREAM
def test_what_is_exported_is_what_the_projection_calls_an_output(db: sqlite3.Connection, stream: Json) -> None:
    run = Projection()
    add_run(db)
    for event in stream["events"]:
        add(db, event)
        run.apply(entry(event))
    found = set()
    for node in {event["node"] for event in stream["events"] if event["node"]}:
        type = CONTAINER_OUTPUT if node.endswith(":end") else BLOCK_OUTPUT
        found |= {(node, row["path"], row["seq"]) for row in rows(db, SQLITE.outputs("w", node, type))}
    outputs = {(*key, state.output_seq) for key, state in run.nodes.items() if state.output_seq is not None}
    assert found == outputs


def rows(db: sqlite3.Connection, sql: str) -> list[sqlite3.Row]:
    cursor = db.execute(sql)
    cursor.row_factory = sqlite3.Row
    return cursor.fetchall()


NODES = "SELECT node, path, status, attempts, started_at_ms FROM nodes"
# A container's end leaves without an attempt; the projection counts that as the end of its last one, the view does not.
ATTEMPTS = (
    "SELECT node, path, attempt, outcome, started_at_ms, finished_at_ms FROM attempts WHERE node NOT LIKE '%:end'"
)


def node_row(state: NodeState, over: bool) -> list[Any]:
    """What the view `nodes` says. It is older than three distinctions: it knows no question about a lost attempt, says
    failed of an attempt that was stopped, and running of a node whose wait was taken back, until the run ends."""
    status: str = state.status
    if status == "needs_attention":
        status = "waiting"
    elif status == "cancelled" and state.decided_seq is not None:
        status = "failed"
    elif status == "cancelled" and not over:
        status = "running"
    return [status, state.attempt, state.started_at_ms]


def attempt_rows(run: Projection) -> Iterator[tuple[tuple[str, str, int], list[Any]]]:
    outcomes = {"retrying": "retried", "succeeded": "succeeded", "skipped": "skipped", "failed": "failed"}
    for (node, path), state in run.nodes.items():
        for attempt in state.attempts.values():
            if attempt.attempt == 0 or node.endswith(":end"):
                continue
            outcome, finished = outcomes.get(attempt.status), attempt.finished_at_ms
            if attempt.status == "cancelled":  # stopped, or its wait was taken back, which the view does not look at
                outcome, finished = ("failed", finished) if attempt.error is not None else (None, None)
            if (
                attempt.status == "succeeded" and attempt.finished_seq != state.decided_seq
            ):  # it left for a wait: the same
                outcome, finished = None, None
            yield (node, path, attempt.attempt), [outcome, attempt.started_at_ms, finished]


def add_run(db: sqlite3.Connection) -> None:
    db.execute(
        "INSERT INTO run_details (n, id, workflow, plan_hash, request_hash, created_at_ms, input)"
        " VALUES (1, 'r', 'w', 'p', '', 0, x'7b7d')"
    )
    db.execute("INSERT INTO heads (n, id, status, seq, epoch, stalls) VALUES (1, 'r', 'queued', 0, 0, 0)")
    let_change(db)


def add(db: sqlite3.Connection, event: Json) -> None:
    data = orjson.dumps(event["data"])
    columns = (event["seq"], event["at_ms"], event["type"], event["node"], event["path"], event["attempt"])
    add_event(db, "r", Record(*columns, data))
