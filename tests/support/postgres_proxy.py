"""What lies between weft and PostgreSQL when a network is bad: a proxy on a port of loopback that forwards what both
say and, when it is asked to, drops the answer to a COMMIT, ends sessions, or is silent for a while.

It understands as much of the protocol as it takes to see a COMMIT answered: each message of the server is a letter, a
length and a body, and CommandComplete (`C`) has the name of what was done.
"""

from __future__ import annotations

import asyncio
import random
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

CHUNK: Final = 1 << 16
HEADER: Final = struct.Struct("!cI")
REQUEST: Final = struct.Struct("!II")
# What a client may ask before it says who it is: no encryption, neither of TLS nor of GSSAPI.
ENCRYPT: Final = (80877103, 80877104)
COMMITTED: Final = b"COMMIT\0"
WINDOW_S: Final = 5.0


class Proxy:
    """`drops`: whether the answer to this COMMIT is dropped, and its session ended; asked for each of them. Counters
    since the start: `commits` that were answered, `dropped` of them, `sessions` that were opened, and at most `busiest`
    of these within WINDOW_S."""

    def __init__(self, socket: Path, drops: Callable[[], bool] = lambda: False, port: int = 0) -> None:
        self._socket = socket
        self._port = port
        self._drops = drops
        self._server: asyncio.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sessions: set[asyncio.Task[None]] = set()
        self._heard = asyncio.Event()
        self._heard.set()
        self.commits = self.dropped = self.sessions = self.busiest = 0
        self._opened_s: deque[float] = deque()

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)

    async def stop(self) -> None:
        if self._server is None:
            return
        self._server.close()
        await self.cut()

    async def refuse(self) -> None:
        """End all sessions, and take no other."""
        assert self._server is not None
        self._port = self.port
        self._server.close()
        await self.cut()

    async def accept(self) -> None:
        """Again, on the same port."""
        await self.start()

    async def cut(self) -> None:
        """End all sessions, whatever is under way."""
        await _over(list(self._sessions))

    def cut_now(self) -> None:
        """From another thread: when it returns they have ended."""
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(self.cut(), self._loop).result(10)

    def be_silent(self) -> None:
        """Take what is sent, and forward none of it."""
        self._heard.clear()

    def be_heard(self) -> None:
        self._heard.set()

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._sessions.add(task)
        self._count_session()
        to_server = None
        try:
            started = await _first_message(client, to_client)
            server, to_server = await asyncio.open_unix_connection(str(self._socket))
            to_server.write(started)
            done, pending = await asyncio.wait(
                [
                    asyncio.ensure_future(self._requests(client, to_server)),
                    asyncio.ensure_future(self._answers(server, to_client)),
                ],
                return_when=asyncio.FIRST_COMPLETED,
            )
            await _over([*done, *pending])
        except (OSError, EOFError, asyncio.CancelledError):
            pass  # one of them has gone, there is no server, or it is cut
        finally:
            self._sessions.discard(task)
            for writer in (to_client, to_server):
                if writer is not None:
                    writer.transport.abort()

    def _count_session(self) -> None:
        now_s = time.monotonic()
        opened_s = self._opened_s
        opened_s.append(now_s)
        while opened_s[0] < now_s - WINDOW_S:
            opened_s.popleft()
        self.sessions += 1
        self.busiest = max(self.busiest, len(opened_s))

    async def _requests(self, client: asyncio.StreamReader, to_server: asyncio.StreamWriter) -> None:
        while chunk := await client.read(CHUNK):
            await self._heard.wait()
            to_server.write(chunk)
            await to_server.drain()

    async def _answers(self, server: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        unread = b""
        while chunk := await server.read(CHUNK):
            unread += chunk
            at = 0
            while len(unread) - at >= HEADER.size:
                kind, length = HEADER.unpack_from(unread, at)
                end = at + 1 + length
                if len(unread) < end:
                    break
                if kind == b"C" and unread[at + HEADER.size : end] == COMMITTED:
                    self.commits += 1
                    if self._drops():
                        self.dropped += 1
                        return
                at = end
            await self._heard.wait()
            to_client.write(unread[:at])
            unread = unread[at:]
            await to_client.drain()


async def _first_message(client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> bytes:
    """With which a session begins, or with which one is cancelled."""
    while True:
        start = await client.readexactly(REQUEST.size)
        length, code = REQUEST.unpack(start)
        if code not in ENCRYPT:
            return start + await client.readexactly(length - REQUEST.size)
        to_client.write(b"N")
        await to_client.drain()


async def _over(tasks: Sequence[asyncio.Future[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def proxy_in_a_thread(socket: Path, drops: Callable[[], bool]) -> Iterator[Proxy]:
    """For tests whose event loop is that of weft. Of the proxy only its port, its counters and `cut_now` are for other
    threads."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="proxy", daemon=True)
    thread.start()
    proxy = Proxy(socket, drops)
    try:
        asyncio.run_coroutine_threadsafe(proxy.start(), loop).result(10)
        yield proxy
    finally:
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(proxy.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _main(socket: Path, drops: float, seed: int) -> None:
    """A process: prints its port, does what its input says, prints its counters at the end of that."""
    choose = random.Random(seed)
    proxy = Proxy(socket, lambda: choose.random() < drops)
    await proxy.start()
    print(proxy.port, flush=True)
    what = {"silent": proxy.be_silent, "heard": proxy.be_heard}
    while line := await asyncio.to_thread(sys.stdin.readline):
        what[line.strip()]()
    await proxy.stop()
    print(proxy.commits, proxy.dropped, proxy.sessions, proxy.busiest)


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])))
