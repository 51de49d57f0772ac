"""HTTP against real server processes: ours (`server`), and the least that Starlette and uvicorn can do (`bare_server`).
The clients are raw sockets of this process, so that they cost little beside what they measure.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import orjson

from benchmarks import workloads
from benchmarks.measure import folder, on_uvloop
from benchmarks.sample import program
from benchmarks.sequence import Benchmark, Part, Parted
from benchmarks.statistics import Target

CONNECTIONS, POSTS_S, POST_BYTES = 64, 3.0, 1_000
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

    def memory_mib(self) -> float:
        lines = Path(f"/proc/{self._process.pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(20)
        if self._process.stdout is not None:
            self._process.stdout.close()


@contextmanager
def server(which: str, **more: str) -> Iterator[Process]:
    """`weft` on a fresh database, or `bare`. `more`: of the environment of weft."""
    with folder() as path:
        environ = {"WEFT_DB": str(path / "weft.db"), "WEFT_PORT": "0", "WEFT_TOKEN": "off", **more}
        arguments = ("server", "serve") if which == "weft" else ("benchmarks.bare_server",)
        process = Process(*arguments, environ=environ if which == "weft" else {})
        try:
            yield process
        finally:
            process.stop()


def starting(which: str) -> list[float]:
    """Seconds from the start of a server process, without a database, to its first answer; its CPU seconds until then,
    and its MiB, where what it shares with others counts in proportion."""
    began = time.perf_counter()
    with server(which) as process:
        _ask(process, which)
        return [time.perf_counter() - began, process.cpu_s(), process.memory_mib()]


def _ask(process: Process, which: str) -> None:
    method, path, body = ("GET", "/api/runs?limit=1", b"") if which == "weft" else ("POST", "/", b"{}")
    on_uvloop(lambda: call(process.port, method, path, body))


def posting(which: str) -> list[float]:
    """Answers per second: durable runs, which the same process also drives to their end meanwhile, or an echo; and
    microseconds of the server's CPU, of all its threads, for one of them."""
    body = posted()
    with server(which) as process:
        return on_uvloop(lambda: _post(process, "/api/runs" if which == "weft" else "/", body))


def posted() -> bytes:
    document = workloads.document("posted", {"end": {"type": "set", "name": "End", "params": {"value": 1}}}, [])
    document["edges"] = [{"source": "start", "target": "end"}]
    body = orjson.dumps({"document": document, "input": {}})
    padding = "x" * (POST_BYTES - len(body) - len(',"description":""'))
    body = orjson.dumps({"document": {**document, "description": padding}, "input": {}})
    assert len(body) == POST_BYTES
    return body


async def _post(process: Process, path: str, body: bytes) -> list[float]:
    """Over `CONNECTIONS` open connections: answers per second, and microseconds of the server's CPU for each."""
    port = process.port
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
    before_s, began = process.cpu_s(), time.perf_counter()
    until = began + POSTS_S
    await asyncio.gather(*(one() for _ in range(CONNECTIONS)))
    return [answers / (time.perf_counter() - began), (process.cpu_s() - before_s) / answers * 1e6]


async def call(port: int, method: str, path: str, body: bytes) -> bytes:
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


POSTING = f"POST /api/runs, {POST_BYTES:,} B, {CONNECTIONS} connections"
BENCHMARKS: dict[str, Sequence[Benchmark]] = {
    "start": [
        Parted(
            (
                Part("start of an empty server", "s", Target(0.6, of="value")),
                Part("CPU of a server until its first answer", "s", Target(0.3, of="value")),
                Part("memory of an empty server", "MiB", Target(90, of="value")),
            ),
            program(starting, "weft"),
            program(starting, "bare"),
            share=2,
        ),
    ],
    "post": [
        Parted(
            (
                Part(POSTING, "1/s", Target(3_000, of="value", least=True)),
                Part(f"CPU of the server, {POSTING}", "us", Target(4)),
            ),
            program(posting, "weft"),
            program(posting, "bare"),
            share=3,
        ),
    ],
}
