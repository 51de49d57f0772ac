"""Runs that begin and end in one transaction: rows that they have in common, and rows that are not there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from executor.kernel.store.migrate import migrate, packaged_migrations
from executor.kernel.store.run_rows import Append, NewRun
from executor.kernel.store.sqlite.connection import Database, plain_connect
from executor.kernel.store.topics.inbox import post_message
from executor.kernel.store.topics.journal import append
from executor.kernel.store.topics.leases import begin_run
from executor.kernel.store.topics.upkeep import DELETE_ORPHANS, delete_orphans
from tests.support.rows import T0, new_run, record

LEASE_MS = 15_000


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(str(tmp_path / "weft.db"), 500, plain_connect, lambda point: None)
    migrate(database, packaged_migrations())
    yield database
    database.drop()


@pytest.fixture
def statements(database: Database) -> list[str]:
    """What is run from now on."""
    seen: list[str] = []
    database.db.set_trace_callback(lambda text: seen.append(" ".join(text.split())))
    return seen


def first(run: NewRun) -> Append:
    return Append(run.id, 1, len(run.records), (record("node.started"), record("node.succeeded")), T0 + 1)


def end(run: NewRun) -> Append:
    ended = (record("run.finished", None),)
    return Append(run.id, 1, len(run.records) + 2, ended, T0 + 2, status="succeeded", finished=True)


def test_each_row_is_written_once_and_a_shared_plan_once_for_all(database: Database, statements: list[str]) -> None:
    runs = [new_run(f"run-{n}", document_hash="d", document=b"{}") for n in range(3)]
    with database.tx("group") as tx:
        for run in runs:
            row, created = begin_run(tx, run, "w", LEASE_MS, first(run))
            assert created and row.id == run.id
    for table, times in {"plans": 1, "documents": 1, "run_details": 3, "heads": 3, "batches": 3}.items():
        assert len([text for text in statements if text.startswith(f"INSERT INTO {table}")]) == times, table
    assert not [text for text in statements if text.startswith("UPDATE heads")]


def test_a_run_that_has_begun_is_as_one_that_was_created_and_claimed(database: Database) -> None:
    run = new_run("run-1")
    with database.tx("group") as tx:
        begin_run(tx, run, "w", LEASE_MS, first(run))
    asked = "SELECT status, seq, epoch, lease_owner, lease_until_ms, started_at_ms, stalls FROM runs"
    assert database.db.execute(asked).fetchall() == [("running", 3, 1, "w", T0 + LEASE_MS, T0, 0)]


def test_what_was_deleted_meanwhile_is_written_again(database: Database) -> None:
    runs = [new_run("run-1"), new_run("run-2")]
    with database.tx("group") as tx:
        begin_run(tx, runs[0], "w", LEASE_MS, first(runs[0]))
        for table in ("batches", "heads", "run_details"):
            tx.db.execute(f"DELETE FROM {table}")
        delete_orphans(tx, ('["plan-1"]', *["[]"] * (len(DELETE_ORPHANS) - 1)), T0 + 1)
        assert not tx.db.execute("SELECT 1 FROM plans").fetchall()
        begin_run(tx, runs[1], "w", LEASE_MS, first(runs[1]))
    assert database.db.execute("SELECT hash FROM plans").fetchall() == [("plan-1",)]


@pytest.mark.parametrize("posted", [False, True])
def test_messages_of_an_ended_run_are_deleted_if_there_are_any(
    posted: bool, database: Database, statements: list[str]
) -> None:
    run = new_run("run-1")
    with database.tx("group") as tx:
        begin_run(tx, run, "w", LEASE_MS, first(run))
        if posted:
            post_message(tx, run.id, b"{}", T0)
        append(tx, end(run))
    assert bool([text for text in statements if text.startswith("DELETE FROM inbox")]) == posted
    assert not database.db.execute("SELECT 1 FROM inbox").fetchall()
