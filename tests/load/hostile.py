"""What stopped a server once, against a real one, while another client goes on asking: how long it waits, and what the
server needs of memory.

python -m tests.load.hostile [--seconds 10] [--only NAME ...]

One line for each attack, in turn and on one server, then one for all of them at the same time. The other client is a
process of its own, opens a connection for each request, and asks every 20 ms; what it waits includes the connection.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http.client import HTTPConnection
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from msgspec import Struct

from tests.e2e.crash.process import ServerProcess, free_port

MIB = 1 << 20
POLL_S = 0.02
SLOW = 300  # connections that send a header byte by byte
HEADER_BYTES = 128 * MIB
WIDE = b"[" + b",".join([b"[]"] * 690_000) + b"]"  # 2 MiB
WIDE_CLIENTS = 3


class Measured(Struct):
    """Of one attack: what the other client waited, and the server's memory. `failed`: requests without an answer."""

    attack: str
    requests: int
    failed: int
    median_ms: float
    p99_ms: float
    worst_ms: float
    rss_mb: float


class Target:
    """The server under attack, and for how long each attack goes on."""

    def __init__(self, server: ServerProcess, http: httpx.AsyncClient, seconds: float) -> None:
        self.server = server
        self.http = http
        self.until_s = time.monotonic() + seconds

    def going_on(self) -> bool:
        return time.monotonic() < self.until_s

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        parts = urlsplit(self.server.url)
        return await asyncio.open_connection(parts.hostname, parts.port)

    async def start(self, document: dict[str, Any]) -> str:
        answer = await self.http.post("/api/runs", json={"document": document})
        answer.raise_for_status()
        return str(answer.json()["run"])

    async def until_over(self, *runs: str) -> None:
        """Until they have ended or the time is over; then they are cancelled."""
        for run in runs:
            while self.going_on() and await self._is_open(run):
                await asyncio.sleep(0.1)
        for run in runs:
            await self.http.post(f"/api/runs/{run}/cancel", json={})
        for run in runs:
            while await self._is_open(run):
                await asyncio.sleep(0.1)

    async def _is_open(self, run: str) -> bool:
        answer = await self.http.get(
            f"/api/runs/{run}/events", params={"type": "run.finished"}, headers={"accept": "application/json"}
        )
        return bool(answer.raise_for_status().json()["count"] == 0)


async def slow_headers(target: Target) -> None:
    """300 connections, a header each, a byte a second; one that the server closes is made again."""

    async def one() -> None:
        while target.going_on():
            with suppress(OSError):
                _, writer = await target.connect()
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-A: ")
                try:
                    while target.going_on() and not writer.is_closing():
                        writer.write(b"a")
                        await writer.drain()
                        await asyncio.sleep(1)
                finally:
                    writer.transport.abort()

    await asyncio.gather(*(one() for _ in range(SLOW)))


async def big_header(target: Target) -> None:
    """A header of 128 MiB, again and again."""
    while target.going_on():
        with suppress(OSError):
            _, writer = await target.connect()
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-A: ")
            try:
                for _ in range(HEADER_BYTES // MIB):
                    writer.write(b"a" * MIB)
                    await writer.drain()
            finally:
                writer.transport.abort()
        await asyncio.sleep(0.05)


async def wide_json(target: Target) -> None:
    """2 MiB of empty lists, by three clients, to routes with and without a credential."""

    async def one() -> None:
        while target.going_on():
            for path in ("/login", "/demo/echo", "/api/runs"):
                with suppress(httpx.TransportError):  # the answer may come before the body has been sent
                    await target.http.post(path, content=WIDE, headers={"content-type": "application/json"})

    await asyncio.gather(*(one() for _ in range(WIDE_CLIENTS)))


async def recursion(target: Target) -> None:
    """A workflow that starts itself twenty times."""
    name = f"bomb-{random.randrange(10**9)}"
    blocks = {
        "start": {"type": "start"},
        "fan": {"type": "parallel", "params": {"mode": "count", "count": 20}},
        "again": {"type": "run_workflow", "parent": "fan", "params": {"workflow": name, "input": {}}},
    }
    document = {
        "format": "weft/1",
        "name": name,
        "blocks": blocks,
        "edges": [
            {"source": "start", "target": "fan"},
            {"source": "fan", "handle": "body", "target": "again"},
        ],
    }
    (await target.http.post("/api/workflows", json=document)).raise_for_status()
    answer = await target.http.post(f"/api/workflows/{name}/runs", json={})
    answer.raise_for_status()
    await target.until_over(answer.json()["run"])


async def references(target: Target) -> None:
    """3,000 references to a text of 1 MB, as a value."""
    blocks = {
        "start": {"type": "start"},
        "text": {"type": "function", "params": {"code": "return 'x'.repeat(1000000)"}},
        "many": {"type": "set", "params": {"value": ["<text>"] * 3000}},
    }
    while target.going_on():
        await target.until_over(await target.start(_chain("references", blocks)))


async def large_loop(target: Target) -> None:
    """A value of 15 MB in each of 1,000 iterations."""
    blocks = {
        "start": {"type": "start"},
        "text": {"type": "function", "params": {"code": "return 'x'.repeat(1000000)"}},
        "again": {"type": "loop", "params": {"mode": "for", "count": 1000, "max": 1000}},
        "many": {"type": "set", "parent": "again", "params": {"value": ["<text>"] * 15}},
    }
    document = _chain("large", {id: block for id, block in blocks.items() if id != "many"})
    document["blocks"] = blocks
    document["edges"].append({"source": "again", "handle": "body", "target": "many"})
    await target.until_over(await target.start(document))


async def endless_code(target: Target) -> None:
    """Eight programs without an end, in one run."""
    blocks = {
        "start": {"type": "start"},
        "fan": {"type": "parallel", "params": {"mode": "count", "count": 8}},
        "code": {"type": "function", "parent": "fan", "params": {"code": "for (;;) {}", "timeout_s": 8}},
    }
    edges = [{"source": "start", "target": "fan"}, {"source": "fan", "handle": "body", "target": "code"}]
    while target.going_on():
        await target.until_over(
            await target.start({"format": "weft/1", "name": "endless", "blocks": blocks, "edges": edges})
        )


def _chain(name: str, blocks: dict[str, Any]) -> dict[str, Any]:
    ids = list(blocks)
    edges = [{"source": a, "target": b} for a, b in pairwise(ids)]
    return {"format": "weft/1", "name": name, "blocks": blocks, "edges": edges}


Attack = Callable[[Target], Awaitable[None]]
ATTACKS: dict[str, Attack] = {
    "300 slow headers": slow_headers,
    "128 MiB header": big_header,
    "wide JSON": wide_json,
    "20-fold recursion": recursion,
    "3,000 references to 1 MB": references,
    "15 MB x 1,000 loop": large_loop,
    "8 endless programs": endless_code,
}


async def nothing(target: Target) -> None:
    """For comparison."""
    while target.going_on():
        await asyncio.sleep(0.1)


async def everything(target: Target) -> None:
    await asyncio.gather(*(attack(target) for attack in ATTACKS.values()))


async def measure(name: str, attack: Attack, server: ServerProcess, seconds: float) -> Measured:
    """The other client asks from before the attack begins until it is over."""
    highest = 0.0

    async def watch_memory() -> None:
        nonlocal highest
        while True:
            highest = max(highest, resident_mb(server.pid))
            await asyncio.sleep(0.05)

    poller = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.load.hostile",
        "--poll",
        server.url,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    watching = asyncio.create_task(watch_memory())
    try:
        assert poller.stdout is not None
        await poller.stdout.readline()  # it has had its first answer
        async with httpx.AsyncClient(base_url=server.url, timeout=120, trust_env=False) as http:
            await attack(Target(server, http, seconds))
        output, _ = await poller.communicate(b"")
    finally:
        watching.cancel()
        if poller.returncode is None:
            poller.kill()
            await poller.wait()
    waited = sorted(ms for ms in json.loads(output) if ms is not None)
    failed = len(json.loads(output)) - len(waited)
    assert waited, f"{name}: the other client had no answer at all"
    return Measured(
        name,
        len(waited) + failed,
        failed,
        round(waited[len(waited) // 2], 1),
        round(waited[len(waited) * 99 // 100], 1),
        round(waited[-1], 1),
        round(highest, 1),
    )


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB


def poll(url: str) -> None:
    """Until stdin ends: a JSON list of milliseconds, null for a request without an answer of 200."""
    parts = urlsplit(url)
    waited: list[float | None] = []
    ended = False
    os.set_blocking(sys.stdin.fileno(), False)
    while not ended:
        began = time.monotonic()
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        try:
            connection.request("GET", "/api/version")
            answer = connection.getresponse()
            answer.read()
            waited.append((time.monotonic() - began) * 1000 if answer.status == 200 else None)
        except (TimeoutError, OSError):
            waited.append(None)
        finally:
            connection.close()
        if len(waited) == 1:
            print(flush=True)
        time.sleep(POLL_S)
        with suppress(BlockingIOError):
            ended = os.read(sys.stdin.fileno(), 1) == b""
    print(json.dumps(waited))


async def main(seconds: float, only: list[str]) -> list[Measured]:
    attacks = {"nothing": nothing, **ATTACKS, "all at the same time": everything}
    unknown = set(only) - attacks.keys()
    if unknown:
        raise SystemExit(f"there is no attack {', '.join(unknown)}; there are: {', '.join(attacks)}")
    measured = []
    with tempfile.TemporaryDirectory(prefix="weft-hostile-") as folder:
        server = await ServerProcess.start(
            Path(folder) / "weft.db", free_port(random.Random()), Path(folder) / "log", WEFT_TOKEN="off"
        )
        try:
            await server.ready()
            print("| attack | requests | failed | median ms | p99 ms | worst ms | RSS MB |")
            print("|---|---|---|---|---|---|---|", flush=True)
            for name, attack in attacks.items():
                if only and name not in only:
                    continue
                found = await measure(name, attack, server, seconds)
                measured.append(found)
                row = (found.requests, found.failed, found.median_ms, found.p99_ms, found.worst_ms, found.rss_mb)
                print(f"| {name} | {' | '.join(map(str, row))} |", flush=True)
        finally:
            await server.clean_up()
    return measured


if __name__ == "__main__":
    options = argparse.ArgumentParser(prog="tests.load.hostile")
    options.add_argument("--seconds", type=float, default=10.0)
    options.add_argument("--only", nargs="*", default=[])
    options.add_argument("--poll", metavar="URL")
    given = options.parse_args()
    if given.poll:
        poll(given.poll)
    else:
        asyncio.run(main(given.seconds, given.only))
