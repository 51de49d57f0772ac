"""Connections of httpx2 and httpcore2, which the libraries for models and for MCP use: each is made by the guard of our
client. These libraries come with extras, so nothing loads this file before a block needs it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import httpcore
import httpcore2
import httpx2

from executor.blocks.http.backend import GuardedBackend
from executor.blocks.http.binding import opened
from executor.blocks.http.exchanges import check_request, opened_headers, tls_context
from executor.blocks.http.handles import has_handle
from executor.blocks.http.response import BoundedHead
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


class Connections:
    """The pools of one process, for http and for https; belongs to an event loop."""

    def __init__(self, guard: GuardedBackend) -> None:
        self._backend = _Backend(guard)
        self._pools: dict[bool, httpcore2.AsyncConnectionPool] = {}

    async def pool(self, tls: bool) -> httpcore2.AsyncConnectionPool:
        """Reading the certificates takes time: not on the event loop, and not for plain HTTP."""
        if tls not in self._pools:
            context = await asyncio.to_thread(tls_context) if tls else None
            if tls not in self._pools:  # another request may have been quicker
                self._pools[tls] = httpcore2.AsyncConnectionPool(
                    ssl_context=context,
                    max_connections=None,  # the clients over it have the bound
                    max_keepalive_connections=20,
                    keepalive_expiry=30,
                    network_backend=self._backend,
                )
        return self._pools[tls]

    async def close(self) -> None:
        """Close all connections."""
        while self._pools:
            await self._pools.popitem()[1].aclose()


def origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    """Return scheme, host and the port that is dialled."""
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}.get(url.scheme)


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
        request.url = self._opened_url(request.url)
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

    def _opened_url(self, url: httpx2.URL) -> httpx2.URL:
        if not has_handle(str(url)):
            return url
        made: httpx2.URL | None = None
        with suppress(httpx2.InvalidURL, ValueError, TypeError):
            made = httpx2.URL(opened(str(url)).replace("#", "%23"))
        if made is None or origin(made) != self._origin:
            message = "the URL cannot be used: a secret in it has characters that a URL cannot have"
            raise BlockError(message, code="url_invalid", retryable=False)
        return made

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
    """A connection that the guard made."""

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
