from __future__ import annotations

import asyncio

import pytest

from executor.errors import NotFound
from executor.kernel.store.run_rows import EventFilter
from executor.service.parts import Parts
from executor.service.topics.events import Events
from executor.service.topics.runs import Runs
from tests.support.documents import chain

WAIT = {"type": "wait", "params": {"seconds": 60}}


async def test_a_reader_gets_what_is_there_and_waits_for_more(runs: Runs, events: Events, parts: Parts) -> None:
    run = (await runs.submit(chain("a", a=WAIT))).run
    reader = events.follow(run)
    assert [record.type for record in await anext(reader)] == ["run.started"]
    more = asyncio.ensure_future(anext(reader))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not more.done() and parts.hub.watched() == [run]
    more.cancel()
    await asyncio.wait([more])
    assert parts.hub.watched() == []


async def test_one_event_after_the_other(runs: Runs, events: Events) -> None:
    run = (await runs.submit(chain("a", a=WAIT), input={"n": 1})).run
    first = await anext(events.stream(run))
    assert (first.seq, first.type) == (1, "run.started")
    with pytest.raises(NotFound):
        await anext(events.stream("missing"))


async def test_a_page_of_events(runs: Runs, events: Events) -> None:
    run = (await runs.submit(chain("a", a=WAIT))).run
    records, count = await events.find(run, EventFilter(types=("run.started",)))
    assert ([record.seq for record in records], count) == ([1], 1)
    assert await events.find(run, EventFilter(types=("run.finished",))) == ([], 0)
    with pytest.raises(NotFound):
        await events.find("missing", EventFilter())


async def test_live_text_reaches_its_readers(events: Events, parts: Parts) -> None:
    deltas = events.deltas("r")
    parts.hub.delta("r", "a", "hel", 1)
    parts.hub.delta("r", "a", "lo", 1)
    assert deltas.read() == {"a": "hello"}
    deltas.close()
