"""Readers of event streams, many and bad ones, on a real server."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tests.load.stream import Frame, open_stream
from tests.load.world import ending
from tests.support.server import ServerProcess, free_port
from tests.support.size import WHOLE, size

pytestmark = [pytest.mark.proof, pytest.mark.soak, pytest.mark.timeout(0 if WHOLE else 240)]

READERS, STALLED, PER_RUN = size(120, 1_000), size(12, 100), 90
BIG_EVENTS = 15_000  # of 1 KB and more in total than the buffers of a connection take
GROWTH_BYTES_MAX = 50 * 1024 * 1024
# Other work on the machine delays clients and server alike: the exact bounds are for a quiet one. A reader that held
# up the others would do so for 15 s, after which it is closed.
P99_MS_MAX = size(5_000, 250)
STALLED_S_MAX = size(60, 20)
EVENTS, DISCONNECTS, FOLLOWERS = size(1_000, 5_000), size(100, 1_000), 20


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    made = await ServerProcess.start(tmp_path / "weft.db", free_port(random.Random()), tmp_path / "log")
    await made.ready()
    yield made
    await made.clean_up()


def loop(count: int, body: dict[str, Any]) -> dict[str, Any]:
    """A loop around blocks one after the other."""
    document = ending("loop", {"again": {"type": "loop", "params": {"mode": "for", "count": count, "max": count}}})
    document["settings"] = {"max_executions": 100 * count}
    ids = list(body)
    document["blocks"] |= {id: {**block, "parent": "again"} for id, block in body.items()}
    document["edges"] += [{"source": "again", "handle": "body", "target": ids[0]}]
    document["edges"] += [{"source": a, "target": b} for a, b in pairwise(ids)]
    return document


def text(length: int) -> dict[str, Any]:
    return {"type": "set", "params": {"value": "x" * length}}


async def submit(client: httpx.AsyncClient, document: dict[str, Any], wait: int = 0) -> str:
    answer = await client.post("/api/runs", params={"wait": wait}, json={"document": document})
    assert answer.status_code in (200, 202), answer.text
    return str(answer.json()["run"])


async def journal(client: httpx.AsyncClient, run: str) -> list[Any]:
    found: list[Any] = []
    after: int | None = 0
    while after is not None:
        answer = await client.get(
            f"/api/runs/{run}/events", params={"after": after, "limit": 5000}, headers={"accept": "application/json"}
        )
        page = answer.json()
        found += page["events"]
        after = page["next"]
    return found


async def test_every_transcript_is_whole_whenever_its_reader_leaves(server: ServerProcess) -> None:
    """Followers leave at random, in the middle of frames too, and come back with the id of their last whole event."""
    left = 0

    async def follow(url: str, run: str, chance: random.Random) -> list[list[Frame]]:
        nonlocal left
        transcripts: list[list[Frame]] = []
        while left < DISCONNECTS or not transcripts:
            frames: list[Frame] = []
            while not (frames and b'"type":"run.finished"' in frames[-1].data):
                async with open_stream(url, run, frames[-1].id if frames else 0) as stream:
                    patience = chance.randrange(1, EVENTS // 10)
                    while more := await stream.frames():
                        frames += more
                        patience -= len(more)
                        if patience <= 0:
                            left += 1
                            # What else came is thrown away: a reader that crashes has only what it wrote down.
                            del frames[chance.randrange(max(0, len(frames) - len(more)), len(frames)) + 1 :]
                            break
            transcripts.append(frames)
        return transcripts

    async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
        run = await submit(client, loop(EVENTS // 4, {"a": text(10), "b": {"type": "wait", "params": {"seconds": 0}}}))
        found = await asyncio.gather(*(follow(server.url, run, random.Random(i)) for i in range(FOLLOWERS)))
        stored = await journal(client, run)
    assert len(stored) >= EVENTS
    assert left >= DISCONNECTS
    for transcript in (transcript for of_one in found for transcript in of_one):
        assert [frame.id for frame in transcript] == [event["seq"] for event in stored]
        assert [orjson.loads(frame.data) for frame in transcript] == stored
    print({"events": len(stored), "disconnects": left, "transcripts": sum(map(len, found))})


async def test_stalled_readers_are_closed_and_cost_the_others_nothing(server: ServerProcess) -> None:
    pid = server._process.pid
    async with httpx.AsyncClient(base_url=server.url, timeout=120) as client, AsyncExitStack() as open_streams:
        big = [
            await submit(client, loop(BIG_EVENTS // 2, {"a": text(2000)}), 60) for _ in range(-(-STALLED // PER_RUN))
        ]
        runs = -(-(READERS - STALLED) // PER_RUN)
        ticking = loop(40, {"a": text(1000), "b": {"type": "wait", "params": {"seconds": 0.5}}})
        # Warm: one reader of everything, so that what is measured is what the many cost.
        async with open_stream(server.url, big[0]) as stream:
            while await stream.frames():
                pass
        sockets, resident = sockets_of(pid), resident_of(pid)
        live = [await submit(client, ticking) for _ in range(runs)]

        stalled = [
            await open_streams.enter_async_context(open_stream(server.url, big[i % len(big)], buffer_bytes=4096))
            for i in range(STALLED)
        ]
        began = time.monotonic()
        delays: list[float] = []
        readers = [asyncio.create_task(_watch(server.url, live[i % runs], delays)) for i in range(READERS - STALLED)]
        peak = resident
        closed_s: float | None = None
        while not all(reader.done() for reader in readers) or (
            closed_s is None and time.monotonic() - began < STALLED_S_MAX
        ):
            await asyncio.sleep(0.5)
            peak = max(peak, resident_of(pid))
            connected = sum(not reader.done() for reader in readers)
            if closed_s is None and time.monotonic() - began > 2 and sockets_of(pid) <= sockets + connected + 2:
                closed_s = time.monotonic() - began
        await asyncio.gather(*readers)
        del stalled
    delays.sort()
    p99_ms = delays[len(delays) * 99 // 100]
    seen = {
        "readers": READERS,
        "stalled": STALLED,
        "deliveries": len(delays),
        "p50_ms": delays[len(delays) // 2],
        "p99_ms": p99_ms,
        "growth_mb": round((peak - resident) / 2**20, 1),
        "stalled_closed_s": closed_s,
        "load": os.getloadavg()[0],
    }
    print(seen)
    assert closed_s is not None and closed_s <= STALLED_S_MAX, str(seen)
    assert peak - resident <= GROWTH_BYTES_MAX, str(seen)
    assert p99_ms <= P99_MS_MAX, str(seen)


async def _watch(url: str, run: str, delays: list[float]) -> None:
    """Note how many milliseconds after it was recorded each batch of events arrived, once this reader is up to date."""
    joined_ms = time.time() * 1000
    async with open_stream(url, run) as stream:
        while frames := await stream.frames():
            last = orjson.loads(frames[-1].data)
            if last["at_ms"] > joined_ms + 3_000:
                delays.append(time.time() * 1000 - last["at_ms"])


def sockets_of(pid: int) -> int:
    found = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):
            found += os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:")
    return found


def resident_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
