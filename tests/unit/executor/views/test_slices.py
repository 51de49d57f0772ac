from __future__ import annotations

import asyncio

import pytest

from executor.core.events import NodeStarted, NodeSucceeded, RunFinished, RunStarted
from executor.views import run as run_view
from executor.views import slices
from executor.views.slices import SlicedProjection, Slices
from tests.unit.executor.core.story import Story, parallel
from tests.unit.executor.views.test_run import Told, run_row

STEPS = 300


async def turns_during(work: asyncio.Task[object]) -> int:
    turns = 0
    while not work.done():
        turns += 1
        await asyncio.sleep(0)
    return turns


def long_run() -> Told:
    story = Story({"fan": parallel({"a": ""}, limit=2)})
    told = Told(story)
    told.tell(RunStarted("r"))
    number = story.number("a")
    body = next(region for region, at in enumerate(story.plan.regions) if at.kind == "parallel")
    for branch in range(STEPS):
        key = (((body, branch),), number)
        told.tell(NodeStarted(key, 1))
        told.tell(NodeSucceeded(key, 1), b'{"n":1}')
    told.tell(NodeStarted((((body, STEPS),), number), 1))
    told.tell(RunFinished("cancelled"))
    return told


async def test_others_run_while_a_long_view_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    told = long_run()
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    making = asyncio.create_task(told.view("cancelled"))
    assert await turns_during(making) > 2 * STEPS
    nodes = (await making).nodes
    assert [node.status for node in nodes] == ["succeeded"] * STEPS + ["cancelled"]
    store: object = told.store
    graph = asyncio.create_task(run_view.graph(store, told.plan, run_row(len(told.store.records), "cancelled")))  # type: ignore[arg-type]
    assert await turns_during(graph) > 2 * STEPS
    (counts,) = (node.counts for node in (await graph).nodes if node.id == "a")
    assert counts == {"succeeded": STEPS, "cancelled": 1}


async def test_a_slice_is_not_cut_before_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 60.0)
    making = asyncio.create_task(long_run().view("cancelled"))
    assert await turns_during(making) < STEPS / 10


async def test_a_rest_begins_the_next_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    pieces = Slices()
    monkeypatch.setattr(slices, "SLICE_S", 60.0)

    async def rest_twice() -> None:
        await pieces.rest()
        await pieces.rest()

    assert await turns_during(asyncio.create_task(rest_twice())) == 2, "begun, and after the first"


def test_what_was_taken_out_is_gone() -> None:
    projection = SlicedProjection()
    assert list(projection.taken_out()) == []
