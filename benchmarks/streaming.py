"""Event streams of a real server process: read again, live, and idle. The floor is the least that Starlette and uvicorn
do to send the same bytes in the same chunks (`bare_server`). Beside a stream of its own a client costs nothing that is
counted: what is measured is the CPU time of the server process.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import orjson

from benchmarks import workloads
from benchmarks.measure import on_uvloop
from benchmarks.sample import program
from benchmarks.sequence import Benchmark, Part, Parted, Sampled
from benchmarks.serving import Process, call, server
from benchmarks.statistics import Target

READERS, BRANCHES = 100, 665  # each branch: three events
STEPS, STEP_S = 50, 0.03  # of the live run: each step is one commit of two events
STREAMS = 2_000  # each of a waiting run of its own: none shares what another one has asked
SETTLE_S, IDLE_S = 3.0, 30.0  # two rounds of pings, the first of which takes 5 s
OPENING = 50  # connections that are made at a time


async def pause() -> None:
    """What a step of the live run does."""
    await asyncio.sleep(STEP_S)


# --- read again


def replaying(which: str) -> list[float]:
    """Microseconds of the server's CPU per event and client: 100 clients read the journal of one run again. The floor
    sends the same bytes as they come."""
    with server("weft") as ours:
        run = on_uvloop(lambda: _fan(ours.port))
        path = f"/api/runs/{run}/events"
        text = on_uvloop(lambda: _read(ours.port, path))
        events = text.count(b"\nid: ")
        if which == "weft":
            cpu_s = _replay(ours, path)
    if which == "bare":
        with server("bare") as bare:
            on_uvloop(lambda: call(bare.port, "PUT", "/stream", text))
            cpu_s = _replay(bare, "/stream")
    return [cpu_s / events / READERS * 1e6]


def _replay(server: Process, path: str) -> float:
    """CPU seconds the server spends on `READERS` clients that read `path` to its end; the least of three times."""

    async def main() -> None:
        await asyncio.gather(*(_read(server.port, path) for _ in range(READERS)))

    took_s = []
    for _ in range(3):
        before = server.cpu_s()
        on_uvloop(main)
        took_s.append(server.cpu_s() - before)
    return min(took_s)


async def _fan(port: int) -> str:
    """A finished run with two thousand events; its id."""
    params = {"mode": "count", "count": BRANCHES}
    step = {"type": "set", "name": "Step", "parent": "fan", "params": {"value": {"index": "<parallel.index>"}}}
    blocks: dict[str, Any] = {"fan": {"type": "parallel", "name": "Fan", "params": params}, "step": step}
    document = workloads.document("streamed", blocks, [("start", "fan"), ("fan", "body", "step")])
    return await _submit(port, document, wait_s=20)


async def _read(port: int, path: str) -> bytes:
    return await call(port, "GET", path, b"")


# --- live


def living(which: str) -> list[float]:
    """Microseconds of the server's CPU per event and client: what 99 more clients cost while a run commits two events
    every `STEP_S`. The floor is sent the same chunks, and passes each on to all its clients."""
    with server("weft", WEFT_FUNCTIONS="benchmarks.streaming:pause") as ours:
        on_uvloop(lambda: _live(ours, 1))  # warm
        alone_s, text = on_uvloop(lambda: _live(ours, 1))
        events = text.count(b"\nid: ")
        if which == "weft":
            all_s, _ = on_uvloop(lambda: _live(ours, READERS))
    if which == "bare":
        frames = [frame + b"\n\n" for frame in text.split(b"\n\n") if frame]
        chunks = [b"".join(frames[n : n + 2]) for n in range(0, len(frames), 2)]
        with server("bare") as bare:
            on_uvloop(lambda: _broadcast(bare, 1, chunks))
            alone_s = on_uvloop(lambda: _broadcast(bare, 1, chunks))
            all_s = on_uvloop(lambda: _broadcast(bare, READERS, chunks))
    return [(all_s - alone_s) / events / (READERS - 1) * 1e6]


async def _live(server: Process, readers: int) -> tuple[float, bytes]:
    """CPU seconds from the moment when the run continues with all readers there, and what one of them has got."""
    go = {"type": "signal", "name": "Go", "params": {"name": "go"}}
    steps = {f"s{n}": {"type": "python", "name": f"S{n}", "params": {"function": "pause"}} for n in range(1, STEPS + 1)}
    names = ["start", "go", *steps]
    document = workloads.document("live", {"go": go, **steps}, list(pairwise(names)))
    run = await _submit(server.port, document)
    signal = f"/api/runs/{run}/signals/go"
    begin = partial(call, server.port, "POST", signal, b"{}")
    return await _watched(server, f"/api/runs/{run}/events", b"run.parked", readers, begin)


async def _broadcast(server: Process, readers: int, chunks: list[bytes]) -> float:
    async def send() -> None:
        for chunk in (*chunks, b""):
            await asyncio.sleep(STEP_S)
            await call(server.port, "POST", "/live", chunk)

    cpu_s, _ = await _watched(server, "/live", b"\r\n\r\n", readers, send)
    return cpu_s


async def _watched(
    server: Process, path: str, ready: bytes, readers: int, begin: Callable[[], Awaitable[object]]
) -> tuple[float, bytes]:
    streams = [await _open(server.port, path) for _ in range(readers)]
    heads = await asyncio.gather(*(stream.until(ready) for stream in streams))
    before = server.cpu_s()
    begun = asyncio.ensure_future(begin())
    texts = await asyncio.gather(*(stream.rest() for stream in streams))
    await begun
    assert len(set(texts)) == 1 or path != "/live", "all have got the same"
    lines = (heads[0] + texts[0]).split(b"\r\n")
    return server.cpu_s() - before, b"".join(line for line in lines if b"\n" in line)


# --- idle


def idling() -> list[float]:
    """Percent of a processor that the server needs for 2,000 open streams of runs that wait, and KiB for each."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 3 * STREAMS)), hard))  # the server inherits it
    with server("weft") as process:
        return on_uvloop(lambda: _idle(process))


async def _waiting(server: Process, count: int) -> list[str]:
    """Runs that wait for a signal."""
    go = {"type": "signal", "name": "Go", "params": {"name": "go"}}
    document = workloads.document("idle", {"go": go}, [("start", "go")])
    return [await _submit(server.port, document) for _ in range(count)]


async def _opened(server: Process, runs: list[str]) -> list[Client]:
    """A stream of each run, up to date."""
    streams: list[Client] = []
    for start in range(0, len(runs), OPENING):
        few = runs[start : start + OPENING]
        opened = await asyncio.gather(*(_open(server.port, f"/api/runs/{run}/events") for run in few))
        await asyncio.gather(*(stream.until(b"run.parked") for stream in opened))
        streams += opened
    return streams


async def _idle(server: Process) -> list[float]:
    runs = await _waiting(server, STREAMS)
    streams = await _opened(server, runs[:OPENING])  # what is made once
    before_mib = server.memory_mib()
    streams += await _opened(server, runs[OPENING:])
    each_kib = (server.memory_mib() - before_mib) * 1024 / (STREAMS - OPENING)
    reading = [asyncio.create_task(_count(stream)) for stream in streams]
    await asyncio.sleep(SETTLE_S)
    before, began = server.cpu_s(), time.perf_counter()
    await asyncio.sleep(IDLE_S)
    share = (server.cpu_s() - before) / (time.perf_counter() - began) * 100
    assert not any(task.done() for task in reading), "all streams stayed open"
    for task in reading:
        task.cancel()
    pings = [task.result() for task in reading if await asyncio.wait([task]) and not task.cancelled()]
    assert len(pings) == STREAMS and min(pings) >= 1, "every client has heard of the server"
    return [share, each_kib]


async def _count(stream: Client) -> int:
    """How many pings came until it was cancelled."""
    pings = 0
    try:
        while data := await stream.some():
            pings += data.count(b": ping")
    except asyncio.CancelledError:
        pass
    return pings


# --- clients


async def _submit(port: int, document: workloads.Document, wait_s: int = 0) -> str:
    answer = await call(port, "POST", f"/api/runs?wait={wait_s}", orjson.dumps({"document": document}))
    return str(orjson.loads(answer)["run"])


class Client:
    """One open stream; it is closed when nothing refers to it any more."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def some(self) -> bytes:
        """What has come; b"" at the end."""
        return await self._reader.read(1 << 16)

    async def rest(self) -> bytes:
        return await self._reader.read()

    async def until(self, seen: bytes) -> bytes:
        """What has come when `seen` has, which may be in the middle of it."""
        data = b""
        while seen not in data:
            more = await self.some()
            assert more, data
            data += more
        return data


async def _open(port: int, path: str) -> Client:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    writer.write(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n".encode())
    return Client(reader, writer)


BENCHMARKS: dict[str, Sequence[Benchmark]] = {
    "sse": [
        Sampled(
            f"SSE, {3 * BRANCHES:,} events again, {READERS} clients",
            "us",
            program(replaying, "weft"),
            program(replaying, "bare"),
            Target(1.5),
            "CPU per event and client",
            share=4,
        ),
        Sampled(
            f"SSE, live, {READERS} clients",
            "us",
            program(living, "weft"),
            program(living, "bare"),
            Target(20, of="value"),
            "CPU per event and client; two events in a commit",
            share=4,
        ),
        Parted(
            (
                Part(f"SSE, {STREAMS:,} idle streams", "%", Target(1, of="value"), note="of a processor"),
                Part("SSE, memory of an idle stream", "KiB", Target(48, of="value")),
            ),
            program(idling),
            share=6,
        ),
    ],
}
