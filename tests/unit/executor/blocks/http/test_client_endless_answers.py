"""An answer that never holds anything is cut off by what it sends, not by the time it takes."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from executor.blocks.http.client import GuardedClient
from executor.errors import BlockError

MIB = 1024 * 1024
PACKED_HEAD = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n"


@asynccontextmanager
async def endless(head: bytes, more: bytes) -> AsyncIterator[tuple[str, Callable[[], int]]]:
    """A server that sends `head` and then `more` for ever: its URL, and how many bytes it got rid of."""
    sent = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head)
        try:
            while sent < 256 * MIB:
                writer.write(more)
                sent += len(more)
                await writer.drain()
        except ConnectionError:
            pass
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/", lambda: sent
    finally:
        listener.close()
        await listener.wait_closed()
        await asyncio.sleep(0.05)


def _stored(size: int) -> bytes:
    """Deflate blocks that hold nothing, inside one gzip file."""
    packer = zlib.compressobj(wbits=31)
    return packer.flush(zlib.Z_SYNC_FLUSH) + packer.flush(zlib.Z_SYNC_FLUSH) + b"\0\0\0\xff\xff" * (size // 5)


@pytest.mark.parametrize(
    ("head", "more", "code", "most"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2000, "http_connection", 16 * MIB),
        (b"", b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\n" * 2000, "http_connection", 16 * MIB),
        (PACKED_HEAD, gzip.compress(b"") * 2000, "http_connection", 16 * MIB),
        (PACKED_HEAD + _stored(0), b"\0\0\0\xff\xff" * 10_000, "response_too_large", 32 * MIB),
    ],
    ids=["continue", "early hints", "gzip files of nothing", "one gzip file of nothing"],
)
async def test_an_endless_answer_of_nothing_is_cut_off(head: bytes, more: bytes, code: str, most: int) -> None:
    client = GuardedClient(["127.0.0.1/32"])
    try:
        async with endless(head, more) as (url, sent):
            with pytest.raises(BlockError) as caught:
                await client.request("GET", url, timeout_s=300)
            assert caught.value.code == code
            assert sent() < most, "what the sockets of both sides hold included"
    finally:
        await client.close()


async def test_a_packed_answer_may_be_somewhat_larger_than_what_is_in_it() -> None:
    body = bytes(range(256)) * 64
    stored = zlib.compressobj(level=0, wbits=31)
    packed = stored.compress(body) + stored.flush()
    assert len(packed) > len(body)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        interim = b"HTTP/1.1 100 Continue\r\n\r\n" * 10
        writer.write(interim + PACKED_HEAD + packed)
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    client = GuardedClient(["127.0.0.1/32"])
    try:
        url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/"
        assert (await client.request("GET", url, max_bytes=len(body))).body == body
    finally:
        await client.close()
        listener.close()
        await listener.wait_closed()
