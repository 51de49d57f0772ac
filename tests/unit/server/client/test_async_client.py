"""The client against a server that is scripted byte by byte: what it sends, and what it does when connections break."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

import weft
from server.client import ApiError, AsyncClient, ServerUnreachable, exchange

Reply = bytes
EVENT_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


class Script:
    """A server that answers the n-th connection with the n-th reply and remembers the requests."""

    def __init__(self, replies: list[Reply | Callable[[str], Reply]]) -> None:
        self.replies = replies
        self.requests: list[str] = []
        self.url = ""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next((int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:")), 0)
        body = (await reader.readexactly(length)).decode()
        self.requests.append(head + body)
        reply = self.replies.pop(0)
        writer.write(reply(head) if callable(reply) else reply)
        writer.close()


@asynccontextmanager
async def scripted(*replies: Reply | Callable[[str], Reply]) -> AsyncIterator[Script]:
    script = Script(list(replies))
    server = await asyncio.start_server(script, "127.0.0.1", 0)
    async with server:
        script.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield script


@asynccontextmanager
async def nowhere() -> AsyncIterator[str]:
    """An address at which no process listens or can start to listen meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


def answer(value: object, status: str = "200 OK") -> Reply:
    body = orjson.dumps(value)
    lines = (
        f"HTTP/1.1 {status}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def frame(seq: int, type: str = "node.succeeded") -> bytes:
    event = {"run": "r1", "seq": seq, "at_ms": 1000 + seq, "type": type, "node": "a", "block": "a", "path": ""}
    event |= {"key": "a", "attempt": 1, "data": {}}
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, type.encode(), orjson.dumps(event))


@pytest.fixture(autouse=True)
def quick_reconnect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "PAUSE_FIRST_S", 0.001)


async def test_start_sends_name_input_and_token() -> None:
    async with scripted(answer({"run": "r1"}, "202 Accepted")) as script, AsyncClient(script.url, "secret") as weft:
        assert (await weft.start("a/b", {"x": 1}, idempotency_key="k"))["run"] == "r1"
    head, _, body = script.requests[0].partition("\r\n\r\n")
    assert head.startswith("POST /api/workflows/a%2Fb/runs ")
    assert "authorization: Bearer secret" in head.replace("Authorization", "authorization")
    assert "idempotency-key: k" in head.lower()
    assert orjson.loads(body) == {"input": {"x": 1}}


async def test_a_document_is_sent_whole() -> None:
    async with scripted(answer({"run": "r1"})) as script, AsyncClient(script.url) as weft:
        await weft.start({"blocks": {}}, trigger="t")
    head, _, body = script.requests[0].partition("\r\n\r\n")
    assert head.startswith("POST /api/runs ")
    assert orjson.loads(body) == {"document": {"blocks": {}}, "trigger": "t"}


@weft.durable
async def order(order: str) -> str:
    return order


async def test_a_workflow_in_python_is_sent_as_its_document() -> None:
    async with scripted(answer({"run": "r1"}), answer({"version": 1})) as script, AsyncClient(script.url) as client:
        await client.start(order, {"order": "7"})
        await client.deploy(order)
    for request in script.requests:
        assert orjson.loads(request.partition("\r\n\r\n")[2])["document"] == order.document()


async def test_a_problem_becomes_an_error_with_code_and_hint() -> None:
    problem = {"code": "workflow_not_found", "detail": "There is no workflow 'x'.", "hint": "Deploy it first."}
    async with scripted(answer(problem, "404 Not Found")) as script, AsyncClient(script.url) as weft:
        with pytest.raises(ApiError) as raised:
            await weft.start("x")
    assert (raised.value.status, raised.value.code, raised.value.hint) == (
        404,
        "workflow_not_found",
        "Deploy it first.",
    )
    assert raised.value.message == "There is no workflow 'x'."


async def test_something_else_at_the_address_is_not_weft() -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nhtml"
    async with scripted(page) as script, AsyncClient(script.url) as weft:
        with pytest.raises(ServerUnreachable, match="not a weft server"):
            await weft.runs()


async def test_nothing_at_the_address_says_how_to_start_it() -> None:
    async with nowhere() as url, AsyncClient(url) as weft:
        with pytest.raises(ServerUnreachable) as raised:
            await weft.runs()
    assert "weft serve" in raised.value.hint


async def test_follow_takes_up_a_lost_stream_where_it_was() -> None:
    delta = b'event: node.delta\ndata: {"type": "node.delta", "text": "x"}\n\n'
    cut = frame(3)[:-20]
    first = EVENT_STREAM + b"retry: 2000\n\n" + frame(1, "run.started") + delta + frame(2) + cut
    second = EVENT_STREAM + frame(2) + frame(3) + frame(4, "run.finished")
    async with (
        scripted(first, second) as script,
        AsyncClient(script.url) as weft,
    ):
        seen = [(event.seq, event.type) async for event in weft.follow("r1")]
    assert seen == [(1, "run.started"), (2, "node.succeeded"), (3, "node.succeeded"), (4, "run.finished")]
    assert "last-event-id: 0" in script.requests[0].lower()
    assert "last-event-id: 2" in script.requests[1].lower()


async def test_follow_of_an_ended_run_ends() -> None:
    replies = (EVENT_STREAM, b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
    async with scripted(*replies) as script, AsyncClient(script.url) as weft:
        assert [event async for event in weft.follow("r1", after=9)] == []
    assert script.replies == []


async def test_follow_rides_out_an_overload_but_not_a_refusal() -> None:
    busy = answer({"code": "too_many_streams"}, "503 Service Unavailable")
    refused = answer({"code": "run_not_found", "detail": "There is no run 'r1'."}, "404 Not Found")
    async with scripted(busy, refused) as script, AsyncClient(script.url) as weft:
        with pytest.raises(ApiError, match="no run"):
            await anext(weft.follow("r1"))
    assert script.replies == []


async def test_follow_gives_up_when_patience_ends() -> None:
    async with nowhere() as url, AsyncClient(url) as weft:
        with pytest.raises(ServerUnreachable):
            await anext(weft.follow("r1", patience_s=0.05))


async def test_follow_without_patience_says_that_the_stream_ended() -> None:
    async with scripted(EVENT_STREAM + frame(1)) as script, AsyncClient(script.url) as weft:
        with pytest.raises(ServerUnreachable, match="ended the stream"):
            _ = [event async for event in weft.follow("r1", patience_s=0)]


async def test_a_download_that_is_refused_leaves_the_file_that_is_there(tmp_path: Path) -> None:
    target = tmp_path / "report.csv"
    target.write_text("yesterday")
    refused = answer({"code": "file_not_found", "detail": "There is no file 'f'."}, "404 Not Found")
    async with scripted(refused) as script, AsyncClient(script.url) as weft:
        with pytest.raises(ApiError, match="no file"):
            await weft.download("f", target)
    assert target.read_text() == "yesterday"


async def test_a_download_continues_after_an_overload_and_behind_a_proxy_without_ranges(tmp_path: Path) -> None:
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nabcdef"
    busy = answer({"code": "overloaded"}, "503 Service Unavailable")
    async with scripted(busy, whole[:-2], whole) as script, AsyncClient(script.url) as weft:
        assert await weft.download("f", tmp_path / "copy") == 6
    assert (tmp_path / "copy").read_bytes() == b"abcdef"
    assert "range: bytes=4-" in script.requests[2].lower()


def full(retry_after: str) -> Reply:
    refusal = answer({"code": "queue_full", "detail": "too many"}, "429 Too Many Requests")
    return refusal.replace(b"Connection: close", f"Retry-After: {retry_after}\r\nConnection: close".encode())


async def test_a_run_that_is_refused_for_now_is_started_when_the_server_says(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("server.client.async_client.asyncio.sleep", sleep)
    async with scripted(full("7"), full("2"), answer({"run": "r"})) as script, AsyncClient(script.url) as client:
        assert (await client.start("w"))["run"] == "r"
        assert waited == [7, 2] and len(script.requests) == 3


async def test_a_call_that_must_not_be_sent_twice_is_sent_again_after_429_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def sleep(_: float) -> None:
        return None

    monkeypatch.setattr("server.client.async_client.asyncio.sleep", sleep)
    async with scripted(full("1"), answer({"status": "answered"})) as script, AsyncClient(script.url) as client:
        await client.answer("a-token", "approve")  # has no key
        assert len(script.requests) == 2
    for status in ("502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout"):
        async with scripted(answer({"code": "away"}, status)) as script, AsyncClient(script.url) as client:
            with pytest.raises(ApiError):
                await client.answer("a-token", "approve")
            assert len(script.requests) == 1, "the server may have done it"


async def test_a_client_waits_no_longer_than_its_patience() -> None:
    async with scripted(full("7"), full("7")) as script, AsyncClient(script.url, patience_s=5) as client:
        with pytest.raises(ApiError) as refused:
            await client.start("w")
        assert (refused.value.status, refused.value.code, len(script.requests)) == (429, "queue_full", 1)
