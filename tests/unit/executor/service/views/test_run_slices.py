from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from executor.kernel.core.events import NodeStarted, NodeSucceeded, RunFinished, RunStarted
from executor.service.views import run as run_view
from executor.service.views import run as slices
from executor.service.views.run import SlicedProjection, Slices
from tests.unit.executor.kernel.core.story import Story, parallel
from tests.unit.executor.service.views.test_run import Told, run_row

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

    assert pieces.is_over
    assert await turns_during(asyncio.create_task(pieces.rest())) == 2, "begun, and after the rest"
    assert not pieces.is_over


def test_what_was_taken_out_is_gone() -> None:
    projection = SlicedProjection()
    assert list(projection.taken_out()) == []


@pytest.mark.parametrize(
    "value",
    [
        {"results": [[{"ok": True}]] * 500, "last": {"ok": True}},
        ["x" * 90, 1, "y" * 300, [], {}, None, 2.5, ["z" * 99, ["u" * 99, {"v": ["w" * 99]}]], "end"],
        [['ä\n"\\' * 50, {"": -0.0, "big": 2**63, "e": 1e-9}]] * 9,
        "x" * 1_000,
        [],
        7,
    ],
)
async def test_a_long_value_is_the_same_in_slices(monkeypatch: pytest.MonkeyPatch, value: Any) -> None:
    monkeypatch.setattr(slices, "DECODED_AT_ONCE", 64)
    for data in (orjson.dumps(value), b" \n" + orjson.dumps(value, option=orjson.OPT_INDENT_2)):
        assert repr(await Slices().decoded(data)) == repr(orjson.loads(data))


async def test_others_run_while_a_long_value_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    data = orjson.dumps({"results": [[{"ok": True}]] * 50_000})
    decoding = asyncio.create_task(Slices().decoded(data))
    assert await turns_during(decoding) > len(data) // slices.DECODED_AT_ONCE
    assert (await decoding) == orjson.loads(data)
