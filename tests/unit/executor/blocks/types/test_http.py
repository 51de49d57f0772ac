"""The http block, with the real client against real servers."""

import base64
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from executor.blocks.http.client import GuardedClient
from executor.blocks.services import Services
from executor.blocks.types.http import block
from executor.errors import BlockError
from executor.kernel.handler.base import Done
from tests.support.endpoints import answer, http
from tests.unit.executor.blocks.types.flow import context

NOW_MS = 1_700_000_000_000


@pytest.fixture
async def services() -> AsyncIterator[Services]:
    made = Services(sandbox=cast(Any, None), http=GuardedClient(["127.0.0.1/32"]))
    yield made
    await made.http.close()


async def _run(services: Services, **params: Any) -> dict[str, Any]:
    done = await block.run(context(params, services=services, idempotency_key="run:send", now_ms=NOW_MS))
    assert isinstance(done, Done) and done.route == "out"
    return cast(dict[str, Any], done.output)


async def _error(services: Services, **params: Any) -> BlockError:
    with pytest.raises(BlockError) as caught:
        await _run(services, **params)
    return caught.value


async def test_get_json(services: Services) -> None:
    async with http(
        lambda r: answer(200, b'{"a": [1, null]}', content_type="application/json; charset=utf-8")
    ) as server:
        output = await _run(services, url=f"{server.url}/x?a=1")
    assert output.pop("ms") >= 0
    assert output == {
        "status": 200,
        "headers": {
            "content-length": "16",
            "content-type": "application/json; charset=utf-8",
            "connection": "close",
        },
        "body": {"a": [1, None]},
        "encoding": "json",
        "url": f"{server.url}/x?a=1",
    }
    assert server.seen[0].method == "GET"
    assert "idempotency-key" not in server.seen[0].headers


@pytest.mark.parametrize(
    ("kind", "body", "decoded", "encoding"),
    [
        ("application/problem+json", b'{"a":1}', {"a": 1}, "json"),
        ("application/json", b"oops", "oops", "text"),
        ("text/plain", b'{"a":1}', '{"a":1}', "text"),
        ("text/plain; charset=latin-1", b"caf\xe9", "caf\xe9", "text"),
        ("text/plain; charset=latin-1" + ";" * 64, b"caf\xe9", base64.b64encode(b"caf\xe9").decode(), "base64"),
        ("text/plain; charset=unheard-of", b"abc", base64.b64encode(b"abc").decode(), "base64"),
        # Encodings of Python alone, and text that cannot be written down again: bytes stay what they are.
        ("text/plain; charset=punycode", b"abc-", base64.b64encode(b"abc-").decode(), "base64"),
        ("text/plain; charset=Unicode_Escape", b"\\ud800", base64.b64encode(b"\\ud800").decode(), "base64"),
        ("text/plain; charset=undefined", b"abc", base64.b64encode(b"abc").decode(), "base64"),
        ("text/plain; charset=utf-7", b"+2AA-", base64.b64encode(b"+2AA-").decode(), "base64"),
        ("image/png", b"\x89PNG\xff", base64.b64encode(b"\x89PNG\xff").decode(), "base64"),
        ("text/plain", b"", None, "none"),
        ("", "grün".encode(), "grün", "text"),
    ],
)
async def test_bodies_are_read_by_their_type(
    services: Services, kind: str, body: bytes, decoded: Any, encoding: str
) -> None:
    async with http(lambda r: answer(200, body, content_type=kind)) as server:
        output = await _run(services, url=server.url)
    assert (output["body"], output["encoding"]) == (decoded, encoding)


@pytest.mark.parametrize(
    ("body", "headers", "sent", "kind"),
    [
        ({"a": [1]}, None, b'{"a":[1]}', "application/json"),
        ([1, 2], None, b"[1,2]", "application/json"),
        (0, None, b"0", "application/json"),
        (False, None, b"false", "application/json"),
        ("grün", None, "grün".encode(), "text/plain; charset=utf-8"),
        ('{"a":1}', {"content-type": "application/json"}, b'{"a":1}', "application/json"),
        ({"a": 1, "b": "x y", "c": None}, {"Content-Type": "application/x-www-form-urlencoded"}, b"a=1&b=x+y",
         "application/x-www-form-urlencoded"),
        (None, None, b"", None),
    ],
)  # fmt: skip
async def test_what_is_sent(services: Services, body: Any, headers: Any, sent: bytes, kind: str | None) -> None:
    async with http(lambda r: answer(204)) as server:
        output = await _run(services, url=server.url, method="POST", body=body, headers=headers)
    assert (server.seen[0].body, server.seen[0].headers.get("content-type")) == (sent, kind)
    assert (output["status"], output["body"]) == (204, None)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "post"])
async def test_every_attempt_carries_the_same_key(services: Services, method: str) -> None:
    async with http(lambda r: answer()) as server:
        await _run(services, url=server.url, method=method)
        await _run(services, url=server.url, method=method)
        await _run(services, url=server.url, method=method, headers={"idempotency-KEY": "mine"})
    assert [r.headers["idempotency-key"] for r in server.seen] == ["run:send", "run:send", "mine"]


async def test_query_and_headers(services: Services) -> None:
    async with http(lambda r: answer()) as server:
        query = {"q": "a&b", "n": 2, "list": ["x", None, True], "none": None}
        headers = {"X-N": 5, "X-B": True, "X-None": None, "User-Agent": "me"}
        await _run(services, url=f"{server.url}/p?z=1#frag", query=query, headers=headers)
        await _run(services, url=f"{server.url}/p", query={"none": None})
    seen = server.seen[0]
    assert seen.target == "/p?z=1&q=a%26b&n=2&list=x&list=true"
    assert (seen.headers["x-n"], seen.headers["x-b"], seen.headers["user-agent"]) == ("5", "true", "me")
    assert "x-none" not in seen.headers
    assert server.seen[1].target == "/p"


@pytest.mark.parametrize(
    ("status", "retryable"),
    [(400, False), (401, False), (404, False), (408, True), (409, False), (422, False), (425, True), (429, True),
     (500, True), (502, True), (503, True)],
)  # fmt: skip
async def test_a_bad_status_is_a_failure(services: Services, status: int, retryable: bool) -> None:
    async with http(lambda r: answer(status, b'{"why": "so"}', content_type="application/json")) as server:
        error = await _error(services, url=f"{server.url}/p?token=secret")
        assert (error.code, error.retryable, error.retry_at_ms) == ("http_status", retryable, None)
        assert error.message == f'GET {server.url}/p answered {status} Status: {{"why":"so"}}'
        output = await _run(services, url=server.url, fail_on_status=False)
    assert (output["status"], output["body"]) == (status, {"why": "so"})


@pytest.mark.parametrize(
    ("status", "value", "after_ms"),
    [
        (429, "7", 7_000),
        (503, " 120 ", 120_000),
        (503, "0", 0),
        (503, "Tue, 14 Nov 2023 22:14:20 GMT", 60_000),
        (503, "Tue, 14 Nov 2023 22:00:00 GMT", 0),
        (503, "999999999999", 86_400_000),
        (503, "soon", None),
        (503, "-5", None),
        (404, "7", None),
    ],
)
async def test_retry_after(services: Services, status: int, value: str, after_ms: int | None) -> None:
    async with http(lambda r: answer(status, retry_after=value)) as server:
        error = await _error(services, url=server.url)
    if after_ms is None:
        assert error.retry_at_ms is None
    else:
        assert error.retry_at_ms is not None
        assert 0 <= error.retry_at_ms - NOW_MS - after_ms < 60_000  # counted from the answer, a moment later


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"url": ""},
        {"url": {"a": 1}},
        {"method": "BREW"},
        {"method": "GET\r\nX: y"},
        {"headers": "x"},
        {"headers": {"X-A": "a\r\nX-Evil: 1"}},
        {"headers": {"X-A": "a\nb"}},
        {"headers": {"X A": "1"}},
        {"headers": {"": "1"}},
        {"headers": {"X": ["1"]}},
        {"headers": {"X": "\u20ac"}},
        {"headers": {"Content-Length": "3"}},
        {"headers": {"Transfer-Encoding": "chunked"}},
        {"headers": {"Host": "other"}},
        {"query": "a=1"},
        {"timeout_s": "soon"},
        {"timeout_s": -1},
    ],
)
async def test_params_that_are_of_no_use_are_refused_before_anything_is_sent(
    services: Services, params: dict[str, Any]
) -> None:
    async with http(lambda r: answer()) as server:
        given = params if params.get("url") is not None or params == {} else {"url": server.url} | params
        error = await _error(services, **given)
    assert (error.code, error.retryable, server.seen) == ("params_invalid", False, [])


async def test_private_addresses_are_refused_by_default() -> None:
    services = Services(sandbox=cast(Any, None), http=GuardedClient())
    try:
        async with http(lambda r: answer()) as server:
            error = await _error(services, url=server.url)
        assert (error.code, error.retryable, server.seen) == ("address_refused", False, [])
        assert "WEFT_ALLOW_PRIVATE" in error.hint
    finally:
        await services.http.close()


async def test_a_head_request_has_no_body(services: Services) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\nconnection: close\r\n\r\n"
    async with http(lambda r: head) as server:
        output = await _run(services, url=server.url, method="HEAD")
    assert (output["body"], output["headers"]["content-length"]) == (None, "99999999")
