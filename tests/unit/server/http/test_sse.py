"""One reader at a time, without a socket: what it is sent, and that it always gives its place back."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from typing import Any

import orjson
import pytest
from msgspec.structs import replace
from starlette.types import Message

from executor.kernel.store.run_rows import RunRow
from executor.open.engine import Engine
from server.http.errors import TooManyStreams, status_of
from server.http.sse import PING, RETRY_HINT, EventStream
from server.http.streams import Streams
from server.settings import Limits, Settings
from tests.support.until import until

LIMITS = Limits()
SCOPE = {"type": "http", "method": "GET", "headers": []}


class Reader:
    """The client side of ASGI. `stall`: takes nothing more after this many chunks."""

    def __init__(self, stall: int | None = None) -> None:
        self.chunks: list[bytes] = []
        self.gone = asyncio.Event()
        self._stall = stall
        self._more = asyncio.Event()

    async def receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.body" and message["body"]:
            if self._stall is not None and len(self.chunks) >= self._stall:
                await asyncio.Event().wait()
            self.chunks.append(message["body"])
            self._more.set()

    async def until(self, seen: Callable[[bytes], bool]) -> bytes:
        async with asyncio.timeout(60):
            while not seen(b"".join(self.chunks)):
                self._more.clear()
                await self._more.wait()
        return b"".join(self.chunks)


@pytest.fixture
async def waiting(engine: Engine, asking: dict[str, Any]) -> RunRow:
    """The row of a run that waits for a person."""
    run = (await engine.submit(asking)).run
    assert (await engine.wait_finished(run, 60)).status == "waiting"
    row = await engine.store.get_run(run)
    assert row is not None
    return row


@pytest.fixture
async def streams() -> AsyncIterator[Streams]:
    streams = Streams(LIMITS)
    yield streams
    assert len(streams) == 0, "every stream gave its place back"


def stream(engine: Engine, streams: Streams, row: RunRow, after: int = 0) -> EventStream:
    return EventStream(engine, streams, row, after, {})


async def test_replay_comes_as_one_chunk(engine: Engine, streams: Streams, waiting: RunRow) -> None:
    reader = Reader()
    task = asyncio.create_task(stream(engine, streams, waiting)(SCOPE, reader.receive, reader.send))
    await reader.until(lambda data: b"id: %d\n" % waiting.seq in data)
    assert reader.chunks[0] == RETRY_HINT
    assert len(reader.chunks) == 2, "the hint, then everything that waited"
    reader.gone.set()
    await task


async def test_a_damaged_journal_ends_the_stream_with_a_line_in_the_log(
    engine: Engine, streams: Streams, waiting: RunRow, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(sqlite3.connect(settings.db_path)) as db, db:
        n = "(SELECT n FROM run_details WHERE id = ?)"
        change = f"UPDATE batches SET checksum = 7 WHERE n = {n} AND first_seq = 1"
        assert db.execute(change, (waiting.id,)).rowcount
        (last,) = db.execute(f"SELECT seq FROM batches WHERE n = {n} AND first_seq = 1", (waiting.id,)).fetchone()
    reader = Reader()
    async with asyncio.timeout(60):
        await stream(engine, streams, waiting)(SCOPE, reader.receive, reader.send)
    assert reader.chunks == [RETRY_HINT], "nothing of what is not known to be true"
    [said] = [record for record in caplog.records if record.name == "weft.server"]
    assert said.getMessage() == (
        f"the event stream of run {waiting.id} ends: corrupt_journal: run {waiting.id}: "
        f"events 1 to {last} do not match their checksum"
    )
    assert said.exc_info is None


async def test_large_replays_are_cut_into_chunks(engine: Engine, waiting: RunRow) -> None:
    reader = Reader()
    streams = Streams(replace(LIMITS, stream_chunk_bytes=1))
    task = asyncio.create_task(stream(engine, streams, waiting)(SCOPE, reader.receive, reader.send))
    await reader.until(lambda data: b"id: %d\n" % waiting.seq in data)
    assert len(reader.chunks) == 1 + waiting.seq
    reader.gone.set()
    await task


async def test_tokens_are_live_joined_and_without_id(engine: Engine, streams: Streams, waiting: RunRow) -> None:
    reader = Reader()
    task = asyncio.create_task(stream(engine, streams, waiting, waiting.seq)(SCOPE, reader.receive, reader.send))
    await reader.until(lambda data: RETRY_HINT in data)
    await until(lambda: not (waiting.id not in engine.parts.hub._deltas))
    for text in ("Hel", "lo\n", "you"):
        engine.parts.hub.delta(waiting.id, "ask", text)
    data = await reader.until(lambda data: b"you" in data)
    frames = [frame for frame in data.removeprefix(RETRY_HINT).split(b"\n\n") if frame]
    texts = []
    for frame in frames:
        name, body = frame.split(b"\n")
        assert name == b"event: node.delta"
        event = orjson.loads(body.removeprefix(b"data: "))
        assert (event["run"], event["type"], event["key"]) == (waiting.id, "node.delta", "ask")
        texts.append(event["text"])
    assert "".join(texts) == "Hello\nyou"
    reader.gone.set()
    await task


async def test_a_cursor_beyond_the_end_gets_what_is_new(engine: Engine, streams: Streams, waiting: RunRow) -> None:
    reader = Reader()
    task = asyncio.create_task(stream(engine, streams, waiting, 9999)(SCOPE, reader.receive, reader.send))
    await reader.until(lambda data: RETRY_HINT in data)
    await engine.cancel(waiting.id)
    data = await reader.until(lambda data: b"event: run.finished" in data)
    assert data.startswith(RETRY_HINT + b"id: %d\n" % (waiting.seq + 1))
    await task


async def test_a_reader_that_takes_nothing_is_closed(engine: Engine, waiting: RunRow) -> None:
    reader = Reader(stall=1)
    impatient = Streams(replace(LIMITS, stream_send_s=0.05))
    async with asyncio.timeout(60):
        with pytest.raises(TimeoutError):  # not that of this test, which arrives here as a cancellation
            await stream(engine, impatient, waiting)(SCOPE, reader.receive, reader.send)
    assert len(impatient) == 0 and waiting.id not in engine.parts.hub.watched()


async def test_a_quiet_stream_gets_pings(engine: Engine, waiting: RunRow) -> None:
    reader = Reader()
    streams = Streams(replace(LIMITS, stream_ping_s=0.05))
    task = asyncio.create_task(stream(engine, streams, waiting, waiting.seq)(SCOPE, reader.receive, reader.send))
    data = await reader.until(lambda data: data.count(PING) == 3)
    assert data == RETRY_HINT + 3 * PING
    reader.gone.set()
    await task


async def test_a_reader_that_takes_no_ping_is_closed(engine: Engine, waiting: RunRow) -> None:
    reader = Reader(stall=1)
    impatient = Streams(replace(LIMITS, stream_ping_s=0.05, stream_send_s=0.05))
    async with asyncio.timeout(60):
        with pytest.raises(TimeoutError):
            await stream(engine, impatient, waiting, waiting.seq)(SCOPE, reader.receive, reader.send)


async def test_a_reader_that_leaves_early_leaves_nothing_behind(
    engine: Engine, streams: Streams, waiting: RunRow
) -> None:
    before = len(asyncio.all_tasks())
    for _ in range(20):
        reader = Reader()
        task = asyncio.create_task(stream(engine, streams, waiting)(SCOPE, reader.receive, reader.send))
        await reader.until(lambda data: RETRY_HINT in data)
        reader.gone.set()
        await task
    await asyncio.sleep(0)
    # the engine's own tasks come and go
    assert len(asyncio.all_tasks()) <= before + 5


async def test_closing_ends_all_streams_properly(engine: Engine, streams: Streams, waiting: RunRow) -> None:
    readers = [Reader() for _ in range(5)]
    tasks = [asyncio.create_task(stream(engine, streams, waiting)(SCOPE, r.receive, r.send)) for r in readers]
    for reader in readers:
        await reader.until(lambda data: b"id: 1\n" in data)
    streams.close()
    async with asyncio.timeout(60):  # by themselves they never would
        await asyncio.gather(*tasks)


async def test_a_reader_that_takes_nothing_is_cut_off_when_the_server_stops(
    engine: Engine, streams: Streams, waiting: RunRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.http.streams.CLOSE_S", 0.05)
    reader = Reader(stall=1)
    task = asyncio.create_task(stream(engine, streams, waiting)(SCOPE, reader.receive, reader.send))
    await reader.until(lambda data: RETRY_HINT in data)
    streams.close()
    async with asyncio.timeout(60):
        await task


async def test_a_reader_that_leaves_while_it_waits_ends(engine: Engine, streams: Streams, waiting: RunRow) -> None:
    reader = Reader()
    task = asyncio.create_task(stream(engine, streams, waiting)(SCOPE, reader.receive, reader.send))
    await reader.until(lambda data: b"id: %d\n" % waiting.seq in data)
    assert waiting.id in engine.parts.hub.watched()
    reader.gone.set()
    async with asyncio.timeout(60):
        await task
    assert waiting.id not in engine.parts.hub.watched()


async def test_head_opens_no_stream(engine: Engine, streams: Streams, waiting: RunRow) -> None:
    reader = Reader()
    await stream(engine, streams, waiting)({**SCOPE, "method": "HEAD"}, reader.receive, reader.send)
    assert reader.chunks == []


async def test_places_are_counted_in_all_and_for_each_run() -> None:
    streams = Streams(replace(LIMITS, streams=5, streams_per_run=3))
    taken = [streams.enter("a") for _ in range(3)]
    with pytest.raises(TooManyStreams) as one_run:
        streams.enter("a")
    taken += [streams.enter("b") for _ in range(2)]
    with pytest.raises(TooManyStreams) as whole_server:
        streams.enter("c")
    assert (status_of(one_run.value), status_of(whole_server.value)) == (429, 503)
    for place in taken:
        streams.leave(place)
    assert len(streams) == 0
    streams.leave(streams.enter("a"))
