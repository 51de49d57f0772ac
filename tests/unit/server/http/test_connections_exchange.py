"""An answer that is sent at once has the bytes of one that is sent in messages, in one write. A body that has arrived
is taken without waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope
from uvicorn.config import Config

from executor.errors import LimitExceeded
from server.http.connections import JOINED_BYTES_MAX, Connection, Connections
from server.http.request import EXCHANGE, read_bytes
from server.http.response import Json
from server.http.security import Guard
from server.settings import Limits, Settings

GET = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8765\r\n\r\n"
LIMITS = Limits(request_bytes=100)


class Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 5), "sockname": ("127.0.0.1", 8765)})
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


async def exchanged(handle: Callable[[Request], Any], *sent: bytes, at_once: bool = True) -> Transport:
    """Return the transport of a connection that has received `sent` and answered what `handle` returns."""

    async def app(scope: Scope, receive: Receive, send: Any) -> None:
        if not at_once:
            del scope[EXCHANGE]
        await send.send(await handle(Request(scope, receive)), receive)

    config = Config(Guard(app, Settings(port=8765)), http=Connection, ws="none", lifespan="off", log_config=None)
    config.load()
    state = Connections(LIMITS)
    state.default_headers = [(b"date", b"now")]
    transport, connection = Transport(), Connection(config, state, {}, asyncio.get_running_loop())
    connection.connection_made(transport)
    for data in sent:
        connection.data_received(data)
        await asyncio.sleep(0)
    await asyncio.gather(*state.tasks)
    connection.connection_lost(None)
    return transport


def with_cookies() -> Response:
    response = PlainTextResponse("x")
    response.set_cookie("a", "1")
    response.set_cookie("b", "2")
    return response


@pytest.mark.parametrize(
    ("make", "writes"),
    [
        (lambda: Json({"a": 1}), 1),
        (lambda: Json([1], 202, {"Location": "/x"}), 1),
        (with_cookies, 1),
        (lambda: PlainTextResponse("", headers={"X-Content-Type-Options": "other"}), 1),
        (lambda: Response(memoryview(b"abc"), media_type="text/html"), 1),
        (lambda: Response(b"x" * JOINED_BYTES_MAX), 1),
        (lambda: Response(b"x" * (JOINED_BYTES_MAX + 1)), 2),
        (lambda: Response(status_code=204), 2),
        (lambda: Response("x", headers={"Connection": "close"}), 2),
        (lambda: StreamingResponse(iter([b"a", b"b"])), 4),
    ],
)
@pytest.mark.parametrize("request_head", [GET, GET.replace(b"GET", b"HEAD"), GET.replace(b"1.1", b"1.0")])
async def test_an_answer_at_once_is_the_same(make: Callable[[], Response], writes: int, request_head: bytes) -> None:
    async def handle(_: Request) -> Response:
        return make()

    whole = await exchanged(handle, request_head)
    parts = await exchanged(handle, request_head, at_once=False)
    assert b"".join(whole.writes) == b"".join(parts.writes) and whole.closed is parts.closed
    assert whole.writes[0].startswith(b"HTTP/1.1 2")
    if request_head == GET:
        assert len([data for data in whole.writes if data]) <= writes
        assert (len(whole.writes) == 1) is (writes == 1)


@pytest.mark.parametrize("header", [("x-a", "b\r\nx-c: d"), ("x-a", "b\0"), ("x a", "b"), ("x-a:", "b")])
async def test_a_header_that_would_break_the_answer_is_refused(header: tuple[str, str]) -> None:
    async def handle(_: Request) -> Response:
        return PlainTextResponse("x", headers=dict([header]))

    whole = await exchanged(handle, GET)
    assert whole.writes == (await exchanged(handle, GET, at_once=False)).writes
    assert not any(b"x-c" in data or b"x-a" in data or b"x a" in data for data in whole.writes)


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_body_is_read_whole_in_parts_and_within_its_bound(at_once: bool) -> None:
    found: list[bytes] = []

    async def handle(request: Request) -> Response:
        assert (EXCHANGE in request.scope) is at_once
        try:
            found.append(await read_bytes(request, LIMITS))
        except LimitExceeded:
            found.append(b"too large")
        return PlainTextResponse("x")

    head = b"POST / HTTP/1.1\r\nHost: 127.0.0.1:8765\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    await exchanged(handle, head % 4 + b"[12]", at_once=at_once)
    await exchanged(handle, head % 4, b"[1", b"2]", at_once=at_once)
    await exchanged(handle, head % 0, at_once=at_once)
    chunked = head.replace(b"Content-Length: %d", b"Transfer-Encoding: chunked")
    await exchanged(handle, chunked + b"65\r\n" + b"x" * 101 + b"\r\n0\r\n\r\n", at_once=at_once)
    assert found == [b"[12]", b"[12]", b"", b"too large"]


@pytest.mark.parametrize("pieces", [1, 2])
async def test_a_client_that_asks_before_it_sends_is_told_to_go_on(pieces: int) -> None:
    async def handle(request: Request) -> Response:
        return Response(await read_bytes(request, LIMITS))

    head = b"POST / HTTP/1.1\r\nHost: 127.0.0.1:8765\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
    sent = [head + b"Expect: 100-continue\r\n\r\n", b"[]"]
    first, *others = (await exchanged(handle, *(sent if pieces == 2 else [b"".join(sent)]))).writes
    assert first == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert b"".join(others).endswith(b"\r\n\r\n[]")


async def test_what_is_sent_when_the_client_has_left_is_dropped() -> None:
    async def handle(request: Request) -> Response:
        request.scope[EXCHANGE]._cycle.disconnected = True
        return PlainTextResponse("x")

    assert (await exchanged(handle, GET)).writes == []
