"""Shared reads of a journal: no reader misses an event, and many readers cost one read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from executor.errors import DatabaseUnavailable
from executor.kernel.read.cursor import PAGE, CommitPoll, Cursor, Pages
from executor.kernel.read.hub import Hub
from executor.kernel.store.run_rows import Record
from tests.support.model_store.store import ModelStore


class Journal(ModelStore):
    """One run whose events are counted up by hand; a read takes a turn of the loop, as a database does."""

    def __init__(self, events: int) -> None:
        super().__init__()
        self.events = events
        self.reads: list[int] = []
        self.broken = False

    async def read_events(self, run_id: str, after: int = 0, limit: int = 10_000) -> list[Record]:
        self.reads.append(after)
        found = [record(seq) for seq in range(after + 1, min(self.events, after + limit) + 1)]
        await asyncio.sleep(0)
        if self.broken:
            raise DatabaseUnavailable("gone")
        return found


def record(seq: int) -> Record:
    return Record(seq, 5, "node.log", "n", "", 1, b"x" * 100)


def seqs(records: Sequence[Record]) -> list[int]:
    return [each.seq for each in records]


async def test_readers_of_one_page_share_one_read() -> None:
    journal = Journal(10)
    pages = Pages(journal, Hub())
    found = await asyncio.gather(*(pages.read("r", 0) for _ in range(100)))
    assert journal.reads == [0]
    assert all(seqs(each) == list(range(1, 11)) for each in found)


async def test_a_read_that_began_before_a_commit_is_not_shared_with_who_came_after_it() -> None:
    journal, hub = Journal(10), Hub()
    pages = Pages(journal, hub)
    early = asyncio.create_task(pages.read("r", 0))
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # the read has its snapshot now
    journal.events = 11
    hub.signal("r")
    late = await pages.read("r", 0)
    assert seqs(late)[-1] == 11, "what was signalled before the call is in it"
    assert seqs(await early)[-1] == 10


async def test_pages_end_at_multiples_wherever_a_reader_began() -> None:
    journal = Journal(3 * PAGE)
    pages = Pages(journal, Hub())
    assert seqs(await pages.read("r", 7))[-1] == PAGE
    for _ in range(3):
        assert seqs(await pages.read("r", PAGE)) == list(range(PAGE + 1, 2 * PAGE + 1))
    assert journal.reads == [7, PAGE], "a full page is read once"


async def test_a_page_that_may_grow_is_not_kept() -> None:
    journal = Journal(PAGE - 1)
    pages = Pages(journal, Hub())
    assert seqs(await pages.read("r", 0))[-1] == PAGE - 1
    journal.events = PAGE
    assert seqs(await pages.read("r", 0))[-1] == PAGE


async def test_what_is_kept_is_bounded() -> None:
    journal = Journal(5 * PAGE)
    pages = Pages(journal, Hub(), kept_bytes=2 * PAGE * 300)
    for _ in range(2):
        for start in range(0, 5 * PAGE, PAGE):
            await pages.read("r", start)
    assert pages._size == 2 * PAGE * 300
    assert len(pages._full) == 2


async def test_one_who_leaves_takes_nothing_from_the_others() -> None:
    journal = Journal(3)
    pages = Pages(journal, Hub())
    first = asyncio.create_task(pages.read("r", 0))
    second = asyncio.create_task(pages.read("r", 0))
    await asyncio.sleep(0)
    first.cancel()
    assert seqs(await second) == [1, 2, 3]
    assert journal.reads == [0]
    assert not pages._reading


async def test_an_error_reaches_all_and_is_forgotten() -> None:
    journal = Journal(3)
    journal.broken = True
    pages = Pages(journal, Hub())
    found = await asyncio.gather(*(pages.read("r", 0) for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in found] == [DatabaseUnavailable] * 3
    journal.broken = False
    assert seqs(await pages.read("r", 0)) == [1, 2, 3]
    with pytest.raises(KeyError):
        pages._reading["r", 0]


async def test_what_is_committed_during_a_read_rings_the_bell() -> None:
    journal, hub = Journal(3), Hub()
    lookout = CommitPoll(journal, hub)
    cursor = Cursor(journal, hub, Pages(journal, hub), lookout, "r", 2)
    assert seqs(await cursor.next_records() or []) == [3]
    reading = asyncio.create_task(cursor.next_records())
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # the read has its snapshot now
    journal.events = 4
    hub.grown("r")
    assert await reading == []
    assert cursor.signalled
    async with asyncio.timeout(30):
        await cursor.wait()
    assert seqs(await cursor.next_records() or []) == [4]
    cursor.close()
    assert hub.watched() == []
    await lookout.stop()
