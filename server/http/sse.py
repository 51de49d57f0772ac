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
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from functools import partial
from itertools import pairwise
from typing import Protocol

import orjson
from sse_starlette.sse import EventSourceResponse
from starlette.types import Receive, Scope, Send

from executor.errors import NotFound, WeftError
from executor.kernel.read.cursor import PAGE
from executor.kernel.store.run_rows import Record, RunRow
from executor.kernel.store.statements import TERMINAL
from executor.open.engine import Engine
from server.http.connections import LIVE
from server.http.streams import ChunkCache, Place, Streams

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
                place.ping_now = partial(_ping_now, send)
                async for chunk in frames:
                    streams.sends(place, loop)
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                    place.sending = False
                place.ping_now = None
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


def _ping_now(send: Send) -> bool:
    """Send a ping from the outside of the stream's task: chunks are whole frames, so it fits between any two. Returns
    False, with nothing sent, if `send` would wait, since the reader has not taken what was sent before."""
    steps = send({"type": "http.response.body", "body": PING, "more_body": True}).__await__()
    try:
        next(steps)
    except StopIteration:
        return True
    steps.close()
    return False


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
