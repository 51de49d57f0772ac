"""What stopped a server once, against a real one, while another client keeps asking: how long that client waits, how
much memory the server needs, and what the attack got.

python -m tests.load.hostile [--seconds 15] [--only NAME ...] [--json]

Each attack has a server of its own, and the last one is all of them at the same time. The other client is a process of
its own (`tests.load.innocent`). Every attack is bounded in time, bytes and connections.
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
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
from msgspec import Struct

from tests.support.server import ServerProcess, free_port

MIB = 1 << 20
SLOW = 300  # connections that send a header byte by byte
HEADER_BYTES = 128 * MIB
WIDE = b"[" + b",".join([b"[]"] * 690_000) + b"]"  # 2 MiB
WIDE_CLIENTS = 3


class Waited(Struct):
    """`failed`: requests without the expected response."""

    requests: int
    failed: int
    median_ms: float
    p99_ms: float
    max_ms: float


class Measured(Struct):
    """`got`: what the attack saw, and how often: a status, "closed", the end of a run."""

    attack: str
    reads: Waited
    starts: Waited
    rss_mb: float
    disk_mb: float
    got: dict[str, int]


class Target:
    """The server under attack, until when, and what the attack gets."""

    def __init__(self, server: ServerProcess, http: httpx.AsyncClient, seconds: float) -> None:
        self.http = http
        self.got: Counter[str] = Counter()
        self._url = server.url
        self._until_s = time.monotonic() + seconds

    @property
    def lasts(self) -> bool:
        return time.monotonic() < self._until_s

    @asynccontextmanager
    async def connection(
        self, response_s: float = 0
    ) -> AsyncIterator[tuple[asyncio.Task[bytes], asyncio.StreamWriter]]:
        """The task has what the server sends first. Notes the status in it, or that the connection was closed, or that
        it is open at the end. `response_s`: how long the response may take when the time is over."""
        parts = urlsplit(self._url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        response = asyncio.create_task(reader.read(4096))
        try:
            with suppress(ConnectionError):
                yield response, writer
            while self.lasts and not response.done():
                await asyncio.sleep(0.01)
            await asyncio.wait([response], timeout=response_s)
            self.got[await _status(response) if response.done() else "open at the end"] += 1
        finally:
            response.cancel()
            writer.transport.abort()

    async def run(self, document: dict[str, Any]) -> None:
        """Until it has ended or the time is over; then it is cancelled. Notes how it ended."""
        response = await self.http.post("/api/runs", json={"document": document})
        await self.follow(str(response.raise_for_status().json()["run"]))

    async def follow(self, run: str) -> None:
        while self.lasts and not await self._end_of(run):
            await asyncio.sleep(0.1)
        if not await self._end_of(run):
            await self.http.post(f"/api/runs/{run}/cancel", json={})
        while not (end := await self._end_of(run)):
            await asyncio.sleep(0.1)
        self.got[end] += 1

    async def _end_of(self, run: str) -> str:
        """Empty while it is open. The view of a run would have all its outputs."""
        response = await self.http.get(
            f"/api/runs/{run}/events", params={"type": "run.finished"}, headers={"accept": "application/json"}
        )
        for event in response.raise_for_status().json()["events"]:
            return str((event["data"].get("error") or {}).get("code") or event["data"]["status"])
        return ""


async def slow_headers(target: Target) -> None:
    """300 connections, a header each, a byte a second; one that the server closes is opened again."""

    async def one() -> None:
        while target.lasts:
            async with target.connection() as (response, writer):
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-A: ")
                while target.lasts and not response.done():
                    writer.write(b"a")
                    await writer.drain()
                    await asyncio.wait([response], timeout=1)

    await asyncio.gather(*(one() for _ in range(SLOW)))


async def big_header(target: Target) -> None:
    """A header of 128 MiB, again and again."""
    while target.lasts:
        async with target.connection(response_s=30) as (_, writer):
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-A: ")
            for _ in range(HEADER_BYTES // MIB):
                writer.write(b"a" * MIB)
                await writer.drain()
        await asyncio.sleep(0.05)


async def wide_json(target: Target) -> None:
    """2 MiB of empty lists, by three clients, to routes with and without a credential."""

    async def one() -> None:
        while target.lasts:
            for path in ("/login", "/demo/echo", "/api/runs"):
                try:
                    response = await target.http.post(path, content=WIDE, headers={"content-type": "application/json"})
                except httpx.TransportError:  # the response may come before the body has been sent
                    target.got["closed"] += 1
                else:
                    target.got[str(response.status_code)] += 1

    await asyncio.gather(*(one() for _ in range(WIDE_CLIENTS)))


async def recursion(target: Target) -> None:
    """A workflow that starts itself twenty times."""
    name = f"bomb-{random.randrange(10**9)}"
    document = _inside(
        {"type": "parallel", "params": {"mode": "count", "count": 20}},
        {"type": "run_workflow", "params": {"workflow": name, "input": {}}},
    )
    (await target.http.post("/api/workflows", json={**document, "name": name})).raise_for_status()
    response = await target.http.post(f"/api/workflows/{name}/runs", json={})
    await target.follow(str(response.raise_for_status().json()["run"]))


async def references(target: Target) -> None:
    """3,000 references to a text of 1 MB, as a value."""
    document = _chain({"text": _text(), "many": {"type": "set", "params": {"value": ["<text.result>"] * 3000}}})
    while target.lasts:
        await target.run(document)


async def large_loop(target: Target) -> None:
    """A value of 15 MB in each of 1,000 iterations."""
    loop = {"type": "loop", "params": {"mode": "for", "count": 1000, "max": 1000}}
    many = {"type": "set", "params": {"value": ["<text.result>"] * 15}}
    while target.lasts:
        await target.run(_inside(loop, many, {"text": _text()}))


async def endless_code(target: Target) -> None:
    """Eight programs without an end, in one run."""
    code = {"type": "function", "params": {"code": "for (;;) {}", "timeout_s": 8}}
    while target.lasts:
        await target.run(_inside({"type": "parallel", "params": {"mode": "count", "count": 8}}, code))


def _text() -> dict[str, Any]:
    return {"type": "function", "params": {"code": "return 'x'.repeat(1000000)"}}


def _chain(blocks: dict[str, Any]) -> dict[str, Any]:
    ids = ["start", *blocks]
    edges = [{"source": a, "target": b} for a, b in pairwise(ids)]
    return {"format": "weft/1", "name": "hostile", "blocks": {"start": {"type": "start"}, **blocks}, "edges": edges}


def _inside(container: dict[str, Any], block: dict[str, Any], before: dict[str, Any] | None = None) -> dict[str, Any]:
    """start, the blocks before, and a container with one block in it."""
    document = _chain({**(before or {}), "outer": container})
    document["blocks"]["inner"] = {**block, "parent": "outer"}
    document["edges"].append({"source": "outer", "handle": "body", "target": "inner"})
    return document


async def _status(response: asyncio.Task[bytes]) -> str:
    try:
        head = await response
    except ConnectionError:
        head = b""
    return head.split(b" ", 2)[1].decode() if head.startswith(b"HTTP/1.1 ") else "closed"


Attack = Callable[[Target], Awaitable[None]]
ATTACKS: dict[str, Attack] = {
    "slow headers": slow_headers,
    "big header": big_header,
    "wide JSON": wide_json,
    "recursion": recursion,
    "references": references,
    "large loop": large_loop,
    "endless code": endless_code,
}


async def nothing(target: Target) -> None:
    """For comparison."""
    while target.lasts:
        await asyncio.sleep(0.1)


async def everything(target: Target) -> None:
    await asyncio.gather(*(attack(target) for attack in ATTACKS.values()))


MEASURED = {"nothing": nothing, **ATTACKS, "all at the same time": everything}


async def measure(name: str, seconds: float, folder: Path) -> Measured:
    """On a server of its own. The other client asks from before the attack begins until it is over."""
    db = folder / "weft.db"
    server = await ServerProcess.start(db, free_port(random.Random()), folder / "log")
    rss_mb = disk_mb = 0.0

    async def watch() -> None:
        nonlocal rss_mb, disk_mb
        while True:
            rss_mb = max(rss_mb, resident_mb(server.pid))
            with suppress(FileNotFoundError):
                disk_mb = max(disk_mb, sum(file.stat().st_size for file in folder.iterdir()) / MIB)
            await asyncio.sleep(0.05)

    try:
        await server.ready()
        async with _innocent(server.url) as ask_to_end:
            watching = asyncio.create_task(watch())
            try:
                async with httpx.AsyncClient(base_url=server.url, timeout=120, trust_env=False) as http:
                    target = Target(server, http, seconds)
                    await MEASURED[name](target)
                waited = await ask_to_end()
            finally:
                watching.cancel()
        assert await server.stop(60) == 0, f"{name}: the server did not end well"
    finally:
        await server.clean_up()
    reads, starts = map(_waited, waited)
    return Measured(name, reads, starts, round(rss_mb), round(disk_mb), dict(sorted(target.got.items())))


@asynccontextmanager
async def _innocent(url: str) -> AsyncIterator[Callable[[], Awaitable[list[list[float | None]]]]]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.load.innocent", url, stdin=pipe, stdout=pipe, limit=16 * MIB
    )
    assert process.stdout is not None
    try:
        assert await process.stdout.readline(), "the other client could not ask"  # it has had its first responses

        async def ask_to_end() -> list[list[float | None]]:
            output, _ = await process.communicate(b"")
            found: list[list[float | None]] = json.loads(output)
            return found

        yield ask_to_end
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _waited(milliseconds: list[float | None]) -> Waited:
    found = sorted(one for one in milliseconds if one is not None)
    assert found, "the other client had no response at all"
    median, p99 = found[len(found) // 2], found[len(found) * 99 // 100]
    return Waited(len(milliseconds), len(milliseconds) - len(found), round(median, 1), round(p99, 1), round(found[-1]))


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB


def row(found: Measured) -> str:
    cells: list[Any] = [found.attack]
    for waited in (found.reads, found.starts):
        cells += [f"{waited.median_ms:g} / {waited.p99_ms:g} / {waited.max_ms:g}", waited.failed]
    got = ", ".join(f"{count:,} x {what}" for what, count in found.got.items())
    return f"| {' | '.join(map(str, [*cells, round(found.rss_mb), round(found.disk_mb), got]))} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.load.hostile", description="Hostile load, measured.")
    parser.add_argument("--seconds", type=float, default=15.0, help="for each attack")
    parser.add_argument("--only", nargs="*", metavar="NAME", help=", ".join(MEASURED))
    parser.add_argument("--json", action="store_true", help="one object a line")
    options = parser.parse_args()
    if unknown := set(options.only or ()) - MEASURED.keys():
        parser.error(f"there is no attack {', '.join(sorted(unknown))}; there are: {', '.join(MEASURED)}")
    if not options.json:
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; median / p99 / max in ms\n")
        print("| attack | GET /api/version | failed | POST /api/runs | failed | RSS MB | disk MB | the attack got |")
        print("|---|---|---|---|---|---|---|---|", flush=True)
    for name in options.only or MEASURED:
        with tempfile.TemporaryDirectory(prefix="weft-hostile-") as folder:
            found = asyncio.run(measure(name, options.seconds, Path(folder)))
        print(msgspec.json.encode(found).decode() if options.json else row(found), flush=True)


if __name__ == "__main__":
    main()
