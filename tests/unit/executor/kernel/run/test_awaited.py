"""What is kept of a run for who waits for its end, and when it is not enough."""

from __future__ import annotations

from typing import Any

import pytest

from executor.kernel.run import awaited as module
from executor.kernel.run.awaited import AwaitedRun
from executor.kernel.store.run_rows import Append, NewRun, Record, RunRow, new_row


def record(seq: int, output: bytes | None = None, data: bytes | None = None) -> Record:
    return Record(seq, seq * 10, "node.started", "a", "", 1, data, output)


def begun() -> AwaitedRun:
    new = NewRun("r", "w", None, "p", b"{}", b"{}", (record(1),), 5)
    watched = AwaitedRun()
    watched.begin(new_row(new, None), new)
    return watched


def append(seq: int, *records: Record, **more: Any) -> Append:
    return Append("r", 1, seq, records, 77, **more)


def test_the_row_of_a_run_that_has_ended_is_that_of_its_last_append() -> None:
    watched = begun()
    watched.add(append(1, record(2)))
    assert watched.ended is None
    watched.add(append(2, record(3), status="succeeded", output=b"1", finished=True))
    assert [kept.seq for kept in watched.records] == [1, 2, 3]
    row = watched.ended
    assert isinstance(row, RunRow)
    assert (row.id, row.status, row.output, row.error, row.seq, row.finished_at_ms) == (
        "r", "succeeded", b"1", None, 3, 77,
    )  # fmt: skip


def test_without_a_beginning_nothing_is_kept() -> None:
    watched = AwaitedRun()
    watched.add(append(0, record(1), status="failed", finished=True))
    assert (watched.records, watched.ended) == ([], None)


@pytest.mark.parametrize("more", [{"root": "r"}, {"root": "r", "output_bytes": 3}])
def test_a_run_with_children_has_to_be_read(more: dict[str, Any]) -> None:
    watched = begun()
    watched.add(append(1, record(2), **more))
    watched.add(append(2, record(3), status="succeeded", finished=True))
    assert (watched.records, watched.ended) == ([], None)


def test_too_many_records_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECORDS_MAX", 2)
    watched = begun()
    watched.add(append(1, record(2)))
    assert len(watched.records) == 2
    watched.add(append(2, record(3), status="succeeded", finished=True))
    assert (watched.records, watched.ended) == ([], None)


@pytest.mark.parametrize("big", [{"output": b"x" * 11}, {"data": b"x" * 11}])
def test_too_many_bytes_are_not_kept(monkeypatch: pytest.MonkeyPatch, big: dict[str, bytes]) -> None:
    monkeypatch.setattr(module, "BYTES_MAX", 10)
    watched = begun()
    watched.add(append(1, record(2, **big)))
    watched.add(append(2, record(3), status="succeeded", finished=True))
    assert (watched.records, watched.ended) == ([], None)
