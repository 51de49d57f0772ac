"""HTTP and SSE against real server processes: ours (`server`), and the least that Starlette and uvicorn can do
(`bare_server`). The clients are raw sockets of this process, so that they cost little beside what they measure.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from benchmarks import workloads
from benchmarks.measure import Figure, folder, on_loop

CONNECTIONS, POSTS_S, READERS, BRANCHES = 64, 3.0, 100, 665  # each branch: three events
ROOT = Path(__file__).parents[1]


class Process:
    """A server process; `url` is known once it takes requests."""

    def __init__(self, *arguments: str, environ: dict[str, str]) -> None:
        own = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=ROOT,
            env={**own, **environ},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert "http://" in line, f"the server did not start: {line!r}"
        self.port = int(line.partition("http://")[2].strip().rstrip("/").rpartition(":")[2])

    def cpu_s(self) -> float:
        """CPU seconds of all its threads so far."""
        tasks = Path(f"/proc/{self._process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(20)
        if self._process.stdout is not None:
            self._process.stdout.close()


@contextmanager
def both_servers() -> Iterator[tuple[Process, Process]]:
    """(ours, bare), one after the other in use, both up."""
    with folder() as path:
        environ = {"WEFT_DB": str(path / "weft.db"), "WEFT_PORT": "0", "WEFT_TOKEN": "off"}
        ours = Process("server", "serve", environ=environ)
        bare = Process("benchmarks.bare_server", environ={})
        try:
            yield ours, bare
        finally:
            ours.stop()
            bare.stop()


def posting(repeat: int) -> Iterator[Figure]:
    """Durable runs accepted a second, which the same process also drives to their end meanwhile."""
    document = workloads.document("posted", {"end": {"type": "set", "name": "End", "params": {"value": 1}}}, [])
    document["edges"] = [{"source": "start", "target": "end"}]
    body = orjson.dumps({"document": document, "input": {}})
    body = orjson.dumps({"document": {**document, "description": "x" * (1000 - len(body))}, "input": {}})
    with both_servers() as (ours, bare):
        rates = [
            on_loop(partial(_post, server.port, path, body)) for server, path in ((ours, "/api/runs"), (bare, "/"))
        ]
    name = f"POST /api/runs, {len(body):,} B, {CONNECTIONS} connections"
    note = f"{rates[1] / rates[0]:.1f} x fewer than a bare echo"
    yield Figure(name, "1/s", rates[0], rates[1], 3_000, 6_000, True, True, note)


async def _post(port: int, path: str, body: bytes) -> float:
    """Answers per second over `CONNECTIONS` kept connections."""
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
    request = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
    until = 0.0
    answers = 0

    async def one() -> None:
        nonlocal answers
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < until:
            writer.write(request)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer[9:12] in (b"200", b"202"), answer
            size = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(size)
            answers += 1
        writer.close()

    until = time.perf_counter() + 0.5  # connections, caches, the plan
    await asyncio.gather(*(one() for _ in range(CONNECTIONS)))
    answers = 0
    began = time.perf_counter()
    until = began + POSTS_S
    await asyncio.gather(*(one() for _ in range(CONNECTIONS)))
    return answers / (time.perf_counter() - began)


def streaming(repeat: int) -> Iterator[Figure]:
    """CPU of the server per event and client, 100 clients of one run: its journal read again, and live while it runs.
    The floor sends the same bytes as they come."""
    with both_servers() as (ours, bare):
        run = on_loop(lambda: _run(ours.port))
        text = on_loop(lambda: _read(ours.port, f"/api/runs/{run}/events"))
        events = text.count(b"\nid: ")
        on_loop(lambda: _load(bare.port, text))
        costs = [
            min(_stream(server, path) / events / READERS for _ in range(repeat))
            for server, path in ((ours, f"/api/runs/{run}/events"), (bare, "/stream"))
        ]
        name = f"SSE, {events:,} events again, {READERS} clients"
        yield Figure(name, "us", costs[0] * 1e6, costs[1] * 1e6, 3, 1.5, note="CPU per event and client")


def _stream(server: Process, path: str) -> float:
    """CPU seconds the server spends on `READERS` clients that read `path` to its end."""

    async def main() -> None:
        await asyncio.gather(*(_read(server.port, path) for _ in range(READERS)))

    before = server.cpu_s()
    on_loop(main)
    return server.cpu_s() - before


async def _run(port: int) -> str:
    """A finished run with two thousand events; its id."""
    params = {"mode": "count", "count": BRANCHES}
    step = {"type": "set", "name": "Step", "parent": "fan", "params": {"value": {"index": "<parallel.index>"}}}
    blocks: dict[str, Any] = {"fan": {"type": "parallel", "name": "Fan", "params": params}, "step": step}
    document = workloads.document("streamed", blocks, [("start", "fan"), ("fan", "body", "step")])
    answer = await _call(port, "POST", "/api/runs?wait=20", orjson.dumps({"document": document}))
    return str(orjson.loads(answer)["run"])


async def _load(port: int, text: bytes) -> None:
    await _call(port, "PUT", "/stream", text)


async def _read(port: int, path: str) -> bytes:
    return await _call(port, "GET", path, b"")


async def _call(port: int, method: str, path: str, body: bytes) -> bytes:
    """One request on its own connection; the body of the answer, chunks joined."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n"
    kind = "content-type: application/json\r\n" if body else ""
    writer.write(f"{head}{kind}content-length: {len(body)}\r\n\r\n".encode() + body)
    answer = await reader.read()
    writer.close()
    head_bytes, _, rest = answer.partition(b"\r\n\r\n")
    assert head_bytes[9:12] in (b"200", b"202"), head_bytes
    return _unchunk(rest) if b"transfer-encoding: chunked" in head_bytes.lower() else rest


def _unchunk(data: bytes) -> bytes:
    parts: list[bytes] = []
    while data:
        size_text, _, data = data.partition(b"\r\n")
        size = int(size_text, 16)
        if not size:
            break
        parts.append(data[:size])
        data = data[size + 2 :]
    return b"".join(parts)


BENCHMARKS: dict[str, Callable[[int], Iterator[Figure]]] = {"post": posting, "sse": streaming}
