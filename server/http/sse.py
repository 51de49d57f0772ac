"""Event streams: the journal of a run from a cursor, then live, as Server-Sent Events. The only importer of
sse-starlette.

A reader is a cursor, never a queue: it reads records after its last seq, sends them, waits, reads again. A slow reader
makes its own reads late and costs nothing else; one that takes nothing for `stream_send_s` is closed and may come back
with Last-Event-ID. Journal events carry `id: seq`; token deltas (`node.delta`) are live only and carry none, so a
reader that comes back does not ask for them.

Cost: a batch is read once (executor.runtime.cursor) and encoded once (ChunkCache) for all readers, and goes out as one
chunk.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Container, Iterator
from itertools import pairwise

import orjson
from sse_starlette.sse import EventSourceResponse
from starlette.types import Receive, Scope, Send

from executor.engine import Engine
from executor.errors import NotFound, WeftError
from executor.runtime.cursor import PAGE, PATIENCE_S
from executor.store.rows import TERMINAL, Record, RunRow
from server.http.connections import LIVE
from server.http.errors import TooManyStreams, TooManyStreamsOfRun
from server.settings import Limits
from server.wire.events import encode_record

_log = logging.getLogger("weft.server")
RETRY_HINT = b"retry: 2000\n\n"  # milliseconds after which EventSource reconnects
CLOSE_S = 1.0  # a stream that does not end by itself when the server stops is cut off after this long
DELTA_JOIN_S = 0.02  # tokens come at up to 100 a second; a person cannot see 20 ms


class Streams:
    """The open streams of this process: their count is bounded, and `close` ends them all when the server stops. Those
    that a session has let in end with it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open: dict[asyncio.Future[None], str] = {}
        self._per_run: dict[str, int] = {}
        self._sessions: dict[asyncio.Future[None], str] = {}
        self._closed = False
        self.cache = ChunkCache(limits.frame_cache_bytes, limits.stream_chunk_bytes)

    def enter(self, run: str, session: str | None = None) -> asyncio.Future[None]:
        """Count one more stream; the future is done when it must end. Raises TooManyStreams, TooManyStreamsOfRun."""
        if len(self._open) >= self._limits.streams:
            raise TooManyStreams(f"This server has {self._limits.streams} event streams open, which is the limit.")
        if self._per_run.get(run, 0) >= self._limits.streams_per_run:
            raise TooManyStreamsOfRun(
                f"This run has {self._limits.streams_per_run} event streams open, which is the limit."
            )
        closing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._closed:  # it gets an empty stream, and comes back: an error would be the end of an EventSource
            closing.set_result(None)
        self._open[closing] = run
        if session is not None:
            self._sessions[closing] = session
        self._per_run[run] = self._per_run.get(run, 0) + 1
        return closing

    def leave(self, closing: asyncio.Future[None]) -> None:
        run = self._open.pop(closing)
        self._sessions.pop(closing, None)
        self._per_run[run] -= 1
        if not self._per_run[run]:
            del self._per_run[run]

    def close(self) -> None:
        """End all streams, and those that are still opened as well."""
        self._closed = True
        for closing in self._open:
            if not closing.done():
                closing.set_result(None)

    @property
    def sessions(self) -> set[str]:
        """Those that have streams open."""
        return set(self._sessions.values())

    def close_session(self, session: str) -> None:
        """End its streams: it has ended."""
        self.close_sessions({session})

    def close_sessions(self, ended: Container[str] | None = None) -> None:
        """None: all sessions have ended."""
        for closing, session in self._sessions.items():
            if (ended is None or session in ended) and not closing.done():
                closing.set_result(None)

    def __len__(self) -> int:
        return len(self._open)


class ChunkCache:
    """Encoded batches of records, shared by the readers of a run; those used longest ago leave first."""

    def __init__(self, bytes_max: int, chunk_bytes: int) -> None:
        self._bytes_max = bytes_max
        self._chunk_bytes = chunk_bytes
        self._size = 0
        self._batches: OrderedDict[tuple[str, int, int, int | None], tuple[list[bytes], int]] = OrderedDict()

    def chunks(self, run: str, records: list[Record], preview: int | None = None) -> list[bytes]:
        """Whole frames, joined to about `chunk_bytes` (one frame may be larger)."""
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


class EventStream(EventSourceResponse):
    """The response of one reader. Its place among the open streams is free again however it ends. `preview`: see
    wire.encode_record."""

    def __init__(
        self,
        engine: Engine,
        streams: Streams,
        row: RunRow,
        after: int,
        limits: Limits,
        headers: dict[str, str],
        preview: int | None = None,
        session: str | None = None,
    ) -> None:
        self._streams = streams
        self._closing = streams.enter(row.id, session)
        super().__init__(
            _frames(engine, streams.cache, row, after, self._closing, preview),
            headers=headers,
            ping=limits.stream_ping_s,
            sep="\n",
            send_timeout=limits.stream_send_s,
            shutdown_grace_period=CLOSE_S,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[LIVE] = True
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.leave(self._closing)


async def _frames(
    engine: Engine,
    cache: ChunkCache,
    row: RunRow,
    after: int,
    closing: asyncio.Future[None],
    preview: int | None,
) -> AsyncIterator[bytes]:
    """Chunks of whole frames. A cursor beyond the end counts as the end."""
    yield RETRY_HINT
    sent = min(after, row.seq)
    cursor = engine.events.cursor(row.id, sent)
    # Joined before the journal is read, so that no token falls in between. A token is sent behind the start of its
    # attempt and before its end: it came before the end was recorded, so it is here when the end is read.
    deltas = None if row.status in TERMINAL else engine.events.deltas(row.id)
    alarm = _Alarm()
    signal = cursor.watch()
    took_none = True
    try:
        while not closing.done():
            if signal.done():
                signal = cursor.watch()
            records = await cursor.take()
            if deltas and (texts := deltas.take(sent)):
                yield _delta_frames(row.id, texts)
            if records is None:
                return
            if records:
                for part in _parted(records, deltas.places() if deltas else set()):
                    for chunk in cache.chunks(row.id, part, preview):
                        yield chunk
                    sent = part[-1].seq
                    if deltas and (texts := deltas.take(sent)):
                        yield _delta_frames(row.id, texts)
            # A page that has room was read up to its end, and what came since has rung `signal`. Behind the last event,
            # and when nothing came twice, the cursor looks at the run itself.
            more = bool(records) and (sent % PAGE == 0 or records[-1].type == "run.finished")
            first_none = not records and not took_none
            took_none = not records
            if more or first_none:
                continue
            await alarm.wait(signal, closing, *([deltas.watch()] if deltas else []))
            if not signal.done() and not closing.done():
                await asyncio.wait([signal, closing], timeout=DELTA_JOIN_S, return_when=asyncio.FIRST_COMPLETED)
    except NotFound:
        return  # deleted under its reader: there is nothing more to send
    except WeftError as error:
        # Behind a 200 no error can be sent: the reader sees an end without `run.finished`, asks for the run and gets it
        # this; or it comes back, and by then the database can be read again.
        _log.error("the event stream of run %s ends: %s: %s", row.id, error.code, error.message)
    finally:
        signal.cancel()
        alarm.close()
        if deltas:
            deltas.close()


class _Alarm:
    """Wakes one reader when one of its futures is done, and every PATIENCE_S. asyncio.wait does the same for ten times
    the price: it begins to listen to each future, and sets a timer, for each wait."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[None] | None = None
        self._heard: set[asyncio.Future[None]] = set()
        self._timer = self._loop.call_later(PATIENCE_S, self._remind)

    async def wait(self, *futures: asyncio.Future[None]) -> None:
        """It may also return without a reason."""
        for future in futures:
            if future.done():
                return
            if future not in self._heard:
                self._heard.add(future)
                future.add_done_callback(self._ring)
        self._waiting = self._loop.create_future()
        await self._waiting

    def close(self) -> None:
        self._timer.cancel()
        for future in self._heard:
            future.remove_done_callback(self._ring)

    def _ring(self, future: asyncio.Future[None]) -> None:
        self._heard.discard(future)
        self._wake()

    def _remind(self) -> None:
        self._timer = self._loop.call_later(PATIENCE_S, self._remind)
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


def _parted(records: list[Record], places: set[int]) -> Iterator[list[Record]]:
    """The records, cut behind those of `places`."""
    first = records[0].seq
    cuts = sorted(place - first + 1 for place in places if first <= place < records[-1].seq)  # seq is dense
    for begin, end in pairwise([0, *cuts, len(records)]):
        yield records[begin:end]


def _delta_frames(run: str, texts: dict[str, str]) -> bytes:
    return b"".join(
        b"event: node.delta\ndata: %s\n\n" % orjson.dumps({"run": run, "type": "node.delta", "key": key, "text": text})
        for key, text in texts.items()
    )
