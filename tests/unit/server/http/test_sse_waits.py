"""What a stream does between two commits: it reads once for each, and waits without beginning anew."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from executor.kernel.read import cursor as journal_cursor
from executor.kernel.read.cursor import Cursor, Pages
from executor.kernel.read.hub import Hub
from executor.kernel.store.run_rows import Record, RunRow
from server.http.sse import PING, RETRY_HINT, JournalFrames, _frames
from server.http.streams import ChunkCache, Place
from tests.unit.executor.service.views.test_run import run_row


class Journal:
    """Of one run, in memory; `row` None: it was deleted."""

    def __init__(self) -> None:
        self.hub = Hub()
        self.records: list[Record] = []
        self.reads = 0
        self.row: RunRow | None = run_row(0)

    async def read_events(self, run: str, after: int, limit: int) -> list[Record]:
        self.reads += 1
        await asyncio.sleep(0)
        return self.records[after : after + limit]

    async def get_run(self, run: str) -> RunRow | None:
        return self.row

    def commit(self, *types: str) -> None:
        for type in types:
            self.records.append(Record(len(self.records) + 1, 0, type, None, "", 0, b"{}"))
        self.hub.signal("r")

    def frames(self, place: Place) -> Any:
        pages = Pages(self, self.hub)  # type: ignore[arg-type]  # of a store only the reading
        lookout = SimpleNamespace(begin=lambda: None)
        events = SimpleNamespace(
            cursor=lambda run, after, bell: Cursor(self, self.hub, pages, lookout, run, after, bell),  # type: ignore[arg-type]
            deltas=self.hub.deltas,
        )
        engine: Any = SimpleNamespace(events=events)
        row = run_row(0)
        return _frames(engine, JournalFrames(ChunkCache(1 << 20, 1 << 16), row.id, None), row, 0, place)


@pytest.fixture
async def place() -> Place:
    return Place("r")


async def idle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_one_read_for_each_commit(place: Place) -> None:
    journal = Journal()
    frames = journal.frames(place)
    assert await anext(frames) == RETRY_HINT
    for number in range(1, 6):
        coming = asyncio.create_task(anext(frames))
        await idle()
        journal.commit("node.started", "node.log")
        assert (await coming).count(b"\nevent: ") == 2
        assert journal.reads <= number + 2, "the first wait looks twice, each commit once"
    journal.commit("run.finished")
    assert b"run.finished" in await anext(frames)
    with pytest.raises(StopAsyncIteration):
        await anext(frames)


async def test_what_is_committed_while_a_chunk_is_sent_follows(place: Place) -> None:
    journal = Journal()
    frames = journal.frames(place)
    await anext(frames)
    journal.commit("node.started")
    await anext(frames)
    journal.commit("node.log")  # the reader holds the first chunk
    assert b"node.log" in await asyncio.wait_for(anext(frames), 30)
    await frames.aclose()


async def test_a_full_page_is_not_the_end(place: Place) -> None:
    journal = Journal()
    journal.commit(*["node.log"] * (journal_cursor.PAGE + 1))
    frames = journal.frames(place)
    await anext(frames)
    found = 0
    while found <= journal_cursor.PAGE:
        found += (await asyncio.wait_for(anext(frames), 30)).count(b"\nevent: ")
    await frames.aclose()


async def test_a_run_that_is_deleted_ends_its_streams(place: Place) -> None:
    journal = Journal()
    frames = journal.frames(place)
    await anext(frames)
    journal.commit("node.started")
    await anext(frames)
    coming = asyncio.create_task(anext(frames))
    await idle()
    journal.records.clear()
    journal.row = None
    journal.hub.signal("r")
    with pytest.raises(StopAsyncIteration):
        await asyncio.wait_for(coming, 30)


async def test_a_lost_signal_costs_only_time(place: Place) -> None:
    journal = Journal()
    frames = journal.frames(place)
    await anext(frames)
    coming = asyncio.create_task(anext(frames))
    await idle()
    journal.records.append(Record(1, 0, "node.log", None, "", 0, b"{}"))
    await idle()
    assert not coming.done()
    journal.hub.looked("r", 1)  # as the lookout does once a second
    assert b"node.log" in await asyncio.wait_for(coming, 30)
    await frames.aclose()


async def test_nothing_is_left_when_a_reader_leaves(place: Place) -> None:
    journal = Journal()
    frames = journal.frames(place)
    await anext(frames)
    coming = asyncio.create_task(anext(frames))
    await idle()
    coming.cancel()
    await asyncio.wait([coming])
    await idle()
    assert journal.hub.watched() == []


async def test_a_stream_that_is_closed_ends_while_it_waits(place: Place) -> None:
    journal = Journal()
    frames = journal.frames(place)
    await anext(frames)
    coming = asyncio.create_task(anext(frames))
    await idle()
    place.close()
    with pytest.raises(StopAsyncIteration):
        await asyncio.wait_for(coming, 30)
    assert journal.hub.watched() == []


async def test_a_ping_comes_once_for_each_time_it_is_asked_for(place: Place) -> None:
    journal = Journal()
    frames = journal.frames(place)
    await anext(frames)
    coming = asyncio.create_task(anext(frames))
    await idle()
    reads = journal.reads
    place.ask_for_ping()
    assert await coming == PING
    assert journal.reads == reads, "nothing has come to the journal"
    place.ping = False  # it is being sent
    coming = asyncio.create_task(anext(frames))
    await idle()
    assert not coming.done()
    journal.commit("node.log")
    assert b"node.log" in await coming
    await frames.aclose()
