"""Server-Sent Events, the parser: bytes in, frames out. No network here (WHATWG HTML, "server-sent events").

Not a package: a client needs only these sixty lines, and a frame must have a size limit. Unlike in a browser, `id` is
that of the frame itself, not the last id seen, so that live-only frames, which have none, can be recognised. As in a
browser, an incomplete frame of a broken connection is dropped.
"""

from __future__ import annotations

from msgspec import Struct

FRAME_BYTES_MAX = 64 * 1024 * 1024


class Frame(Struct, frozen=True):
    """`event` is "message" when the server names none; `data` joins several data lines with a line feed."""

    event: str
    data: str
    id: str | None = None


class SseParser:
    """Feed it chunks as they come, however they are cut. Raises ValueError when a frame outgrows `frame_bytes_max`."""

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
