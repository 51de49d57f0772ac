"""Rows of the journal: numbered by the store, with a checksum over all columns."""

from __future__ import annotations

import pytest

from executor.errors import CorruptJournal
from executor.store.rows import Record
from executor.store.sqlite.event_rows import records_of, rows_of

RECORDS = (Record(0, 5, "run.started", None, "", 0), Record(9, 6, "node.succeeded", "a", "l#1", 2, b"{}", b'"x"'))


def test_rows_are_numbered_and_read_back() -> None:
    rows = rows_of("run", 3, RECORDS)
    assert [row[:2] for row in rows] == [("run", 4), ("run", 5)]
    found = records_of("run", [row[1:] for row in rows])
    assert [record.seq for record in found] == [4, 5]
    assert (found[1].node, found[1].path, found[1].attempt, found[1].output) == ("a", "l#1", 2, b'"x"')


@pytest.mark.parametrize("column", range(1, 9))
def test_a_column_that_changed_is_noticed(column: int) -> None:
    (_, row) = rows_of("run", 0, RECORDS)
    changed = [*row]
    changed[column] = b"other" if isinstance(row[column], bytes) else 77
    with pytest.raises(CorruptJournal, match="run run: event"):
        records_of("run", [tuple(changed[1:])])


def test_a_row_of_another_run_is_noticed_and_one_without_a_checksum_is_not_checked() -> None:
    (row, _) = rows_of("run", 0, RECORDS)
    with pytest.raises(CorruptJournal):
        records_of("other", [row[1:]])
    assert records_of("other", [(*row[1:-1], None)])[0].type == "run.started"
