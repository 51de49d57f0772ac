"""Rows that belong together are added by few statements."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from executor.kernel.store.sqlite.connection import Tx
from executor.kernel.store.sqlite.dialect import in_pieces, several_rows
from executor.kernel.store.statements import Batch

ADD = "INSERT INTO things (id, name) VALUES (:id, (SELECT :name || 's'))"


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.executescript(
        """
        CREATE TABLE things (id INTEGER, name TEXT);
        CREATE TABLE run_details (n INTEGER PRIMARY KEY, id TEXT);
        CREATE TABLE batches (seq, first_seq, output_bytes, checksum, head, payload, n);
        """
    )
    yield db
    db.close()


def test_pieces_have_one_of_a_few_lengths() -> None:
    pieces = list(in_pieces(range(151)))
    assert [number for piece in pieces for number in piece] == list(range(151))
    assert [len(piece) for piece in pieces] == [64, 64, 16, 4, 1, 1, 1]
    assert not list(in_pieces([]))


def test_names_are_numbered_behind_values_only() -> None:
    assert several_rows("INSERT INTO t (a) VALUES (:a, f(:b))", 2) == (
        "INSERT INTO t (a) VALUES (:a_0, f(:b_0)), (:a_1, f(:b_1))"
    )


def test_rows_are_added_in_order(db: sqlite3.Connection) -> None:
    statements: list[str] = []
    db.set_trace_callback(statements.append)
    Tx(db).add_rows(ADD, [{"id": i, "name": f"thing {i}"} for i in range(20)])
    assert len(statements) == 2
    assert db.execute("SELECT * FROM things ORDER BY rowid").fetchall() == [(i, f"thing {i}s") for i in range(20)]


def test_journals_begin_with_their_first_batch(db: sqlite3.Connection) -> None:
    db.executemany("INSERT INTO run_details VALUES (?, ?)", [(7 + i, f"run {i}") for i in range(5)])
    tx = Tx(db)
    tx.begin_journals([(f"run {i}", Batch(1, 1, 0, 100 + i, "[]", b"")) for i in range(5)])
    assert db.execute("SELECT * FROM batches ORDER BY rowid").fetchall() == [
        (1, 1, 0, 100 + i, "[]", b"", 7 + i) for i in range(5)
    ]
    assert tx.proof == ("run 0", 1, 100)
