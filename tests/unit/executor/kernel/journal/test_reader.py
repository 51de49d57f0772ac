"""One journal, read by pages: in order, within its bounds, and never more at once than needed."""

from __future__ import annotations

import hashlib

import pytest

from executor.errors import CorruptJournal
from executor.kernel.journal import reader
from executor.kernel.journal.reader import FIRST_PAGE, PAGE, PAGE_BYTES, Records, output_of
from executor.kernel.store.run_rows import Record
from tests.support.record_store import RecordStore


def journal(count: int, output: bytes | None = None) -> RecordStore:
    types = ("node.started", "node.succeeded")
    return RecordStore([Record(n, n, types[n % 2], "ab"[n % 3 % 2], "", 1, None, output) for n in range(1, count + 1)])


async def seqs(found: reader.Records) -> list[int]:
    return [record.seq async for record in found]


@pytest.mark.parametrize("count", [0, 1, FIRST_PAGE - 1, FIRST_PAGE, FIRST_PAGE + 1, FIRST_PAGE + PAGE, 3 * PAGE + 7])
async def test_every_record_comes_once_and_in_order(count: int) -> None:
    assert await seqs(Records(journal(count), "r")) == list(range(1, count + 1))


@pytest.mark.parametrize("upto", [0, 3, 10, FIRST_PAGE, FIRST_PAGE + 5, 500])
async def test_only_what_lies_between_the_bounds_is_read(upto: int) -> None:
    store = journal(400)
    assert await seqs(Records(store, "r", after=3, upto=upto)) == list(range(4, min(upto, 400) + 1))
    assert sum(store.limits) <= max(0, upto - 3), "no record behind the bound is asked for"


async def test_a_filter_by_node_and_type_keeps_the_bounds() -> None:
    store = journal(3 * FIRST_PAGE)
    of_a = [record.seq for record in store.records if record.node == "a"]
    assert await seqs(Records(store, "r", node="a")) == of_a
    assert await seqs(Records(store, "r", node="a", upto=150)) == [seq for seq in of_a if seq <= 150]
    assert await seqs(Records(store, "r", types=("node.started",), after=9)) == list(range(10, 3 * FIRST_PAGE + 1, 2))


async def test_pages_grow_while_outputs_are_small_and_shrink_when_they_are_large() -> None:
    small = journal(FIRST_PAGE + PAGE + 1)
    await seqs(Records(small, "r"))
    assert small.limits == [FIRST_PAGE, PAGE, PAGE]
    large = journal(3 * FIRST_PAGE, b"x" * 256 * 1024)
    assert len(await seqs(Records(large, "r"))) == 3 * FIRST_PAGE
    assert large.limits[0] == FIRST_PAGE and set(large.limits[1:]) == {PAGE_BYTES // (256 * 1024)}


async def test_a_reader_may_stop_anywhere_and_has_nothing_to_close() -> None:
    store = journal(3 * PAGE)
    async for record in Records(store, "r"):
        if record.seq == 5:
            break
    assert store.limits == [FIRST_PAGE]


async def test_an_output_is_in_the_row_or_in_a_blob_that_matches_its_hash() -> None:
    store = journal(1)
    hash = hashlib.sha256(b"[1]").hexdigest()
    large = Record(1, 1, "node.succeeded", "a", "", 1, b'{"blob":"%s","size":3}' % hash.encode())
    assert await output_of(store, Record(1, 1, "node.succeeded", "a", "", 1, None, b"2")) == b"2"
    assert await output_of(store, large) is None, "its blob is gone"
    store.blobs[hash] = b"[1]"
    assert await output_of(store, large) == b"[1]"
    store.blobs[hash] = b"[2]"
    with pytest.raises(CorruptJournal, match="does not match its checksum"):
        await output_of(store, large)
