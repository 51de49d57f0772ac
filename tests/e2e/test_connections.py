"""What a client can do before it has sent a request, and without any credential."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest

from tests.e2e.edge import connect, head, read_to_end, serving, with_descriptors
from tests.support.server import ROOT, SyncServerProcess
from tests.support.until import until

MIB = 1 << 20


@pytest.mark.parametrize("line", ["GET /healthz HTTP/1.1\r\nX-A: ", "GET /"], ids=["header", "address"])
async def test_a_head_without_an_end_is_cut(server: SyncServerProcess, line: str) -> None:
    """The rest of 32 MiB, which took seconds of computing, is not read. What was sent stays in the kernel's buffers."""

    def send() -> int:
        with connect(server) as connection:
            connection.sendall(line.encode())
            sent = 0
            try:
                while sent < 32 * MIB:
                    connection.sendall(b"a" * (MIB // 4))
                    sent += MIB // 4
            except ConnectionError:
                pass
            return sent

    assert await asyncio.to_thread(send) < 32 * MIB


async def test_a_trailer_without_an_end_is_cut(server: SyncServerProcess) -> None:
    def send() -> bool:
        with connect(server) as connection:
            connection.sendall(head(server, "POST /demo/echo HTTP/1.1", "Transfer-Encoding: chunked") + b"\r\n")
            connection.sendall(b"2\r\n{}\r\n0\r\nX-A: ")
            try:
                for _ in range(128):
                    connection.sendall(b"a" * (MIB // 4))
            except ConnectionError:
                return True
            return False

    assert await asyncio.to_thread(send)


async def test_unfinished_requests_keep_no_other_client_out(tmp_path: Path) -> None:
    """Those with half a head, and those with nothing; at the same time, because both last 10 seconds."""
    async with asyncio.TaskGroup() as both:
        for name, begun in (("half", True), ("nothing", False)):
            (tmp_path / name).mkdir()
            both.create_task(_leave_unfinished(tmp_path / name, begun), name=name)


async def _leave_unfinished(folder: Path, begun: bool) -> None:
    """300 connections against 256 descriptors, and none is closed by its client: others are answered all the time, and
    after 10 seconds (here at most 60) the server has closed all 300."""
    async with serving(folder, with_descriptors(256)) as server:
        with ExitStack() as open_connections:
            slow = [open_connections.enter_context(connect(server)) for _ in range(300)]
            for connection in slow if begun else ():
                with suppress(ConnectionError):  # closed to make room for others
                    connection.sendall(head(server))
            async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
                for _ in range(10):
                    assert (await client.get("/healthz", headers={"connection": "close"})).status_code == 200
            closed = await asyncio.gather(*(asyncio.to_thread(read_to_end, connection) for connection in slow))
    assert all(answer == b"" or answer.startswith(b"HTTP/1.1 408 ") for answer in closed)


async def test_the_limit_of_open_files_is_raised(tmp_path: Path) -> None:
    """A soft limit of 128 below a hard one of 1,024: 300 connections fit."""
    low = ("sh", "-c", 'ulimit -Sn 128; ulimit -Hn 1024; exec "$@"', "sh")
    async with serving(tmp_path, low) as server:
        limits = Path(f"/proc/{server.pid}/limits").read_text()
        (line,) = (line for line in limits.splitlines() if line.startswith("Max open files"))
        assert line.split()[3:5] == ["1024", "1024"]
        with ExitStack() as open_connections:
            slow = [open_connections.enter_context(connect(server)) for _ in range(300)]
            async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
                assert (await client.get("/healthz")).status_code == 200
            assert all(_is_open(connection) for connection in slow)


def _is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return bool(connection.recv(1))
    except BlockingIOError:
        return True


async def test_used_up_descriptors_are_reported(tmp_path: Path) -> None:
    """Nothing was in the log. Descriptors are used up here by taking the limit away from under the server."""
    import resource

    async with serving(tmp_path) as server:
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (4, 4))
        await until(lambda: "no file descriptors are left" in (tmp_path / "log").read_text())
        await asyncio.sleep(2)
        assert (tmp_path / "log").read_text().count("no file descriptors are left") == 1


def test_what_anyio_needs_is_imported_before_descriptors_are_used_up() -> None:
    code = "import asyncio, sys; from server.start import warm_up; asyncio.run(warm_up()); "
    code += "assert 'anyio._backends._asyncio' in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)


async def test_a_websocket_probe_gets_an_answer_and_no_advice(server: SyncServerProcess) -> None:
    def probe() -> bytes:
        upgrade = ("Connection: Upgrade, close", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
        with connect(server) as connection:
            connection.sendall(head(server, "GET /healthz HTTP/1.1", *upgrade, "Sec-WebSocket-Key: AAAA") + b"\r\n")
            return read_to_end(connection)

    assert (await asyncio.to_thread(probe)).startswith(b"HTTP/1.1 200 OK")
    assert "pip install" not in (server.folder / "log").read_text()


async def test_a_client_that_ends_its_side_gets_its_answer(server: SyncServerProcess) -> None:
    document = (
        b'{"document": {"format": "weft/1", "name": "slow", "blocks": {"start": {"type": "start"}, '
        b'"wait": {"type": "wait", "params": {"seconds": 1}}}, "edges": [{"source": "start", "target": "wait"}]}}'
    )

    def ask(request: bytes) -> bytes:
        with connect(server) as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            return read_to_end(connection)

    assert (await asyncio.to_thread(ask, head(server) + b"\r\n")).startswith(b"HTTP/1.1 200 OK")
    length, media = f"Content-Length: {len(document)}", "Content-Type: application/json"
    request = head(server, "POST /api/runs?wait=60 HTTP/1.1", length, media) + b"\r\n" + document
    answer = await asyncio.to_thread(ask, request)
    assert answer.startswith(b"HTTP/1.1 200 OK") and b'"status":"succeeded"' in answer


async def test_a_stop_reports_no_tasks_where_there_are_none(tmp_path: Path) -> None:
    """A client that does not take its answer, some megabytes, kept the server until its grace was over."""
    blocks = {
        "start": {"type": "start"},
        "text": {"type": "set", "params": {"value": "x" * 900_000}},
        "texts": {"type": "set", "params": {"value": ["<text>"] * 8}},
    }
    edges = [{"source": "start", "target": "text"}, {"source": "text", "target": "texts"}]
    document = {"format": "weft/1", "name": "large", "blocks": blocks, "edges": edges}
    async with serving(tmp_path) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            run = (await client.post("/api/runs?wait=60", json={"document": document})).json()["run"]
        with socket.socket() as stalled:
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stalled.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
            stalled.sendall(head(server, f"GET /api/runs/{run} HTTP/1.1") + b"\r\n")
            assert await asyncio.to_thread(stalled.recv, 12) == b"HTTP/1.1 200"
            assert await server.stop(60) == 0
        assert "Cancel 0 running" not in (tmp_path / "log").read_text()
