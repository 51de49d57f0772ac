"""The view of a run, from records alone: what its nodes say, and how much of their outputs it holds."""

from __future__ import annotations

import pytest

from executor.kernel.core.events import (
    Event,
    NodeStarted,
    NodeSucceeded,
    RegionExited,
    RegionSized,
    RunFinished,
    RunStarted,
)
from executor.kernel.journal.codec import Codec
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.statements import RunStatus
from executor.kernel.values.payload import split
from executor.service.views import NodeView, RunView
from executor.service.views import run as run_view
from tests.support.record_store import RecordStore
from tests.unit.executor.kernel.core.story import Story, parallel

MIB = 1024 * 1024


def run_row(seq: int, status: RunStatus = "running") -> RunRow:
    return RunRow(
        id="r", workflow="w", version=1, plan_hash="p", status=status, input=b"{}", output=None, error=None, seq=seq,
        epoch=1, lease_owner=None, lease_until_ms=None, next_run_at_ms=None, idempotency_key=None, request_hash="",
        parent_run_id=None, parent_key=None, created_at_ms=0, started_at_ms=0, finished_at_ms=None,
    )  # fmt: skip


class Told:
    """A run of a plan whose journal is written event by event, with outputs."""

    def __init__(self, story: Story) -> None:
        self.plan = story.plan
        self.store = RecordStore([])
        self._codec = Codec(story.plan)

    def tell(self, event: Event, output: bytes | None = None) -> None:
        extra, seq = None, len(self.store.records) + 1
        if output is not None:
            inline, blob = split(output)
            if blob is not None:
                self.store.blobs[blob] = output
                extra, output = {"blob": blob, "size": len(output)}, inline
        self.store.records.append(self._codec.to_record(seq, seq * 1000, event, output, extra))

    async def view(self, status: RunStatus = "running") -> RunView:
        store: object = self.store  # of a store only the reading of journals is used
        return await run_view.build(store, self.plan, run_row(len(self.store.records), status), ())  # type: ignore[arg-type]


def json_of(size: int) -> bytes:
    return b'"' + b"x" * (size - 2) + b'"'


def succeed(told: Told, story: Story, name: str, output: bytes) -> None:
    key = ((), story.number(name))
    told.tell(NodeStarted(key, 1))
    told.tell(NodeSucceeded(key, 1), output)


async def test_a_node_has_its_times_route_and_output() -> None:
    story = Story({"a": "b", "b": ""})
    told = Told(story)
    told.tell(RunStarted("r"))
    succeed(told, story, "a", b'{"n":1}')
    (node,) = (await told.view()).nodes
    expected = NodeView("a", "a", "a", "", "succeeded", 1, 2000, 3000, route="out", output={"n": 1})
    assert node == expected


async def test_the_start_of_a_container_shows_its_count_and_no_route() -> None:
    story = Story({"fan": parallel({"a": ""}, limit=2)})
    told = Told(story)
    told.tell(RunStarted("r"))
    told.tell(NodeStarted(((), story.number("fan:start")), 1))
    told.tell(RegionSized(((), story.number("fan:start")), 1, 0), b"[]")
    told.tell(RegionExited(((), story.number("fan:end")), 0), b'{"results":[]}')
    start, end = (await told.view()).nodes
    assert (start.output, start.route, start.status) == ({"count": 0}, None, "succeeded")
    assert (end.output, end.route) == ({"results": []}, "out")


@pytest.mark.parametrize("status", ["failed", "cancelled"])
async def test_what_is_open_when_the_run_has_ended_was_cancelled(status: RunStatus) -> None:
    story = Story({"a": ""})
    told = Told(story)
    told.tell(RunStarted("r"))
    told.tell(NodeStarted(((), story.number("a")), 1))
    assert (await told.view(status)).nodes[0].status == "cancelled", "as the row says, without a last event"
    told.tell(RunFinished(status))  # type: ignore[arg-type]  # it has ended
    assert (await told.view(status)).nodes[0].status == "cancelled"


async def test_outputs_that_fit_are_shown_and_the_others_say_how_large_they_are() -> None:
    story = Story({"a": "b", "b": "c", "c": "d", "d": ""})
    told = Told(story)
    told.tell(RunStarted("r"))
    sizes = {"a": 3 * MIB, "b": 2 * MIB, "c": 100_000, "d": MIB - 100_000}
    for name, size in sizes.items():
        succeed(told, story, name, json_of(size))
    nodes = {node.key: node for node in (await told.view()).nodes}
    assert [name for name, node in nodes.items() if node.output_truncated] == ["b"], "those after it still fit"
    assert (nodes["b"].output, nodes["b"].output_size) == (None, 2 * MIB)
    assert nodes["d"].output == "x" * (sizes["d"] - 2) and nodes["d"].output_size is None


@pytest.mark.parametrize("size", [run_view.OUTPUTS_MAX_BYTES, run_view.OUTPUTS_MAX_BYTES + 1])
async def test_the_bound_is_on_all_outputs_together(size: int) -> None:
    story = Story({"a": "b", "b": ""})
    told = Told(story)
    told.tell(RunStarted("r"))
    succeed(told, story, "a", json_of(1000))
    succeed(told, story, "b", json_of(size - 1000))
    cut = [node.output_truncated for node in (await told.view()).nodes]
    assert cut == [False, size > run_view.OUTPUTS_MAX_BYTES]


async def test_an_output_that_is_not_shown_is_not_read() -> None:
    story = Story({"a": ""})
    told = Told(story)
    told.tell(RunStarted("r"))
    succeed(told, story, "a", json_of(run_view.OUTPUTS_MAX_BYTES + 1))
    told.store.blobs.clear()
    (node,) = (await told.view()).nodes
    assert node.output_truncated
