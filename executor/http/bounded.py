"""A connection that ends when too much comes before the answer begins.

The HTTP library reads interim answers (`100 Continue`) for as long as they come. Only the bytes below it can be
counted.
"""

from __future__ import annotations

import ssl
from typing import Any

import httpcore

# Twice the largest head that the HTTP library takes (100 KiB), and what is read together with its end.
HEAD_BYTES_MAX = 256 * 1024


class BoundedHead(httpcore.AsyncNetworkStream):
    """Counts from each write until `head_is_complete`."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._left: int | None = HEAD_BYTES_MAX

    def head_is_complete(self) -> None:
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
