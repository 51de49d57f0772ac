"""Files on their way up and down, in pieces. No network here; both clients share it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, Self
from urllib.parse import quote

import httpx

from server.client.call import ANSWER_S, UPLOAD, Call, present
from server.client.errors import ApiError, unreachable
from server.client.exchange import CONNECT_S, PASSING, Pauses, Server

PIECE = 256 * 1024
_TIMEOUT = httpx.Timeout(ANSWER_S, connect=CONNECT_S)


class Upload:
    """A file on this machine, or bytes, as a request that can be sent again."""

    def __init__(self, source: str | Path | bytes, name: str | None, media_type: str | None) -> None:
        self._source = source if isinstance(source, bytes) else Path(source)
        self._size = len(self._source) if isinstance(self._source, bytes) else self._source.stat().st_size
        own = None if isinstance(self._source, bytes) else self._source.name
        self.call: Call[Any] = Call("POST", UPLOAD, params=present(name=name or own, media_type=media_type))

    def request(
        self, http: httpx.Client | httpx.AsyncClient, pieces: Iterator[bytes] | AsyncIterator[bytes]
    ) -> httpx.Request:
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(self._size)}
        return http.build_request(
            "POST", UPLOAD, content=pieces, params=dict(self.call.params), headers=headers, timeout=_TIMEOUT
        )

    def pieces(self) -> Iterator[bytes]:
        if isinstance(self._source, bytes):
            for at in range(0, len(self._source), PIECE):
                yield self._source[at : at + PIECE]
            return
        with _opened(self._source, "rb") as file:
            while piece := file.read(PIECE):
                yield piece

    async def pieces_async(self) -> AsyncIterator[bytes]:
        for piece in self.pieces():
            yield piece


class Download:
    """A file that is being downloaded to `target`. `size` is the number of bytes received. A path is opened when the
    server sends the file: a refusal leaves an existing file alone."""

    def __init__(self, file: str, target: str | Path | BinaryIO, server: Server) -> None:
        self.size = 0
        self._file = file
        self._server = server
        self._pauses = Pauses(server.patience_s)
        self._path = Path(target) if isinstance(target, str | Path) else None
        self._target = None if isinstance(target, str | Path) else target
        self._known = 0  # bytes that this answer sends once more

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._path is not None and self._target is not None:
            self._target.close()

    def request(self, http: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        """Build a request for the bytes that are still missing. The bytes of an id never change."""
        headers = {"Accept": "*/*", "Accept-Encoding": "identity"}
        if self.size:
            headers["Range"] = f"bytes={self.size}-"
        return http.build_request("GET", f"{UPLOAD}/{quote(self._file, safe='')}", headers=headers, timeout=_TIMEOUT)

    def begin(self, status: int) -> None:
        """Begin to write the answer. A proxy may drop the Range: 200 is the file from its first byte. Raises
        OSError."""
        self._server.has_answered = True
        self._known = 0 if status == 206 else self.size
        if self._target is None:
            assert self._path is not None
            self._target = _opened(self._path, "wb")

    def write(self, piece: bytes) -> None:
        assert self._target is not None
        self._pauses.renew()
        known = min(self._known, len(piece))
        self._known -= known
        self._target.write(piece[known:])
        self.size += len(piece) - known

    def pause_s(self, lost: httpx.TransportError | ApiError) -> float:
        """Return the pause before the rest is requested. Raises ServerUnreachable, and ApiError if the refusal is
        permanent."""
        passes = lost.status in PASSING if isinstance(lost, ApiError) else self._server.has_answered
        pause_s = self._pauses.after(None) if passes else None
        if pause_s is None:
            raise lost if isinstance(lost, ApiError) else unreachable(self._server.url, lost) from None
        return pause_s


def _opened(path: Path, mode: Literal["rb", "wb"]) -> BinaryIO:
    """A local file: reading and writing it delays this program alone."""
    return path.open(mode)
