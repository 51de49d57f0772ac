"""Bodies of responses: unpacked, and cut off as soon as they are too long."""

from __future__ import annotations

import zlib
from typing import Final

import httpcore

from executor.errors import BlockError
from executor.http.hops import header_of

PACKED_FACTOR: Final = 2  # a packed body may be this much larger than what it may unpack to
PACKED_FILES_MAX: Final = 1000  # gzip files that are strung together; each costs, also one of nothing


async def read_body(response: httpcore.Response, max_bytes: int) -> bytes:
    """The body, unpacked. Stops as soon as it is too long: a small packed body can unpack to any size."""
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
        self._begun = False
        self._files = 1

    def feed(self, chunk: bytes, most: int) -> bytes:
        try:
            out = self._inflate.decompress(chunk, most)
        except zlib.error:
            if self._begun:
                raise
            self._inflate = zlib.decompressobj(wbits=-15)
            out = self._inflate.decompress(chunk, most)
        self._begun = self._begun or bool(chunk)
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
