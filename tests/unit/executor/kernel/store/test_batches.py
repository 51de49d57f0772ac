"""Batches of the journal: numbered by the store, with a checksum over all columns."""

from __future__ import annotations

from typing import Any

import pytest

from executor.errors import CorruptJournal
from executor.kernel.store import batches
from executor.kernel.store.batches import batches_of, records_of
from executor.kernel.store.run_rows import Record
from executor.kernel.store.statements import Batch

RECORDS = (
    Record(0, 5, "run.started", None, "", 0, b"{}"),
    Record(9, 6, "node.succeeded", "a", "l#1", 2, b'{"route":"x"}', b'"\xc3\xa4"'),
    Record(9, 6, "node.succeeded", "b", "", 1, None, b"\x00\xff"),
    Record(9, 7, "node.started", "c", "", 1),
    Record(9, 7, "node.succeeded", 'a "b"', "", 1, b"", b""),
)


def row(batch: Batch) -> tuple[Any, ...]:
    """As JOURNAL gives it."""
    return (batch.seq, batch.first_seq, batch.output_bytes, batch.checksum, batch.head, batch.payload)


def test_events_are_numbered_and_read_back_as_they_were() -> None:
    (batch,) = batches_of("run", 3, RECORDS)
    assert (batch.first_seq, batch.seq, batch.output_bytes) == (4, 8, 6)
    found = records_of("run", [row(batch)])
    assert [record.seq for record in found] == [4, 5, 6, 7, 8]
    for ours, theirs in zip(found, RECORDS, strict=True):
        assert (ours.at_ms, ours.type, ours.node, ours.path, ours.attempt, ours.data, ours.output) == (
            *(theirs.at_ms, theirs.type, theirs.node, theirs.path, theirs.attempt, theirs.data, theirs.output),
        )
    assert batches_of("run", 3, ()) == []


def test_reading_may_begin_inside_a_batch() -> None:
    first, second = batches_of("run", 0, RECORDS)[0], batches_of("run", 5, RECORDS[:2])[0]
    found = records_of("run", [row(first), row(second)], after=3)
    assert [record.seq for record in found] == [4, 5, 6, 7]


def test_a_long_append_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "EVENTS_MAX", 2)
    monkeypatch.setattr(batches, "PAYLOAD_MAX_BYTES", 20)
    made = batches_of("run", 10, RECORDS)
    assert [(batch.first_seq, batch.seq) for batch in made] == [(11, 12), (13, 14), (15, 15)]
    large = batches_of("run", 0, (Record(0, 1, "node.succeeded", "a", "", 1, None, b"x" * 21), RECORDS[3]))
    assert [(batch.first_seq, batch.seq) for batch in large] == [(1, 1), (2, 2)]
    assert [record.seq for record in records_of("run", map(row, made))] == [11, 12, 13, 14, 15]


@pytest.mark.parametrize("column", range(6))
def test_a_column_that_changed_is_noticed(column: int) -> None:
    changed = [*row(batches_of("run", 0, RECORDS)[0])]
    changed[column] = {4: "[]", 5: b"other"}.get(column, 77)
    with pytest.raises(CorruptJournal, match="run run: events"):
        records_of("run", [tuple(changed)])


def test_a_batch_of_another_run_is_noticed() -> None:
    with pytest.raises(CorruptJournal):
        records_of("other", [row(batches_of("run", 0, RECORDS)[0])])
