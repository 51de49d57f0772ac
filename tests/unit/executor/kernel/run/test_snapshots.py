"""Snapshots of runs in memory: when one is made, what is in it, and which are not used."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from executor.kernel.run import loaded, snapshots
from executor.kernel.run.loaded import Snapshots
from executor.kernel.run.recover import recover
from executor.kernel.run.snapshots import checksum_of, load_snapshot, snapshot_of, unfit
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.topics.snapshots import SnapshotRow
from tests.support.snapshots import bytes_of, often
from tests.unit.executor.kernel.run.one_run import OneRun


@pytest.fixture(autouse=True)
def from_the_first_event() -> Iterator[None]:
    with often(every=2):
        snapshots._warned.clear()
        yield


async def begun() -> OneRun:
    one = await OneRun.of("start a", "a b")
    one.begin()
    await one.append()
    return one


async def saved(one: OneRun) -> tuple[RunRow, SnapshotRow]:
    """The run as it is on disk, with a snapshot of its last event."""
    row = await one.store.get_run(one.run.id)
    snapshot = await snapshot_of(one.run)
    assert row is not None and snapshot is not None
    one.store._snapshots[row.id] = snapshot
    return row, snapshot


async def test_a_run_is_recovered_from_it_and_what_came_after() -> None:
    one = await begun()
    _, snapshot = await saved(one)
    one.ask("a")
    await one.append()
    row = await one.store.get_run(one.run.id)
    assert row is not None and row.seq > snapshot.seq
    loop, facts = await recover(one.parts, row)
    assert loop._run.saved == (snapshot.seq, len(snapshot.data))
    assert bytes_of(loop._run) == bytes_of(one.run)
    assert loop._recorder.appended_seq == row.seq
    one.store._snapshots.clear()
    again, same = await recover(one.parts, row)
    assert again._run.saved == (0, 0) and bytes_of(again._run) == bytes_of(one.run)
    assert facts == same


async def test_of_the_last_event_nothing_has_to_be_folded() -> None:
    one = await begun()
    row, _ = await saved(one)
    loop, _ = await recover(one.parts, row)
    assert bytes_of(loop._run) == bytes_of(one.run)
    assert (loop._recorder.appended_seq, loop._recorder._at_ms) == (row.seq, one.recorder._at_ms)


def spoiled(row: RunRow, snapshot: SnapshotRow, **fields: Any) -> SnapshotRow:
    changed = replace(snapshot, **fields)
    return replace(changed, checksum=checksum_of(row.id, changed))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"format": snapshots.FORMAT + 1}, f"it has format {snapshots.FORMAT + 1}, this weft has {snapshots.FORMAT}"),
        ({"code": "0" * 32}, "another version of weft has made it"),
        ({"plan_hash": "another"}, "it is of another plan"),
        ({"seq": 1_000}, "it is of event 1000, the journal has 4"),
        ({"seq": 3}, "it is of event 4, not 3"),
        ({"data": b"\xff\x00\x00\x00\x01a"}, "it does not decode: tuple index out of range"),
        ({"data": b"\x00\x00\x00\x00\x01\xc1"}, "it does not decode: "),
        ({"data": b"\x00\x00"}, "it does not decode: "),
        ({"data": b""}, "it is of event 0, not 4"),
    ],
)
async def test_one_that_does_not_fit_is_ignored(
    fields: dict[str, Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    one = await begun()
    row, snapshot = await saved(one)
    one.store._snapshots[row.id] = spoiled(row, snapshot, **fields)
    for _ in range(2):
        loop, _ = await recover(one.parts, row)
        assert loop._run.saved == (0, 0) and bytes_of(loop._run) == bytes_of(one.run)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING and reason in record.getMessage()


async def test_one_that_is_damaged_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    """Every bit of it counts."""
    one = await begun()
    row, snapshot = await saved(one)
    for at in range(len(snapshot.data)):
        data = bytearray(snapshot.data)
        data[at] ^= 1 << at % 8
        one.store._snapshots[row.id] = replace(snapshot, data=bytes(data))
        assert await load_snapshot(one.parts, row, one.run.plan) is None
    for fields in ({"seq": snapshot.seq - 1}, {"checksum": snapshot.checksum ^ 1}):
        one.store._snapshots[row.id] = replace(snapshot, **fields)
        assert await load_snapshot(one.parts, row, one.run.plan) is None
    (record,) = caplog.records
    assert "it does not match its checksum" in record.getMessage()


async def test_it_is_of_one_run() -> None:
    one = await begun()
    row, snapshot = await saved(one)
    assert checksum_of(row.id, snapshot) == snapshot.checksum != checksum_of("another", snapshot)


async def test_a_short_run_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    one = await begun()
    row, _ = await saved(one)
    with often(every=row.seq + 1):
        monkeypatch.setattr(snapshots, "SNAPSHOT_SEQ_MIN", row.seq + 1)
        asked: list[str] = []

        async def get_snapshot(run_id: str) -> SnapshotRow | None:
            asked.append(run_id)
            return None

        one.store.get_snapshot = get_snapshot
        assert await load_snapshot(one.parts, row, one.run.plan) is None
        assert not asked
        loop = one.loop()
        await loop._snapshots.make_before_leaving()
        assert loop._snapshots.pop() is None and loop._snapshots.due_seq == row.seq + 1


async def test_where_the_code_cannot_be_read_no_other_process_s_snapshots_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = await begun()
    snapshots.code_digest.cache_clear()
    monkeypatch.setattr(snapshots, "get_source", lambda name: None)
    try:
        row, snapshot = await saved(one)
        assert await load_snapshot(one.parts, row, one.run.plan) is not None
        snapshots.code_digest.cache_clear()  # as another process
        assert unfit(row, snapshot) == "another version of weft has made it"
    finally:
        snapshots.code_digest.cache_clear()


def test_the_digest_is_of_all_code_that_folds() -> None:
    """What is imported on the way from a record to the state and the values; `_CODE` names it."""
    named = set(snapshots._CODE)
    assert all(snapshots.get_source(name) for name in named)
    assert snapshots.get_source("executor.no_such_module") is None
    found, left = set[str](), ["executor.kernel.run.loaded", "executor.kernel.run.snapshots"]
    while left:
        name = left.pop()
        if name in found:
            continue
        found.add(name)
        text = snapshots.get_source(name) or ""
        left += re.findall(r"^from ((?:compiler|executor)\.[a-z_.]+) import", text, re.MULTILINE)
    # Words, structs without rules, who runs when; and the package of executor.kernel.values.variables, which is named.
    others = {
        "executor.errors",
        "executor.kernel.core",
        "executor.kernel.values",
    }
    others |= {
        "compiler.references",
        "executor.kernel.journal.reader",
    }  # do not change what a record means
    rows = {name for name in found if name.startswith("executor.kernel.store.")}
    assert found - named - others - rows == set()


async def test_the_next_one_is_due_when_as_much_has_been_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    one = await begun()
    due = Snapshots(one.run, snapshot_of)
    assert due.due_seq == 2
    await due.make()
    row = due.pop()
    assert row is not None and row.seq == one.run.state.seq and due.pop() is None
    assert due.due_seq == row.seq + 2
    monkeypatch.setattr(loaded, "BYTES_PER_EVENT", 10)
    await due.make()
    assert due.due_seq == row.seq + len(row.data) // 10 > row.seq + 2


async def test_one_that_is_too_large_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    one = await begun()
    monkeypatch.setattr(snapshots, "BYTES_MAX", 100)
    due = Snapshots(one.run, snapshot_of)
    await due.make()
    assert due.pop() is None
    assert due.due_seq == 2 * one.run.state.seq + 2


async def test_a_run_does_not_fail_with_it(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    one = await begun()

    def broken(_: object) -> Iterator[Any]:
        raise RuntimeError("no")

    monkeypatch.setattr(snapshots, "parts_of", broken)
    due = Snapshots(one.run, snapshot_of)
    await due.make()
    assert due.pop() is None and due.due_seq > 2
    assert "no snapshot could be made" in caplog.text
