"""A small application on a separate port: the metrics of a worker, the page of a demo."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

HOST = "127.0.0.1"
CONNECTIONS_MAX = 64
HEAD_BYTES_MAX = 16 * 1024


def listening(port: int, host: str = HOST) -> socket.socket:
    """Bind `port` of the address or name `host`; port 0 is a free one. Raises OSError."""
    family, _, _, _, address = socket.getaddrinfo(
        host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        return listener
    except BaseException:
        listener.close()
        raise


class BesideServer(uvicorn.Server):
    """Leaves signals to the process. More requests at once than CONNECTIONS_MAX are answered 503."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                limit_concurrency=CONNECTIONS_MAX,
                h11_max_incomplete_event_size=HEAD_BYTES_MAX,
                timeout_graceful_shutdown=1,
            )
        )
        self._accepts = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None

    async def begin(self, listener: socket.socket) -> None:
        """Serve `listener`. Returns when connections are accepted."""
        self._serving = asyncio.create_task(self.serve([listener]), name="beside")
        await self._accepts.wait()

    async def end(self) -> None:
        """Close the port; requests that have begun are no longer served when this returns."""
        self.should_exit = True
        if self._serving is not None:
            await self._serving

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._accepts.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
