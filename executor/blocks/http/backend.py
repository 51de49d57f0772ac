"""Makes the connections of the HTTP client, to permitted addresses alone. The head of an answer is counted until it is
complete, and its body is unpacked, and cut off when it is too long."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
import zlib
from collections.abc import Iterable
from typing import Any, Final

import httpcore

from executor.blocks.http.addresses import Address, Guard, refused
from executor.errors import BlockError, is_exhausted, not_begun

# Twice the largest head that the HTTP library takes (100 KiB), and the data read together with its end.
HEAD_BYTES_MAX: Final = 256 * 1024
PACKED_FACTOR: Final = 2  # a packed body may be this much larger than its limit unpacked
PACKED_FILES_MAX: Final = 1000  # gzip files that are strung together; each costs, also one of nothing


class BoundedHead(httpcore.AsyncNetworkStream):
    """A connection that ends when too much comes before the answer begins. It counts from each write until
    `head_is_complete`: the HTTP library reads interim answers (`100 Continue`) for as long as they come, and only the
    bytes below it can be counted."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._left: int | None = HEAD_BYTES_MAX

    def head_is_complete(self) -> None:
        """Stop counting: the rest is the body, which has its own limit."""
        self._left = None

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Raises httpcore.RemoteProtocolError."""
        data = await self._stream.read(max_bytes, timeout)
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                raise httpcore.RemoteProtocolError(f"no response started within {HEAD_BYTES_MAX} bytes")
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._left = HEAD_BYTES_MAX
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        return BoundedHead(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


async def read_body(response: httpcore.Response, max_bytes: int) -> bytes:
    """Return the body, unpacked. Stops as soon as it is too long: a small packed body can unpack to any size."""
    unpack = _unpacker(header_of(response, b"content-encoding"))
    parts: list[bytes] = []
    size = packed = 0
    async for chunk in response.aiter_stream():
        if unpack is not None:
            packed += len(chunk)
            if packed > PACKED_FACTOR * max_bytes:  # packing may hold as much of nothing as it likes
                raise _too_large(PACKED_FACTOR * max_bytes, "compressed body")
            try:
                chunk = unpack.feed(chunk, max_bytes - size + 1)
            except zlib.error as error:
                message = f"the compressed body cannot be read: {error}"
                raise BlockError(message, code="http_connection") from error
        size += len(chunk)
        if size > max_bytes:
            raise _too_large(max_bytes)
        parts.append(chunk)
    return b"".join(parts)


class _Unpacker:
    """gzip, or deflate with or without its zlib header. Gives at most `most` bytes per feed; one more is too many."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=47)
        self._started = False
        self._files = 1

    def feed(self, chunk: bytes, most: int) -> bytes:
        try:
            out = self._inflate.decompress(chunk, most)
        except zlib.error:
            if self._started:
                raise
            self._inflate = zlib.decompressobj(wbits=-15)
            out = self._inflate.decompress(chunk, most)
        self._started = self._started or bool(chunk)
        while self._inflate.eof and self._inflate.unused_data and len(out) < most:  # gzip files may be strung together
            self._files += 1
            if self._files > PACKED_FILES_MAX:
                raise zlib.error(f"more than {PACKED_FILES_MAX} files in one")
            rest, self._inflate = self._inflate.unused_data, zlib.decompressobj(wbits=47)
            out += self._inflate.decompress(rest, most - len(out))
        return out


def _unpacker(encoding: str | None) -> _Unpacker | None:
    name = (encoding or "identity").strip().lower()
    if name in ("identity", ""):
        return None
    if name in ("gzip", "x-gzip", "deflate"):
        return _Unpacker()
    raise BlockError(
        f"the body is compressed with {name[:40]!r}, which was not requested", code="http_encoding", retryable=False
    )


def _too_large(max_bytes: int, what: str = "body") -> BlockError:
    message = f"the {what} of the response is larger than {max_bytes} bytes"
    return BlockError(message, code="response_too_large", retryable=False)


def header_of(response: httpcore.Response, name: bytes) -> str | None:
    return next((value.decode("latin-1") for key, value in response.headers if key.lower() == name), None)


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Dials only what `guard` permits. TLS and the Host header still see the name."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._dialler = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """`timeout` is for the name and all its addresses together. Raises httpcore's errors, and BlockError:
        address_refused when no address is permitted, out_of_resources when this machine cannot dial."""
        try:
            async with asyncio.timeout(timeout):
                return await self._connect(host, port, local_address, socket_options)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"no connection to {host} within {timeout:g} s") from error

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None
    ) -> httpcore.AsyncNetworkStream:
        raise refused("a unix socket", "use the address of a host")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _connect(
        self, host: str, port: int, local_address: str | None, options: Iterable[httpcore.SOCKET_OPTION] | None
    ) -> httpcore.AsyncNetworkStream:
        try:
            permitted = await self._guard.addresses(host, port)
        except (OSError, UnicodeError) as error:
            if is_exhausted(error):
                raise not_begun(f"{host}:{port}", error) from error
            raise httpcore.ConnectError(f"the host name {host} cannot be resolved: {error}") from error
        problem: Exception | None = None
        for text in permitted:
            try:
                stream = await self._dialler.connect_tcp(
                    text, port, local_address=local_address, socket_options=options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout, OSError) as error:
                problem = error
                continue
            if self._is_own(stream, host, ipaddress.ip_address(text), port):
                await stream.aclose()
                raise self._guard.refusal(host, port)
            return BoundedHead(stream)
        if problem is not None and is_exhausted(problem):
            raise not_begun(f"{host}:{port}", problem) from problem
        raise httpcore.ConnectError(f"no connection to {host}:{port}: {problem}") from problem

    def _is_own(self, stream: httpcore.AsyncNetworkStream, host: str, address: Address, port: int) -> bool:
        """Return True if both ends have the same address: this machine was reached by one of its outer addresses."""
        if port != self._guard.own_port or self._guard.names(host, address, port):
            return False
        ours, theirs = stream.get_extra_info("client_addr"), stream.get_extra_info("server_addr")
        return bool(ours and theirs and ours[0] == theirs[0])
