"""The open event streams of this process, their number and their pings."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Container, Iterator

from executor.kernel.read.watchers import Bell
from executor.kernel.store.run_rows import Record
from server.http.errors import TooManyStreams, TooManyStreamsOfRun
from server.http.response import encode_record
from server.settings import Limits

CLOSE_S = 1.0  # a stream that does not end by itself when the server stops is cut off after this long

LOOK_S = 0.25  # so often the timer looks

PINGS_MAX = 100  # per look, so that thousands of streams opened together do not hold up other requests


class Place:
    """One open stream, or a caller that waits for a run. `bell` wakes it for new events, for `closing` and for `ping`.
    `closed` is done when it must end. `ping_now` sends a ping in the caller's turn of the event loop, and returns False
    if the reader takes nothing."""

    __slots__ = ("bell", "closed", "patience", "ping", "ping_now", "run", "sending", "sent_at_s", "session")

    def __init__(self, run: str, session: str | None = None) -> None:
        self.run = run
        self.session = session
        self.bell = Bell()
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ping = False
        self.ping_now: Callable[[], bool] | None = None
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
        """Have the task of the stream send a ping."""
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
        """Record that the stream begins to send."""
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
        due: list[Place] = []
        for place in self._sending:
            quiet_s = now_s - place.sent_at_s
            if quiet_s < min(ping_s, send_s) or len(due) == PINGS_MAX:
                break
            if place.sending:
                if quiet_s >= send_s:
                    place.cut(now_s)
            elif quiet_s >= ping_s:
                due.append(place)
        for place in due:  # to wake a task for each ping would be half of the cost of an idle stream
            if place.ping_now is not None and not place.closing and place.ping_now():
                place.sent_at_s = now_s
                self._sending.move_to_end(place)
            else:
                place.ask_for_ping()


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
