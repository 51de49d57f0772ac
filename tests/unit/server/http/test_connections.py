"""Connections without a socket: a transport that notes what is done to it, and time that the test makes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from uvicorn.config import Config

from server.http.connections import LIVE, Connection, Connections, _network
from server.http.security import Proxies
from server.settings import Limits

LIMITS = Limits(head_bytes=1000, connections=3, waiting_per_address=2, requests=3)
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class Transport(asyncio.Transport):
    def __init__(self, address: str = "127.0.0.1") -> None:
        super().__init__({"peername": (address, 5), "sockname": ("127.0.0.1", 8765)})
        self.written = b""
        self.ended = ""
        self.reading = True

    def write(self, data: Any) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        self.ended = self.ended or "closed"

    def abort(self) -> None:
        self.ended = self.ended or "aborted"

    def is_closing(self) -> bool:
        return bool(self.ended)

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


class World:
    """`answer` lets the requests that wait in the application go on."""

    def __init__(self) -> None:
        self.limits = LIMITS
        self.answer = asyncio.Event()
        self.live = False
        self.state = Connections(LIMITS)
        self.timers: list[tuple[float, Callable[[], None]]] = []

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.live:
            scope[LIVE] = True
        await self.answer.wait()
        await PlainTextResponse("done")(scope, receive, send)

    def connect(self, address: str = "127.0.0.1") -> tuple[Connection, Transport]:
        config = Config(
            self.app,
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            interface="asgi3",
            proxy_headers=False,
        )
        config.load()
        transport = Transport(address)
        connection = Connection(config, self.state, {}, asyncio.get_running_loop())
        connection.loop = _Loop(connection.loop, self.timers)  # type: ignore[assignment]
        connection.connection_made(transport)
        return connection, transport

    def time_passes(self, seconds: float) -> None:
        for timer in [timer for timer in self.timers if timer[0] <= seconds]:
            self.timers.remove(timer)
            timer[1]()


class _Loop:
    """The real loop, but for timers."""

    def __init__(self, loop: asyncio.AbstractEventLoop, timers: list[tuple[float, Callable[[], None]]]) -> None:
        self._timers = timers
        self.create_task = loop.create_task

    def call_later(self, seconds: float, call: Callable[[], None]) -> _Timer:
        timer = (seconds, call)
        self._timers.append(timer)
        return _Timer(lambda: self._timers.remove(timer) if timer in self._timers else None)


class _Timer:
    def __init__(self, cancel: Callable[[], None]) -> None:
        self.cancel = cancel


@pytest.fixture
async def world() -> World:
    return World()


async def settled(world: World) -> None:
    while world.state.tasks:
        await asyncio.sleep(0)


async def test_who_sends_nothing_is_closed(world: World) -> None:
    _, transport = world.connect()
    world.time_passes(9.9)
    assert transport.ended == ""
    world.time_passes(10)
    assert transport.ended == "aborted" and transport.written == b""


async def test_half_a_head_gets_an_answer_and_is_closed(world: World) -> None:
    connection, transport = world.connect()
    for byte in REQUEST[:-1]:
        connection.data_received(bytes([byte]))
    world.time_passes(10)
    assert transport.ended == "closed" and transport.written.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b'"code":"headers_timeout"' in transport.written


async def test_a_request_has_no_deadline_and_the_next_one_has(world: World) -> None:
    connection, transport = world.connect()
    connection.data_received(REQUEST)
    world.time_passes(10)
    assert transport.ended == ""
    world.answer.set()
    await settled(world)
    assert transport.written.endswith(b"done") and transport.ended == ""
    connection.data_received(b"\r\n")  # keeps uvicorn's own clock from running out
    world.time_passes(10)
    assert transport.ended == "aborted"


@pytest.mark.parametrize(
    "head",
    [b"GET / HTTP/1.1\r\nX: ", b"GET /", b"\r\n\r\n", b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: "],
    ids=["header", "address", "empty lines", "trailer"],
)
async def test_what_never_becomes_a_request_is_cut_by_its_bytes(world: World, head: bytes) -> None:
    connection, transport = world.connect()
    connection.data_received(head)
    filler = b"\r\n" * 50 if head.startswith(b"\r") else b"a" * 100
    sent = 0
    while not transport.ended:
        connection.data_received(filler)
        sent += len(filler)
    assert 900 <= sent <= 1100
    assert b"chunked" in head or transport.written.startswith(b"HTTP/1.1 431 ")
    world.answer.set()
    await settled(world)


async def test_bodies_in_small_chunks_are_no_heads(world: World) -> None:
    connection, transport = world.connect()
    connection.data_received(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(1000):
        connection.data_received(b"1\r\na\r\n")
    connection.data_received(b"0\r\n\r\n")
    assert transport.ended == "" and connection.cycle.body == b"a" * 1000
    world.answer.set()
    await settled(world)


async def test_many_requests_in_one_read_are_no_head(world: World) -> None:
    connection, transport = world.connect()
    connection.data_received(REQUEST * 100)
    world.answer.set()
    await settled(world)
    assert transport.written.count(b"HTTP/1.1 200 OK") == 100 and transport.ended == ""


async def test_room_is_made_by_closing_the_one_that_waits_longest(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    busy, busy_transport = world.connect()
    busy.data_received(REQUEST)
    _, first = world.connect()
    _, second = world.connect()
    with caplog.at_level(logging.WARNING, "weft.server"):
        _, third = world.connect()
        _, fourth = world.connect()
    assert [t.ended for t in (busy_transport, first, second, third, fourth)] == ["", "aborted", "aborted", "", ""]
    assert len(caplog.messages) == 1 and "3 connections are open" in caplog.messages[0]  # once a minute
    world.answer.set()
    await settled(world)


async def test_only_when_all_are_busy_the_new_one_is_closed(world: World) -> None:
    for _ in range(3):
        connection, _ = world.connect()
        connection.data_received(REQUEST)
    _, transport = world.connect()
    assert transport.ended == "aborted" and len(world.state.connections) == 3
    world.answer.set()
    await settled(world)


async def test_one_address_may_wait_so_often(world: World) -> None:
    kept = [world.connect("192.0.2.7")[1] for _ in range(2)]
    _, refused = world.connect("192.0.2.7")
    _, other = world.connect("192.0.2.8")
    assert [t.ended for t in (*kept, refused, other)] == ["", "", "aborted", ""]


async def test_requests_under_way_do_not_count_for_their_address(world: World) -> None:
    busy = [world.connect("192.0.2.7") for _ in range(2)]
    for connection, _ in busy:
        connection.data_received(REQUEST)
    _, transport = world.connect("192.0.2.7")
    assert transport.ended == ""
    world.answer.set()
    await settled(world)
    for connection, _ in busy:
        connection.connection_lost(None)
    assert world.state._waiting_of == {"192.0.2.7": 1}


async def test_too_many_requests_get_503(world: World) -> None:
    world.state.requests_max = 1
    first, second = world.connect(), world.connect()
    for connection, _ in (first, second):
        connection.data_received(REQUEST)
    for _ in range(20):
        await asyncio.sleep(0)
    assert first[1].written == b"" and second[1].written.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 5" in second[1].written.lower()
    world.answer.set()
    await settled(world)


async def test_a_client_that_ends_its_side_gets_its_answer(world: World) -> None:
    connection, transport = world.connect()
    connection.data_received(REQUEST)
    assert connection.eof_received() is True
    world.answer.set()
    await settled(world)
    assert transport.written.endswith(b"done") and transport.ended == "closed"


@pytest.mark.parametrize("sent", [b"", REQUEST[:-2], b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n1"])
async def test_without_a_whole_request_its_end_is_the_end(world: World, sent: bytes) -> None:
    connection, _ = world.connect()
    connection.data_received(sent)
    assert not connection.eof_received()
    world.answer.set()
    await settled(world)


async def test_an_event_stream_ends_with_its_reader(world: World) -> None:
    world.live = True
    connection, _ = world.connect()
    connection.data_received(REQUEST)
    await asyncio.sleep(0)
    assert not connection.eof_received()
    world.answer.set()
    await settled(world)


@pytest.mark.parametrize(
    ("descriptors", "connections"), [(None, 4000), (1_048_576, 4000), (4096, 3584), (1024, 512), (256, 128), (64, 32)]
)
def test_connections_stay_below_the_descriptors(descriptors: int | None, connections: int) -> None:
    state = Connections(Limits(), descriptors)
    assert state.connections_max == connections and state.requests_max < connections


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("", ""),
        ("127.0.0.1", ""),
        ("::1", ""),
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("a:b", "a:b"),
    ],
)
def test_networks(address: str, network: str) -> None:
    assert _network(address) == network


async def test_a_proxy_that_is_named_is_not_one_client() -> None:
    world = World()
    world.state = Connections(LIMITS, proxies=Proxies(["192.0.2.1"]))
    assert world.connect("192.0.2.1")[0].network == ""
    assert world.connect("192.0.2.2")[0].network == "192.0.2.2"
