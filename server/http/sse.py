"""Event streams: the journal of a run from a cursor, then live, as Server-Sent Events. The only importer of
sse-starlette.

A reader is a cursor, never a queue: it reads records after its last seq, sends them, waits, reads again. A slow reader
makes its own reads late and costs nothing else; a reader that takes nothing for `stream_send_s` is closed and may
reconnect with Last-Event-ID. Journal events carry `id: seq`; token deltas (`node.delta`) are live only and carry none,
so a reader that reconnects does not ask for them. Readers of a chat get the text so far: theirs begins anew.

Cost: records that this process has just committed come from memory; a batch is read once (kernel.read.cursor) and
encoded once (ChunkCache) for all readers, and goes out as one chunk.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Container, Iterable, Iterator
from contextlib import aclosing
from itertools import pairwise
from typing import Protocol

import orjson
from sse_starlette.sse import EventSourceResponse
from starlette.types import Receive, Scope, Send

from executor.errors import NotFound, WeftError
from executor.kernel.read.cursor import PAGE
from executor.kernel.read.hub import Bell
from executor.kernel.store.run_rows import Record, RunRow
from executor.kernel.store.statements import TERMINAL
from executor.open.engine import Engine
from server.http.connections import LIVE
from server.http.errors import TooManyStreams, TooManyStreamsOfRun
from server.http.response import encode_record
from server.settings import Limits

CLOSE_S = 1.0  # a stream that does not end by itself when the server stops is cut off after this long
LOOK_S = 0.25  # so often the timer looks
PINGS_MAX = 100  # per look, so that thousands of streams opened together do not hold up other requests


class Place:
    """One open stream, or a caller that waits for a run. `bell` wakes it for new events, for `closing` and for `ping`.
    `closed` is done when it must end."""

    __slots__ = ("bell", "closed", "patience", "ping", "run", "sending", "sent_at_s", "session")

    def __init__(self, run: str, session: str | None = None) -> None:
        self.run = run
        self.session = session
        self.bell = Bell()
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ping = False
        self.sending = False
        self.sent_at_s = 0.0  # when it last began to send
        self.patience: asyncio.Timeout | None = None  # around the response

    @property
    def closing(self) -> bool:
        return self.closed.done()

    def close(self) -> None:
        """End the stream as soon as its reader has the data that is being sent."""
        if not self.closed.done():
            self.closed.set_result(None)
        self.bell.ring()

    def ask_for_ping(self) -> None:
        self.ping = True
        self.bell.ring()

    def cut(self, now_s: float) -> None:
        """End the response with a TimeoutError: its reader takes nothing."""
        if self.patience is not None:
            self.patience.reschedule(now_s)
            self.patience = None


class Streams:
    """The open streams of this process: their count is bounded, and `close` ends them all when the server stops. A
    stream ends with the session that opened it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open: set[Place] = set()
        self._sending: OrderedDict[Place, None] = OrderedDict()  # streams that have sent something, by `sent_at_s`
        self._per_run: dict[str, int] = {}
        self._closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._look_s = min(LOOK_S, limits.stream_ping_s / 4, limits.stream_send_s / 4)
        self.cache = ChunkCache(limits.frame_cache_bytes, limits.stream_chunk_bytes)

    def enter(self, run: str, session: str | None = None) -> Place:
        """Count one more stream and return its place. Raises TooManyStreams, TooManyStreamsOfRun."""
        if len(self._open) >= self._limits.streams:
            raise TooManyStreams(f"This server has {self._limits.streams} event streams open, which is the limit.")
        if self._per_run.get(run, 0) >= self._limits.streams_per_run:
            raise TooManyStreamsOfRun(
                f"This run has {self._limits.streams_per_run} event streams open, which is the limit."
            )
        place = Place(run, session)
        if self._closed:  # it gets an empty stream, and comes back: an error would be the end of an EventSource
            place.close()
        self._open.add(place)
        self._per_run[run] = self._per_run.get(run, 0) + 1
        return place

    def leave(self, place: Place) -> None:
        self._open.remove(place)
        self._sending.pop(place, None)
        self._per_run[place.run] -= 1
        if not self._per_run[place.run]:
            del self._per_run[place.run]
        if not self._sending and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def sends(self, place: Place, loop: asyncio.AbstractEventLoop) -> None:
        """It begins to send something."""
        place.sending, place.ping, place.sent_at_s = True, False, loop.time()
        self._sending[place] = None
        self._sending.move_to_end(place)
        if self._timer is None:
            self._timer = loop.call_later(self._look_s, self._check_all, loop)

    def close(self) -> None:
        """End all streams, and those that are opened later."""
        self._closed = True
        for place in self._open:
            place.close()
        if self._open:
            asyncio.get_running_loop().call_later(CLOSE_S, self._cut_all)

    @property
    def sessions(self) -> set[str]:
        """The sessions that have streams open."""
        return {place.session for place in self._open if place.session is not None}

    def close_session(self, session: str) -> None:
        """End its streams: it has ended."""
        self.close_sessions({session})

    def close_sessions(self, ended: Container[str] | None = None) -> None:
        """End the streams of the sessions in `ended`, or of all sessions if it is None."""
        for place in self._open:
            if place.session is not None and (ended is None or place.session in ended):
                place.close()

    def __len__(self) -> int:
        return len(self._open)

    def _cut_all(self) -> None:
        for place in self._open:
            place.cut(asyncio.get_running_loop().time())

    def _check_all(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(self._look_s, self._check_all, loop)
        now_s = loop.time()
        ping_s, send_s = self._limits.stream_ping_s - self._look_s, self._limits.stream_send_s
        pings = 0
        for place in self._sending:  # nothing enters, leaves or moves meanwhile: a bell only wakes a task
            quiet_s = now_s - place.sent_at_s
            if quiet_s < min(ping_s, send_s) or pings == PINGS_MAX:
                break
            if place.sending:
                if quiet_s >= send_s:
                    place.cut(now_s)
            elif quiet_s >= ping_s:
                place.ask_for_ping()
                pings += 1


class ChunkCache:
    """Encoded batches of records, shared by the readers of a run. The least recently used are dropped first."""

    def __init__(self, bytes_max: int, chunk_bytes: int) -> None:
        self._bytes_max = bytes_max
        self._chunk_bytes = chunk_bytes
        self._size = 0
        self._batches: OrderedDict[tuple[str, int, int, int | None], tuple[list[bytes], int]] = OrderedDict()

    def chunks(self, run: str, records: list[Record], preview: int | None = None) -> list[bytes]:
        """Return whole frames, joined to about `chunk_bytes` (one frame may be larger)."""
        key = run, records[0].seq, records[-1].seq, preview  # seq is dense: this names the records
        known = self._batches.get(key)
        if known is not None:
            self._batches.move_to_end(key)
            return known[0]
        chunks = list(self._join(run, records, preview))
        size = sum(map(len, chunks))
        self._batches[key] = chunks, size
        self._size += size
        while self._size > self._bytes_max:
            self._size -= self._batches.popitem(last=False)[1][1]
        return chunks

    def _join(self, run: str, records: list[Record], preview: int | None) -> Iterator[bytes]:
        joined: list[bytes] = []
        size = 0
        for record in records:
            data = encode_record(run, record, preview)
            frame = b"id: %d\nevent: %s\ndata: %s\n\n" % (record.seq, record.type.encode(), data)
            if joined and size + len(frame) > self._chunk_bytes:
                yield b"".join(joined)
                joined, size = [], 0
            joined.append(frame)
            size += len(frame)
        yield b"".join(joined)


_log = logging.getLogger("weft.server")
RETRY_HINT = b"retry: 2000\n\n"  # milliseconds after which EventSource reconnects
PING = b": ping\n\n"


class Frames(Protocol):
    """The encoding of a run's events for one reader."""

    def records(self, records: list[Record]) -> Iterable[bytes]:
        """Some events, in their order."""

    def texts(self, texts: dict[str, str]) -> bytes:
        """Live text, by node key."""


class JournalFrames:
    """The whole journal, each batch encoded once for all readers; outputs over `preview` bytes are cut."""

    def __init__(self, cache: ChunkCache, run: str, preview: int | None) -> None:
        self._cache = cache
        self._run = run
        self._preview = preview

    def records(self, records: list[Record]) -> Iterable[bytes]:
        return self._cache.chunks(self._run, records, self._preview)

    def texts(self, texts: dict[str, str]) -> bytes:
        return b"".join(
            b"event: node.delta\ndata: %s\n\n"
            % orjson.dumps({"run": self._run, "type": "node.delta", "key": key, "text": text})
            for key, text in texts.items()
        )


class EventStream(EventSourceResponse):
    """The response of one reader. Its place among the open streams is freed however it ends. `preview`: see
    `response.encode_record`; `encode` is for readers who may not see everything; `so_far` sends live text from its
    beginning.

    Headers and HEAD are sse-starlette's. Its `__call__` would make four tasks for a stream and a scope for each chunk:
    here the stream runs in the task of its request, and another task waits for the client to disconnect. `Streams`
    handles pings, readers that take nothing and the stop of the server."""

    def __init__(
        self,
        engine: Engine,
        streams: Streams,
        row: RunRow,
        after: int,
        headers: dict[str, str],
        preview: int | None = None,
        session: str | None = None,
        encode: Frames | None = None,
        so_far: bool = False,
    ) -> None:
        self._streams = streams
        self._place = streams.enter(row.id, session)
        frames = encode or JournalFrames(streams.cache, row.id, preview)
        self._frames = _frames(engine, frames, row, after, self._place, so_far)
        super().__init__(self._frames, headers=headers, ping=0, sep="\n")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[LIVE] = True
        try:
            if scope["method"] == "HEAD":
                await super().__call__(scope, receive, send)
            else:
                await self._stream(receive, send)
        finally:
            self._streams.leave(self._place)

    async def _stream(self, receive: Receive, send: Send) -> None:
        streams, place, loop = self._streams, self._place, asyncio.get_running_loop()
        leaving = asyncio.create_task(self._close_when_left(receive))
        try:
            async with asyncio.timeout(None) as place.patience, aclosing(self._frames) as frames:
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                async for chunk in frames:
                    streams.sends(place, loop)
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                    place.sending = False
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            if not place.closing:
                raise
        finally:
            leaving.cancel()

    async def _close_when_left(self, receive: Receive) -> None:
        """Close the place once the client has left: later data is dropped."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self._place.close()


async def _frames(
    engine: Engine, encode: Frames, row: RunRow, after: int, place: Place, so_far: bool = False
) -> AsyncGenerator[bytes, None]:
    """Chunks of whole frames, and pings when they are asked for. A cursor beyond the end counts as the end."""
    yield RETRY_HINT
    sent = min(after, row.seq)
    cursor = engine.events.cursor(row.id, sent, place.bell)
    # Subscribed before the journal is read, so that no token falls in between. A token is sent after the start of its
    # attempt and before its end is recorded, so it is here when the end is read.
    deltas = None if row.status in TERMINAL else engine.events.deltas(row.id, place.bell, so_far=so_far)
    look = took_none = True
    try:
        while not place.closing:
            records = await cursor.next_records() if look or cursor.signalled else []
            if deltas and (texts := deltas.read(sent)):
                yield encode.texts(texts)
            if records is None:
                return
            if records:
                for part in _parted(records, deltas.places() if deltas else set()):
                    for chunk in encode.records(part):
                        yield chunk
                    sent = part[-1].seq
                    if deltas and (texts := deltas.read(sent)):
                        yield encode.texts(texts)
            if place.ping:
                yield PING
            # A page that was not full was read up to its end, and later records have rung the bell. After the last
            # event, and if nothing came twice, the cursor looks at the run itself.
            more = bool(records) and (sent % PAGE == 0 or records[-1].type == "run.finished")
            look = more or (not records and not took_none)
            took_none = not records
            if not (look or cursor.signalled):
                await cursor.wait()
    except NotFound:
        return  # deleted under its reader: there is nothing more to send
    except WeftError as error:
        # After a 200 no error can be sent: the reader sees an end without `run.finished`, asks for the run and gets
        # this error; or it reconnects, and by then the database can be read again.
        _log.error("the event stream of run %s ends: %s: %s", row.id, error.code, error.message)
    finally:
        cursor.close()
        if deltas:
            deltas.close()


def _parted(records: list[Record], places: set[int]) -> Iterator[list[Record]]:
    """Yield the records, cut after the sequence numbers in `places`."""
    if not places:
        yield records
        return
    first = records[0].seq
    cuts = sorted(place - first + 1 for place in places if first <= place < records[-1].seq)  # seq is dense
    for begin, end in pairwise([0, *cuts, len(records)]):
        yield records[begin:end]
