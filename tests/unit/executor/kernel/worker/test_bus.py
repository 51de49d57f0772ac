"""Processes on one database that wake each other. Looks by time are out of reach here: what happens, happens by a
message, except where the bus is dead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.python import Python
from executor.blocks.types.registry import Registry
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.worker import missing
from executor.kernel.worker.bus import Message
from executor.kernel.worker.worker import STALLS_MAX
from executor.open.engine import Engine
from tests.support.blocks import Hold, Speak
from tests.support.documents import document
from tests.support.runs import SECRET, engine_on, until_event
from tests.support.until import until

NEVER_S = 1_000.0
HELD = document("d", "start a", blocks={"a": {"type": "hold"}})


class Wire:
    """Connects buses; `cut`: none of them hears a thing."""

    def __init__(self) -> None:
        self.ends: list[End] = []
        self.cut = False
        self.said: list[Message] = []


class End:
    """A bus. Equal messages of one pass of the event loop are one."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._queue: dict[Message, None] = {}
        self.hear: Callable[[Sequence[Message]], None] = lambda messages: None
        wire.ends.append(self)

    def open(self, hear: Callable[[Sequence[Message]], None], connected: Callable[[], None]) -> None:
        self.hear = hear
        connected()

    def post(self, topic: str, item: str) -> None:
        if not self._queue:
            asyncio.get_running_loop().call_soon(self._send)
        self._queue[topic, item] = None

    def _send(self) -> None:
        messages, self._queue = list(self._queue), {}
        self._wire.said += messages
        for end in self._wire.ends:
            if end is not self and not self._wire.cut:
                end.hear(messages)

    async def close(self) -> None:
        self._wire.ends.remove(self)


@asynccontextmanager
async def process(file: Path, wire: Wire, *blocks: Any, work: bool = True) -> AsyncIterator[Engine]:
    sandbox = Sandbox(threads=1)
    engine = await Engine.open(
        SQLiteStore(file),
        registry=Registry.load(blocks, sandbox=sandbox),
        services=Services(sandbox=sandbox, http=GuardedClient()),
        secret=SECRET,
        work=work,
        bus=End(wire),
    )
    try:
        yield engine
    finally:
        await engine.close(grace_s=1)


@pytest.fixture
def no_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("executor.kernel.worker.worker.IDLE_MAX_S", NEVER_S)
    monkeypatch.setattr("executor.kernel.read.cursor.LOOK_S", NEVER_S)
    monkeypatch.setattr("executor.kernel.read.cursor.QUICK_S", NEVER_S)
    for name in ("WAIT_POLL_S", "FIRST_POLL_S"):
        monkeypatch.setattr(f"executor.service.topics.runs.{name}", NEVER_S)


async def test_a_run_of_a_front_is_claimed_followed_and_waited_for(tmp_path: Path, no_looks: None) -> None:
    wire, hold = Wire(), Hold()
    file = tmp_path / "weft.db"
    async with process(file, wire, Hold(), work=False) as front, process(file, wire, hold) as worker:
        run = (await front.submit(HELD)).run
        waiting = asyncio.create_task(front.wait_finished(run, 60))
        await until_event(front, run, "node.started", "a")
        assert len(worker.parts.owned) == 1
        hold.free.set()
        assert (await waiting).status == "succeeded"
        await until_event(front, run, "run.finished")


async def test_a_cancel_reaches_the_owner_at_another_process(tmp_path: Path, no_looks: None) -> None:
    wire, file = Wire(), tmp_path / "weft.db"
    async with process(file, wire, Hold(), work=False) as front, process(file, wire, Hold()):
        run = (await front.submit(HELD)).run
        await until_event(front, run, "node.started", "a")
        assert await front.cancel(run)
        await until_event(front, run, "run.finished")
        row = await front.store.get_run(run)
        assert row is not None and row.status == "cancelled"


async def test_runs_of_a_worker_that_stops_are_claimed_by_another(tmp_path: Path, no_looks: None) -> None:
    wire, file = Wire(), tmp_path / "weft.db"
    first, second = Hold(), Hold()
    async with process(file, wire, second) as last:
        async with process(file, wire, first) as stops:
            run = (await stops.submit(HELD)).run
            await until_event(stops, run, "node.started", "a")
        await until(lambda: run in last.parts.owned.loops)


async def test_live_text_is_sent_only_while_it_is_followed(tmp_path: Path, no_looks: None) -> None:
    wire, file, gate = Wire(), tmp_path / "weft.db", Hold()
    speaks = {"a": {"type": "hold"}, "b": {"type": "speak", "params": {"pieces": ["x", "x", "y" * 20_000]}}}
    plan = document("d", "start a", "a b", blocks=speaks)
    async with process(file, wire, Hold(), Speak(), work=False) as front, process(file, wire, gate, Speak()) as worker:
        run = (await front.submit(plan)).run
        deltas = front.events.deltas(run)
        await until_event(front, run, "node.started", "a")
        gate.free.set()
        await until_event(front, run, "run.finished")
        text = await until(lambda: deltas.read().get("b"))
        assert text.startswith("xxy") and 6_000 < len(text) < 8_000, "joined and cut"
        deltas.close()
        worker.parts.peers.followed.clear()
        wire.said.clear()
        other = (await front.submit(plan)).run
        await until(lambda: _is_over(front, other))
        assert not [message for message in wire.said if message[0] in ("text", "run", "left")]


async def _is_over(engine: Engine, run: str) -> bool:
    row = await engine.store.get_run(run)
    return row is not None and row.status == "succeeded"


async def test_all_of_it_is_found_with_a_dead_bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("executor.kernel.worker.worker.IDLE_MAX_S", 0.05)
    wire, hold, file = Wire(), Hold(), tmp_path / "weft.db"
    wire.cut = True
    async with process(file, wire, Hold(), work=False) as front, process(file, wire, hold):
        run = (await front.submit(HELD)).run
        await until_event(front, run, "node.started", "a")
        hold.free.set()
        assert (await front.wait_finished(run, 60)).status == "succeeded"
        await until_event(front, run, "run.finished")


async def test_messages_of_other_versions_are_passed_over(tmp_path: Path) -> None:
    wire = Wire()
    async with process(tmp_path / "weft.db", wire):
        wire.ends[0].hear(
            [("new topic", "x"), ("text", "not json"), ("run", "no such run"), ("left", ""), ("inbox", "")]
        )


async def test_a_run_goes_to_the_process_that_has_its_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with two versions side by side: the older one gives it back, as often as it gets it, and it fails nowhere."""
    monkeypatch.setattr(missing, "AGAIN_S", (0.001, 0.002))
    path, wire, hold = tmp_path / "weft.db", Wire(), Hold()
    async with process(path, wire, hold, work=False) as newer, process(path, wire) as older:
        run = (await newer.submit(HELD)).run
        await until(lambda: older.figures.claims > STALLS_MAX + 1)  # it is not what takes down its worker
        seen = await newer.runs.view(run)
        assert [node.status for node in seen.nodes if node.key == "a"] == [], seen
        async with process(path, wire, hold):
            hold.free.set()
            await until_event(newer, run, "run.finished")
        assert (await newer.runs.row(run)).status == "succeeded"


async def test_a_run_goes_to_the_process_that_has_its_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(missing, "AGAIN_S", (0.001, 0.002))
    path, wire = tmp_path / "weft.db", Wire()
    first, second = Python({"first": lambda: 1}), Python({"first": lambda: 1, "second": lambda: 2})
    calls = document("d", "start a", blocks={"a": {"type": "python", "params": {"function": "second"}}})
    async with process(path, wire, second, work=False) as front, process(path, wire, first) as without:
        run = (await front.submit(calls)).run
        await until(lambda: without.figures.claims > STALLS_MAX + 1)
        async with process(path, wire, second):
            await until_event(front, run, "run.finished")
        assert (await front.runs.row(run)).status == "succeeded"
    assert (
        caplog.messages.count(
            f"run {run} needs Python function 'second' (this process has first), which this process lacks: "
            "it waits for a process that has it"
        )
        == 1
    )


async def test_without_others_a_run_waits_for_its_block_type(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    async with process(path, Wire(), Hold(), work=False) as newer:
        run = (await newer.submit(HELD)).run
    async with engine_on(path) as alone:
        await until(lambda: alone.parts.owned.missing)
        assert (await alone.runs.view(run)).lacks == "block type 'hold'"
        await alone.cancel(run)
        await until_event(alone, run, "run.finished")
        assert (await alone.runs.row(run)).status == "cancelled"
