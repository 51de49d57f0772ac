"""Reads a response: its head, counted until it is complete, and its body, unpacked and cut off when it is too long."""

from __future__ import annotations

import ssl
import zlib
from typing import Any, Final

import httpcore

from executor.errors import BlockError

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
    """Return the first value of a header, whose `name` is in lower case, or None."""
    return next((value.decode("latin-1") for key, value in response.headers if key.lower() == name), None)
