"""Connections of httpx2 and httpcore2, which the libraries for models and for MCP use: each is made by the guard of our
client. These libraries come with extras, so nothing loads this file before a block needs it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpcore
import httpcore2
import httpx
import httpx2

from executor.blocks.http.backend import BoundedHead, GuardedBackend
from executor.blocks.http.exchanges import Pools, check_request, opened_headers, opened_url, origin
from executor.blocks.http.handles import has_handle
from executor.errors import BlockError

_SAME: Final = {
    httpcore.ConnectTimeout: httpcore2.ConnectTimeout,
    httpcore.ReadTimeout: httpcore2.ReadTimeout,
    httpcore.WriteTimeout: httpcore2.WriteTimeout,
    httpcore.ConnectError: httpcore2.ConnectError,
    httpcore.ReadError: httpcore2.ReadError,
    httpcore.WriteError: httpcore2.WriteError,
    httpcore.RemoteProtocolError: httpcore2.RemoteProtocolError,
}


class Connections(Pools[httpcore2.AsyncConnectionPool]):
    """The pools of one process."""

    def __init__(self, guard: GuardedBackend) -> None:
        super().__init__(httpcore2.AsyncConnectionPool, _Backend(guard))


class OneOrigin(httpx2.AsyncHTTPTransport):
    """Sends to the origin of `url` alone, with the headers `own`, over a pool that is shared."""

    def __init__(self, pool: httpcore2.AsyncConnectionPool, url: str, own: Iterable[tuple[str, str]]) -> None:
        # Do not call the base class, which would read the certificates again. Tests pin the name of its pool.
        self._pool = pool
        self._origin = origin(httpx2.URL(url))
        self._own = [*own, ("Accept-Encoding", "identity")]

    async def exchange(
        self,
        request: httpx2.Request,
        *,
        keeps: Callable[[str], bool],
        left: BlockError,
        compressed: BlockError,
        take: Callable[[int], None],
    ) -> httpx2.Response:
        """`keeps`: which headers of the library go along, by their names in lower case. `left`: for a request to
        another origin; `compressed`: for an answer that is; `take` counts its body. Raises these,
        BlockError: secret_host_refused, secret_misplaced; and httpx2's errors."""
        if origin(request.url) != self._origin:
            raise left
        kept = [(name, value) for name, value in request.headers.items() if keeps(name.lower())]
        request.headers = httpx2.Headers([*kept, *self._own])
        host, port = request.url.raw_host.decode("ascii"), self._origin[2] or 0
        body = await request.aread()
        await check_request(self._origin[0], host, port, str(request.url), request.headers, body)
        request.headers = httpx2.Headers(opened_headers(request.headers))
        if has_handle(url := str(request.url)):
            request.url = httpx2.URL(str(opened_url(httpx.URL(url))))
        response = await super().handle_async_request(request)
        stream = response.extensions.get("network_stream")
        if isinstance(stream, _Stream):  # from here on the body is read, which has its own limit
            stream.head_is_complete()
        if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
            await response.aclose()
            raise compressed
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = Bounded(response.stream, take)
        return response

    async def __aexit__(self, *_: Any) -> None:
        """The pool is shared."""

    async def aclose(self) -> None:
        """The pool is shared."""


class Bounded(httpx2.AsyncByteStream):
    """A body of which `take` counts each piece; it raises BlockError when there are too many bytes."""

    def __init__(self, stream: httpx2.AsyncByteStream, take: Callable[[int], None]) -> None:
        self._stream = stream
        self._take = take

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._take(len(chunk))
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Backend(httpcore2.AsyncNetworkBackend):
    def __init__(self, guard: GuardedBackend) -> None:
        self._guard = guard

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        with _as_httpcore2():
            return _Stream(await self._guard.connect_tcp(host, port, timeout, local_address, socket_options))

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore2.AsyncNetworkStream:
        return _Stream(await self._guard.connect_unix_socket(path, timeout, socket_options))  # refuses

    async def sleep(self, seconds: float) -> None:
        await self._guard.sleep(seconds)


class _Stream(httpcore2.AsyncNetworkStream):
    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream

    def head_is_complete(self) -> None:
        if isinstance(self._stream, BoundedHead):
            self._stream.head_is_complete()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with _as_httpcore2():
            return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        with _as_httpcore2():
            await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        with _as_httpcore2():
            return _Stream(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


@contextmanager
def _as_httpcore2() -> Iterator[None]:
    try:
        yield
    except tuple(_SAME) as error:
        raise _SAME[type(error)](str(error)) from error
