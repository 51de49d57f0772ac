"""Sockets and servers for attacks on what comes before a request."""

from __future__ import annotations

import random
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.server import ServerProcess, SyncServerProcess, free_port

AnyServer = ServerProcess | SyncServerProcess


@asynccontextmanager
async def serving(folder: Path, within: Sequence[str] = (), **environ: str) -> AsyncIterator[ServerProcess]:
    """What the server says is in the file `log` of the folder."""
    server = await ServerProcess.start(
        folder / "weft.db", free_port(random.Random()), folder / "log", within=within, **environ
    )
    try:
        await server.ready()
        yield server
    finally:
        await server.clean_up()


def with_descriptors(count: int) -> tuple[str, ...]:
    return ("sh", "-c", f'ulimit -n {count}; exec "$@"', "sh")


def connect(server: AnyServer, timeout_s: float = 60) -> socket.socket:
    parts = urlsplit(server.url)
    return socket.create_connection((parts.hostname, parts.port), timeout_s)


def head(server: AnyServer, line: str = "GET /healthz HTTP/1.1", *more: str) -> bytes:
    """A head without the empty line at its end."""
    return "".join(f"{text}\r\n" for text in (line, f"Host: {urlsplit(server.url).netloc}", *more)).encode()


def read_to_end(connection: socket.socket) -> bytes:
    received = b""
    try:
        while data := connection.recv(1 << 16):
            received += data
    except ConnectionError:
        pass
    return received
