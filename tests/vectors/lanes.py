"""The lane of a durable function: `python -m tests.vectors record` plays it and writes `lanes.json`, with its events as
the editor receives them, and what the lane is after some of them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec
import orjson

import weft
from executor.open.testing.engines import engine
from executor.open.testing.play import Stuck, finish
from executor.service.views.lane import LaneFold, tasks_of
from server.http.response import encode_record
from tests.vectors.streams import Json, entry

FILE = Path(__file__).with_name("lanes.json")
EACH = 5  # events between two expectations


@weft.step(effect="none")
async def pack(part: int, note: str = "") -> str:
    if part == 3:
        raise ValueError("part 3 is missing")
    return f"packed {part}"


tried: list[int] = []


@weft.step(effect="none", retries=1)
async def quote() -> float:
    tried.append(1)
    if len(tried) == 1:
        raise ConnectionError("no answer")
    return 4.5


@weft.step
async def refund(order: str) -> None: ...


@weft.durable
async def inner(n: int) -> int:
    return n + 1


@weft.durable
async def ship(order: str) -> str:
    await pack(0, "x" * 2_000)
    await quote()
    with weft.group("parts", order=order):
        await weft.gather(pack(1), pack(2))
        with suppress(weft.StepFailed):
            await pack(3)
    await weft.first(weft.signal("courier"), weft.sleep(hours=1))
    answer = await weft.approve("Send it?")
    await inner(1)
    try:
        await weft.signal("never")
    except weft.Cancelled:
        with weft.group("back"):
            await refund(order)
        raise
    return answer.action


async def record() -> Json:
    tried.clear()
    async with engine(workflows=[ship]) as opened:
        run = (await opened.submit(ship, order="7")).run
        with suppress(Stuck):  # nothing answers the last one
            await finish(opened, run, {"courier": "Ada", "Send it?": "approve"})
        await opened.cancel(run, "it is enough")
        await opened.wait_finished(run, 10)
        events = [orjson.loads(encode_record(run, one)) for one in await opened.store.read_events(run)]
    for event in events:
        event["data"].get("error", {}).pop("traceback", None)  # it has the place of this checkout
    return {"events": events, "lanes": [lane_at(events, seq) for seq in seqs_of(events)]}


def seqs_of(events: list[Json]) -> Iterable[int]:
    last = events[-1]["seq"]
    return [*range(EACH, last, EACH), last]


def lane_at(events: list[Json], seq: int) -> Json:
    fold = LaneFold()
    for event in events[:seq]:
        if event["node"] in ("body", "undo"):
            fold.apply(entry(event))
        elif event["type"] == "run.finished":
            fold.end()
    items = sorted(fold.items(), key=fold.place)
    made: Json = orjson.loads(msgspec.json.encode({"seq": seq, "tasks": tasks_of(items), "items": items}))
    return made


def load() -> Json:
    stored: Json = orjson.loads(FILE.read_bytes())
    return stored
