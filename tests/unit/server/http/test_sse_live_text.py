"""`node.delta` never overtakes `node.started`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from executor.kernel.read.hub import Hub
from executor.kernel.read.live_texts import Deltas
from executor.open.engine import Engine
from server.client.stream import SseParser
from server.http.sse import _parted
from server.http.streams import Streams
from server.settings import Limits
from tests.support.blocks import Speak
from tests.support.documents import in_a_row
from tests.support.rows import record
from tests.support.runs import engine_on
from tests.unit.server.http.test_sse import SCOPE, Reader, stream

TALKERS = 20


@pytest.fixture
async def talking(tmp_path: Path) -> AsyncIterator[Engine]:
    async with engine_on(tmp_path / "weft.db", Speak()) as engine:
        yield engine


def talks() -> dict[str, Any]:
    go = {"type": "signal", "params": {"name": "go"}}
    names = [f"talk{n}" for n in range(TALKERS)]
    speaking = {name: {"type": "speak", "params": {"pieces": [f"{name} speaking", "."]}} for name in names}
    return in_a_row("talks", {"go": go, **speaking})


async def test_a_delta_comes_behind_the_start_of_its_node_and_before_its_end(talking: Engine) -> None:
    run = (await talking.submit(talks())).run
    assert (await talking.wait_finished(run, 60)).status == "waiting"
    row = await talking.runs.row(run)
    reader, streams = Reader(), Streams(Limits())
    task = asyncio.create_task(stream(talking, streams, row)(SCOPE, reader.receive, reader.send))
    await reader.until(lambda data: b"id: %d\n" % row.seq in data)
    await talking.signal(run, "go")
    data = await reader.until(lambda data: b"event: run.finished" in data)
    await task
    parser = SseParser()
    seen: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    for frame in parser.feed(data):
        event = orjson.loads(frame.data)
        if str(event.get("key")).startswith("talk"):
            seen.setdefault(event["key"], []).append(event["type"])
            texts[event["key"]] = texts.get(event["key"], "") + event.get("text", "")
    assert len(seen) == TALKERS
    for key, types in seen.items():
        assert texts[key] == f"{key} speaking."
        assert types[0] == "node.started", f"{key}: {types}"
        assert types[-1] == "node.succeeded", f"{key}: {types}"


def test_what_belongs_behind_a_later_event_stays() -> None:
    hub = Hub()
    deltas: Deltas = hub.deltas("r")
    hub.delta("r", "a", "1", 3)
    hub.delta("r", "b", "2", 7)
    hub.delta("r", "a", "3", 3)
    assert deltas.read(2) == {}
    assert deltas.places() == {3, 7}
    assert deltas.read(6) == {"a": "13"}
    assert deltas.read() == {"b": "2"}


@pytest.mark.parametrize(
    ("places", "parts"),
    [(set(), [[5, 6, 7]]), ({4, 9}, [[5, 6, 7]]), ({5}, [[5], [6, 7]]), ({6, 7}, [[5, 6], [7]])],
)
def test_records_are_cut_behind_what_a_delta_waits_for(places: set[int], parts: list[list[int]]) -> None:
    records = [replace(record(), seq=seq) for seq in (5, 6, 7)]
    assert [[each.seq for each in part] for part in _parted(records, places)] == parts
