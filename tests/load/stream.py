"""A reader of an event stream on a raw socket: it can stop reading, or leave in the middle of a frame."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from msgspec import Struct


class Frame(Struct):
    """One event of the journal. `data` is its JSON as it came."""

    id: int
    data: bytes


class Stream:
    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._rest = b""

    async def frames(self) -> list[Frame]:
        """Those that are here now, at least one; [] at the end of the stream."""
        while True:
            data = await self._reader.read(1 << 16)
            if not data:
                return []
            *whole, self._rest = (self._rest + data).split(b"\n\n")
            found = [_frame(text) for text in whole if text.lstrip().startswith(b"id: ")]
            if found:
                return found

    async def closed(self) -> None:
        """Returns when the server has ended the connection, having read nothing that came before."""
        while not self._reader.at_eof():
            await asyncio.sleep(0.1)


@asynccontextmanager
async def open_stream(url: str, run: str, after: int = 0, buffer_bytes: int | None = None) -> AsyncIterator[Stream]:
    """`buffer_bytes`: of the socket and of the reader; what does not fit stays with the server."""
    host, port = urlsplit(url).hostname, urlsplit(url).port
    connection = socket.socket()
    connection.setblocking(False)
    if buffer_bytes is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    await asyncio.get_running_loop().sock_connect(connection, (host, port))
    reader, writer = await asyncio.open_connection(sock=connection, limit=buffer_bytes or 1 << 17)
    try:
        lines = [
            f"GET /api/runs/{run}/events HTTP/1.1",
            f"host: {host}:{port}",
            "accept: text/event-stream",
            *([f"last-event-id: {after}"] if after else []),
        ]
        writer.write("".join(f"{line}\r\n" for line in [*lines, ""]).encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        yield Stream(Unchunked(reader, b"chunked" in head.lower()))  # type: ignore[arg-type]  # the part that is used
    finally:
        writer.transport.abort()


class Unchunked:
    """`read` of a StreamReader, without the sizes of chunked transfer."""

    def __init__(self, reader: asyncio.StreamReader, chunked: bool) -> None:
        self._reader = reader
        self._chunked = chunked
        self._left = 0

    async def read(self, most: int) -> bytes:
        if not self._chunked:
            return await self._reader.read(most)
        if not self._left:
            line = await self._reader.readline()
            self._left = int(line.strip() or b"0", 16)
            if not self._left:
                return b""
        data = await self._reader.read(min(most, self._left))
        self._left -= len(data)
        if not self._left:
            await self._reader.readline()
        return data

    def at_eof(self) -> bool:
        return self._reader.at_eof()


def _frame(text: bytes) -> Frame:
    number, _, data = text.lstrip().split(b"\n", 2)
    return Frame(int(number[4:]), data[6:])
