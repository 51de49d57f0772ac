"""The events of a run over connections that may be lost: where the stream is, and what a client does next. No network
here; both clients share it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx
from msgspec import Struct, json

from server.client.errors import ApiError, ServerUnreachable
from server.client.exchange import CONNECT_S, PASSING, Pauses

FRAME_BYTES_MAX = 64 * 1024 * 1024


class Frame(Struct, frozen=True):
    """`event` is "message" when the server names none; `data` joins several data lines with a line feed."""

    event: str
    data: str
    id: str | None = None


class SseParser:
    """The parser of Server-Sent Events (WHATWG HTML): bytes in, frames out. Feed it chunks as they come, however they
    are cut. Raises ValueError when a frame outgrows `frame_bytes_max`.

    Not a package, because a frame must have a size limit. Unlike in a browser, `id` is that of the frame itself, not
    the last id seen, so that live-only frames, which have none, can be recognised. As in a browser, an incomplete frame
    of a broken connection is dropped."""

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._max = frame_bytes_max
        self._started = False
        self._parts: list[bytes] = []  # of a line that has not ended; joined once, or long lines would cost a square
        self._size = 0
        self._event = ""
        self._data: list[str] = []
        self._id: str | None = None

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that this chunk completes."""
        self._parts.append(chunk)
        self._size += len(chunk)
        if self._size > self._max:
            raise ValueError(f"an event is larger than {self._max} bytes")
        # A carriage return at the end of the last chunk may have been half of CR LF: it was held back until now.
        held_cr = len(self._parts) > 1 and self._parts[-2].endswith(b"\r")
        if not held_cr and b"\n" not in chunk and b"\r" not in chunk:
            return []
        text = b"".join(self._parts)
        if not self._started:
            text = text.removeprefix(b"\xef\xbb\xbf")
            self._started = True
        held = b"\r" if text.endswith(b"\r") else b""
        lines = text[: len(text) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._parts = [lines.pop() + held]
        frames = [frame for line in lines if (frame := self._read_line(line)) is not None]
        self._size = len(self._parts[0]) + sum(map(len, self._data))
        return frames

    def _read_line(self, line: bytes) -> Frame | None:
        if not line:
            return self._end_frame()
        name, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        match name:
            case b"data":
                self._data.append(text)
            case b"event":
                self._event = text
            case b"id" if "\0" not in text:
                self._id = text
            case _:
                pass  # comments (the server's pings), retry, and what later versions may add
        return None

    def _end_frame(self) -> Frame | None:
        frame = Frame(self._event or "message", "\n".join(self._data), self._id) if self._data else None
        self._event, self._data, self._id = "", [], None
        return frame


SILENCE_S = 60.0  # the server pings every 15 s: silence of four pings is a dead connection
DELTA = "node.delta"


class Event(Struct, frozen=True):
    """One event of a run. `key` is the node with its iteration and branch: `send@review#5/fan[2]`.

    Live text of a node has the type `node.delta`, `data["text"]` and no `seq` (0): it is not in the journal."""

    run: str
    seq: int = 0
    at_ms: int = 0
    type: str = ""
    node: str | None = None
    block: str | None = None
    path: str = ""
    key: str | None = None
    attempt: int = 0
    data: dict[str, Any] = {}


def _live_text(data: str) -> Event:
    """Return live text as an event. The server sends the text beside the key; events of the journal have it in
    `data`."""
    sent = json.decode(data)
    return Event(sent["run"], type=sent["type"], key=sent["key"], data={"text": sent["text"]})


class Following:
    """One reader of a run, across its connections. `after` is the seq of the last event it has received."""

    def __init__(self, run: str, after: int, patience_s: float, text: bool) -> None:
        self.after = after
        self._ended = False
        self._run = run
        self._text = text
        self._patience_s = patience_s
        self._pauses = Pauses(patience_s)
        self._parser = SseParser()

    def request(self, http: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        """Build the request of a connection that continues after `after`."""
        self._parser = SseParser()
        return http.build_request(
            "GET",
            f"/api/runs/{quote(self._run, safe='')}/events",
            headers={"Accept": "text/event-stream", "Last-Event-ID": str(self.after)},
            timeout=httpx.Timeout(SILENCE_S, connect=CONNECT_S),
        )

    def has_ended(self) -> bool:
        """There are no more events."""
        return self._ended

    def opened(self, status: int) -> bool:
        """Return whether this connection has a stream. With 204 the run has ended, and all its events were read."""
        self._pauses.renew()
        self._ended = status == 204
        return not self._ended

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the new events in a piece of the stream."""
        events: list[Event] = []
        for frame in self._parser.feed(chunk):
            if frame.id is None and not (self._text and frame.event == DELTA):
                continue
            event = _live_text(frame.data) if frame.id is None else json.decode(frame.data, type=Event)
            self._pauses = Pauses(self._patience_s)
            if frame.id is None:
                events.append(event)
            elif event.seq > self.after:
                self.after = event.seq
                events.append(event)
            if event.type == "run.finished":
                self._ended = True
                break
        return events

    def pause_s(self, lost: ServerUnreachable | ApiError | None) -> float:
        """Return the pause before the next connection. `lost` is the error that ended the last one, or None if the
        server ended it, which it does when it stops. Raises `lost` if it is permanent, and ServerUnreachable when the
        patience has ended."""
        if isinstance(lost, ApiError) and lost.status not in PASSING:
            raise lost
        pause_s = self._pauses.after(None)
        if pause_s is None:
            raise lost or ServerUnreachable(
                "The server ended the stream before the run ended.", "Follow the run again, after the last event."
            )
        return pause_s
