"""JSON that is cheap to send and dear to walk, on routes that ask for no credential."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import orjson
import pytest

from server.app import create_app
from server.http.errors import MalformedBody
from server.http.request import parse_json
from server.settings import Limits, Settings
from tests.support.cost import computes_within, no_collector

JSON = {"content-type": "application/json"}
LIMITS = Limits()
WIDE = b"[" + b",".join([b"[]"] * 600_000) + b"]"  # 1.8 MB


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(Settings(db_path=str(tmp_path / "weft.db"), secret_key="a secret for tests only"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1:8765") as client:
        yield client


@pytest.mark.parametrize(("path", "most"), [("/login", 4 * 1024), ("/demo/echo", 64 * 1024)])
@pytest.mark.parametrize("announced", [True, False], ids=["announced", "streamed"])
async def test_public_routes_have_small_bodies(
    client: httpx.AsyncClient, path: str, most: int, announced: bool
) -> None:
    async def pieces(size: int) -> AsyncIterator[bytes]:
        yield b'{"token": "' + b"a" * (size - 13) + b'"}'

    for size, refused in ((most, False), (most + 1, True)):
        content = b"".join([piece async for piece in pieces(size)]) if announced else pieces(size)
        answer = await client.post(path, content=content, headers=JSON)
        assert (answer.status_code == 413) is refused, answer.text


def test_wide_json_is_refused_by_its_bytes() -> None:
    with pytest.raises(MalformedBody, match="more than 200000 arrays and objects"):
        parse_json(WIDE, LIMITS)


def test_what_is_within_the_bound_is_counted_without_a_walk() -> None:
    """The walk took several times as long as the parser; the count takes a fraction of it. Computing time, the best of
    three, against the parser's at the same time: a slow machine slows both."""
    data = b"[" + b",".join([b'{"a":[]}'] * 99_000) + b"]"
    ratios = []
    for _ in range(3):
        with no_collector():
            began = time.thread_time()
            orjson.loads(data)
            parsed = time.thread_time()
            parse_json(data, LIMITS)
            ratios.append((time.thread_time() - parsed) / (parsed - began))
    assert min(ratios) < 3, ratios


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**19 * 9, 123456789012345678901234567890, int("9" * 4_000)])
def test_an_integer_beyond_64_bits_is_refused_instead_of_rounded(number: int) -> None:
    with pytest.raises(MalformedBody, match="does not fit in 64 bits") as caught:
        parse_json(b'{"a": [1, %d]}' % number, LIMITS)
    assert (caught.value.code, caught.value.hint) == ("number_too_large", "Send it as text.")


@pytest.mark.parametrize(
    "text", ["18446744073709551615", "-9223372036854775808", "1.00000000000000000000001", "12345678901234567890123.5",
             "12345678901234567890123e2", '"123456789012345678901234567890"', '"\\"1234567890123456789012345"'],
)  # fmt: skip
def test_other_long_numbers_and_texts_are_read(text: str) -> None:
    assert parse_json(text.encode(), LIMITS) == json.loads(text)


def test_brackets_in_texts_count_for_nothing() -> None:
    text = "[{" * 150_000
    assert parse_json(b'["' + text.encode() + b'", "\\"[", "\\\\"]', LIMITS) == [text, '"[', "\\"]
    deep = b'{"a":' * LIMITS.json_depth + b'"[[[["' + b"}" * LIMITS.json_depth
    parse_json(deep, LIMITS)
    with pytest.raises(MalformedBody, match="deeper"):
        parse_json(b"[" + deep + b"]", LIMITS)


@pytest.mark.parametrize("data", [b'"' * 300_001, b'"\\"' * 200_000, b"[" * 300_000 + b'"\\' * 100_000])
def test_quotes_that_do_not_end_take_no_longer(data: bytes) -> None:
    with computes_within(2), pytest.raises(MalformedBody):
        parse_json(b"[" * 100 + data, LIMITS)


def test_demo_is_there_on_loopback_only(tmp_path: Path) -> None:
    def paths(host: str) -> set[str]:
        app = create_app(
            Settings(db_path=str(tmp_path / "weft.db"), secret_key="a secret for tests only", host=host, token="t" * 40)
        )
        return {route.path for route in app.routes if hasattr(route, "path")}

    assert "/demo/echo" in paths("127.0.0.1") and "/demo/echo" not in paths("0.0.0.0")
