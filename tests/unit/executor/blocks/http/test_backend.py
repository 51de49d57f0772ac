"""Bodies of responses, without a connection."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import AsyncIterator

import httpcore
import pytest

from executor.blocks.http.backend import PACKED_FILES_MAX, read_body
from executor.errors import BlockError

TEXT = b"hello world, " * 20


def response(*chunks: bytes, encoding: str | None = None) -> httpcore.Response:
    async def stream() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    headers = [] if encoding is None else [(b"Content-Encoding", encoding.encode())]
    return httpcore.Response(200, headers=headers, content=stream())


async def code_of(found: httpcore.Response, max_bytes: int) -> str:
    with pytest.raises(BlockError) as refused:
        await read_body(found, max_bytes)
    return refused.value.code


async def test_a_body_up_to_the_limit_is_read_and_not_one_byte_more() -> None:
    assert await read_body(response(b"abc", b"def"), 6) == b"abcdef"
    assert await code_of(response(b"abc", b"def"), 5) == "response_too_large"


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("packed", "encoding"),
    [
        (gzip.compress(TEXT), "gzip"),
        (gzip.compress(TEXT[:7]) + gzip.compress(TEXT[7:]), "x-gzip"),
        (zlib.compress(TEXT), "deflate"),
        (raw_deflate(TEXT), "deflate"),
        (TEXT, "identity"),
    ],
    ids=["gzip", "two files", "zlib", "raw", "plain"],
)
async def test_packed_bodies_are_unpacked(packed: bytes, encoding: str) -> None:
    assert await read_body(response(packed[:5], packed[5:], encoding=encoding), len(TEXT)) == TEXT


async def test_the_limit_is_for_the_unpacked_body() -> None:
    assert await code_of(response(gzip.compress(b"0" * 1_000_000), encoding="gzip"), 1000) == "response_too_large"


async def test_packing_that_holds_nothing_ends() -> None:
    empty = gzip.compress(b"") * (PACKED_FILES_MAX + 1)
    assert await code_of(response(empty, encoding="gzip"), 1_000_000) == "http_connection"
    assert await code_of(response(*[gzip.compress(b"")] * 20, encoding="gzip"), 100) == "response_too_large"


async def test_what_cannot_be_unpacked_is_refused() -> None:
    assert await code_of(response(b"no gzip at all", encoding="gzip"), 100) == "http_connection"
    assert await code_of(response(b"", encoding="br"), 100) == "http_encoding"
