"""The events of a run over connections that may be lost: where the stream is, and what a client does next. No network
here; both clients share it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx
import orjson
from msgspec import Struct, convert

from server.client.errors import ApiError, ServerUnreachable
from server.client.exchange import CONNECT_S, PASSING, Pauses
from server.client.sse_parser import SseParser

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
    sent = orjson.loads(data)
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
            event = _live_text(frame.data) if frame.id is None else convert(orjson.loads(frame.data), Event)
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
