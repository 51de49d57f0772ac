"""A byte that is not what was written, in each place that has a checksum or a hash: found, and never handed out."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import orjson
import pytest

from executor.errors import CorruptJournal
from executor.kernel.journal import codec, reader
from executor.kernel.store.run_rows import EventFilter, Record
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.service.upkeep.invariants import check
from tests.unit.executor.service.upkeep.conftest import Copy


def damage(copy: Copy, sql: str, *values: Any) -> None:
    """Behind the back of the checksums."""
    with closing(sqlite3.connect(copy.path)) as db, db:
        assert db.execute(sql, values).rowcount


def findings(copy: Copy) -> list[tuple[str, str]]:
    with closing(copy.read()) as db:
        return [(finding.invariant, finding.what) for finding in check(db)]


@pytest.mark.parametrize(
    "change",
    [
        "payload = CAST(replace(CAST(payload AS TEXT), 'Ada', 'Eva') AS BLOB)",
        "head = replace(head, 'ask', 'ash')",
        "first_seq = first_seq - 1",
        "seq = seq + 1000",
        "output_bytes = output_bytes + 1",
    ],
)
async def test_a_batch_is_not_what_was_written(copy: Copy, change: str) -> None:
    run = copy.run["answered"]
    with closing(sqlite3.connect(copy.path)) as db:
        query = """SELECT first_seq, seq FROM batches WHERE head LIKE '%node.succeeded","ask"%'
                      AND n = (SELECT n FROM run_details WHERE id = ?)"""
        first, last = db.execute(query, (run,)).fetchone()
    assert first > 2
    damage(copy, f"UPDATE batches SET {change} WHERE n = (SELECT n FROM runs WHERE id = ?) AND seq = ?", run, last)
    assert [what for kind, what in findings(copy) if kind == "I12" and "do not match their checksum" in what]
    store = SQLiteStore(copy.path)
    await store.open()
    try:
        with pytest.raises(CorruptJournal, match="do not match their checksum") as raised:
            await store.read_events(run)
        assert "weft restore" in raised.value.hint
        with pytest.raises(CorruptJournal):
            await store.find_events(run, EventFilter(0, 10, types=("node.succeeded",)))
        assert len(await store.read_events(run, 0, first - 2)) == first - 2
    finally:
        await store.close()


def test_a_workflow_is_not_what_was_written(copy: Copy) -> None:
    with closing(sqlite3.connect(copy.path)) as db:
        name, version, document = db.execute("SELECT name, version, document FROM workflows LIMIT 1").fetchone()
    changed = orjson.dumps({**orjson.loads(document), "name": "another"})
    damage(copy, "UPDATE workflows SET document = ? WHERE name = ? AND version = ?", changed, name, version)
    assert findings(copy) == [("I12", f"version {version} of workflow '{name}' does not match its checksum")]
    damage(copy, "UPDATE workflows SET document = ? WHERE name = ? AND version = ?", b"{", name, version)
    assert findings(copy) == [("I12", f"version {version} of workflow '{name}' does not match its checksum")]


def test_the_output_of_a_run_is_that_of_its_journal(copy: Copy) -> None:
    damage(copy, "UPDATE run_details SET output = CAST('{\"n\":4}' AS BLOB) WHERE id = ?", copy.run["hello"])
    assert findings(copy) == [("I2", "the output in its row differs from its journal")]


def test_a_fact_that_does_not_decode(copy: Copy) -> None:
    damage(copy, "INSERT INTO inbox (run_id, n, fact) VALUES (?, 1, x'7b')", copy.run["asking"])
    assert ("I12", "a message in its inbox cannot be read") in findings(copy)


async def test_a_plan_and_a_blob_are_what_their_hash_says(copy: Copy) -> None:
    store = SQLiteStore(copy.path)
    await store.open()
    try:
        row = await store.get_run(copy.run["hello"])
        assert row is not None
        codec.plans_at_hand.pop(row.plan_hash, None)
        assert (await reader.load_plan(store, row.plan_hash)).hash == row.plan_hash
        codec.plans_at_hand.pop(row.plan_hash)
        damage(copy, "UPDATE plans SET ir = CAST(ir || ' ' AS BLOB) WHERE hash = ?", row.plan_hash)
        with pytest.raises(CorruptJournal, match="does not match its checksum"):
            await reader.load_plan(store, row.plan_hash)

        damage(copy, "INSERT INTO blobs (hash, bytes) VALUES ('00', x'31')")
        record = Record(1, 0, "node.succeeded", "n", "", 1, b'{"blob":"00"}', None)
        with pytest.raises(CorruptJournal, match="blob 00 does not match its checksum"):
            await reader.output_of(store, record)
    finally:
        await store.close()
    found = findings(copy)
    assert ("I12", "the bytes of 00 in blobs do not match their checksum") in found
    assert ("I12", f"its plan {row.plan_hash} is missing or damaged") in found
