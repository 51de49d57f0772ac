"""Connections that lose answers: proxies of TCP in front of a server, which cut when an answer comes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class Lossy:
    """`url` is its own address. `lose` more answers: the server has done what was asked for, the client never hears.
    `lost`: how many were."""

    def __init__(self, target: str) -> None:
        self.lose = 0
        self.lost = 0
        self.url = ""
        self._target = urlsplit(target).port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.close()
        await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
            self._writers |= {writer, far_writer}
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._forward(reader, far_writer, [writer], answers=False))
                    tasks.create_task(self._forward(far_reader, writer, [far_writer], answers=True))
            finally:
                self._writers -= {writer, far_writer}
        writer.close()

    async def _forward(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        others: list[asyncio.StreamWriter],
        *,
        answers: bool,
    ) -> None:
        with suppress(OSError):
            while piece := await reader.read(65_536):
                if answers and self.lose:
                    self.lose -= 1
                    self.lost += 1
                    break
                writer.write(piece)
                await writer.drain()
        for each in (writer, *others):
            each.close()


@asynccontextmanager
async def in_front_of(
    port: int, loses: Callable[[bytes], bool] = lambda _: False, secured: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """A port that leads to `port`. It ends a connection in place of the answer to what it `loses`."""
    sessions: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        lost = asyncio.Event()

        async def forward(source: asyncio.StreamReader, to: asyncio.StreamWriter, asks: bool) -> None:
            with suppress(OSError):
                while data := await source.read(1 << 16):
                    if asks and loses(data):
                        lost.set()
                    elif not asks and lost.is_set():
                        break
                    to.write(data)
                    await to.drain()
            writer.close()
            back.close()

        for task in (forward(reader, back, True), forward(there, writer, False)):
            sessions.add(asyncio.ensure_future(task))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=secured)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in sessions:
            task.cancel()
        await asyncio.gather(*sessions, return_exceptions=True)
