"""A run with `durability: ahead`, without an engine or a worker: what starts before it is on disk, and what waits."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from compiler.catalog import BlockSpec
from compiler.plan import Node, Policy
from executor.errors import Fenced, StoreError
from executor.kernel.core import facts as f
from executor.kernel.core import messages as m
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.run import ahead
from executor.kernel.run.ahead import may_run_ahead
from executor.kernel.run.new_run import new_run, origin_of
from executor.kernel.run.recover import recover
from executor.kernel.store.run_rows import Append, Appended
from executor.kernel.values.payload import INLINE_MAX_BYTES
from tests.support.blocks import Step
from tests.support.documents import chain, document
from tests.support.runs import ended, engine_on
from tests.support.snapshots import often
from tests.support.until import until
from tests.unit.executor.kernel.run.one_run import LEASE_MS, OneRun


class Note(Step):
    """A step that changes something outside; the same key does it once."""

    def __init__(self) -> None:
        super().__init__("note")
        self.spec = BlockSpec("note", "Note", "", "action", effect="write", idempotent=True)


class Mail(Note):
    """One that must not be repeated unasked."""

    def __init__(self) -> None:
        super().__init__()
        self.spec = BlockSpec("mail", "Mail", "", "action", effect="write", idempotent=False)


class Tell:
    """Shows live text, then keeps a checkpoint."""

    spec = BlockSpec("tell", "Tell", "", "action", effect="read")

    async def run(self, ctx: StepContext) -> Done:
        ctx.emit("live")
        await ctx.checkpoint(1)
        return Done({})


class Disk:
    """Keeps appends waiting while `free` is not set. `appends` as "type node", as they come to be."""

    def __init__(self, one: OneRun) -> None:
        self.appends: list[list[str]] = []
        self.free = asyncio.Event()
        self.free.set()
        self.failing = False
        self.asked = 0
        self._append = one.store.append
        one.store.append = self.append

    async def append(self, change: Append) -> Appended:
        self.asked += 1
        await self.free.wait()
        if self.failing:
            raise StoreError("the disk is full")
        appended = await self._append(change)
        self.appends.append([f"{r.type} {r.node}" if r.node else r.type for r in change.records])
        return appended


class Ahead(OneRun):
    disk: Disk
    note: Note
    mail: Mail

    @classmethod
    async def run_of(cls, *edges: str, durability: str = "ahead", **blocks: Any) -> Ahead:
        """`blocks`: those that are no `step`."""
        note, mail = Note(), Mail()
        one = cls(None, note, mail, Tell())
        one.note, one.mail = note, mail
        names = {name for edge in edges for name in (edge.split()[0], edge.split()[-1])} - {"start"}
        made = {name: {"type": "step"} for name in names} | blocks
        data = orjson.dumps(document("one", *edges, blocks=made, settings={"durability": durability}))
        plan = await one.parts.compiler.plan(data)
        start = f.StartRequested(one.clock.now_ms(), "r" * 32)
        await one.store.create_run(new_run(plan, start, origin_of(data, plan), {}))
        one.run, one.recorder = await one.loaded(await one.claim())
        one.disk = Disk(one)
        return one

    async def drive(self) -> asyncio.Task[str]:
        loop, first = await recover(self.parts, self.run.row)
        self.loop_of_run = loop
        return asyncio.create_task(loop.drive(first))

    async def held_back(self, driving: asyncio.Task[str], *ran: str) -> None:
        """The run is at rest with these steps done, and no other one."""
        for _ in range(50):
            await asyncio.sleep(0)
        assert not driving.done()
        assert set(self.step.ran) == set(ran)


@pytest.fixture(autouse=True)
def _late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written because of the time."""
    monkeypatch.setattr(ahead, "HOLD_S", 3600.0)


async def test_what_changes_nothing_is_written_with_the_end_of_the_run() -> None:
    one = await Ahead.run_of("start a", "a b", "b c")
    driving = await one.drive()
    assert await driving == "finished"
    assert one.disk.appends == [
        ["node.started start", "node.succeeded start", "node.started a"],
        [
            *("node.succeeded a", "node.started b", "node.succeeded b", "node.started c"),
            *("node.succeeded c", "run.finished"),
        ],
    ]


async def test_the_first_turn_is_on_disk_before_a_block_starts() -> None:
    one = await Ahead.run_of("start a", "a b")
    one.disk.free.clear()
    driving = await one.drive()
    await one.held_back(driving)
    one.disk.free.set()
    assert await driving == "finished"
    assert set(one.step.ran) == {"a", "b"}


async def test_a_strict_run_writes_each_step() -> None:
    one = await Ahead.run_of("start a", "a b", "b c", durability="strict")
    assert await (await one.drive()) == "finished"
    assert len(one.disk.appends) == 4


async def test_an_effect_waits_for_everything_before_it() -> None:
    one = await Ahead.run_of("start a", "a b", "b sent", "sent c", sent={"type": "note"})
    one.step.holding["a"] = asyncio.Event()
    driving = await one.drive()
    await one.step.until_ran("a")
    one.disk.free.clear()
    one.step.holding["a"].set()
    await one.held_back(driving, "a", "b")
    assert not one.note.ran
    one.disk.free.set()
    assert await driving == "finished"
    assert one.disk.appends[1][-1] == "node.started sent", "in the same append as what it waited for"
    assert one.note.ran == {"sent": 1}


async def test_what_may_not_be_repeated_unasked_is_on_disk_before_anything_follows() -> None:
    one = await Ahead.run_of("start sent", "sent a", "a b", sent={"type": "mail"})
    one.mail.holding["sent"] = asyncio.Event()
    driving = await one.drive()
    await one.mail.until_ran("sent")
    one.disk.free.clear()
    one.mail.holding["sent"].set()
    await one.held_back(driving)
    one.disk.free.set()
    assert await driving == "finished"


async def test_what_follows_an_idempotent_effect_may_be_ahead_of_it_and_it_is_written_at_once() -> None:
    one = await Ahead.run_of("start sent", "sent a", "a b", sent={"type": "note"})
    one.note.holding["sent"], one.step.holding["b"] = asyncio.Event(), asyncio.Event()
    driving = await one.drive()
    await one.note.until_ran("sent")
    asked = one.disk.asked
    one.disk.free.clear()
    one.note.holding["sent"].set()
    await one.held_back(driving, "a", "b")
    assert one.disk.asked == asked + 1
    one.disk.free.set()
    one.step.holding["b"].set()
    assert await driving == "finished"


async def test_an_output_that_lies_beside_the_journal_is_on_disk_before_anything_follows() -> None:
    """The part of a refused end that is kept has events alone."""
    large = {"type": "step", "params": {"value": "x" * INLINE_MAX_BYTES}}
    one = await Ahead.run_of("start a", "a b", "b c", a=large)
    one.step.holding["c"] = asyncio.Event()
    driving = await one.drive()
    await one.step.until_ran("c")
    assert one.disk.appends[-1] == ["node.succeeded a", "node.started b"]
    one.step.holding["c"].set()
    assert await driving == "finished"


async def test_readers_are_woken_when_it_is_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "HOLD_S", 0.0)
    one = await Ahead.run_of("start a", "a b")
    one.step.holding["b"] = asyncio.Event()
    driving = await one.drive()
    await until(lambda: len(one.disk.appends) == 2)
    assert one.disk.appends[1] == ["node.succeeded a", "node.started b"]
    assert one.parts.hub.signals == 2
    one.step.holding["b"].set()
    assert await driving == "finished"


async def test_no_more_turns_are_held_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "TURNS_MAX", 4)
    names = [f"s{n}" for n in range(10)]
    edges = [f"{a} {b}" for a, b in zip(["start", *names], names, strict=False)]
    one = await Ahead.run_of(*edges)
    one.step.holding["s0"] = asyncio.Event()
    driving = await one.drive()
    await one.step.until_ran("s0")
    one.disk.free.clear()
    one.step.holding["s0"].set()
    await one.held_back(driving, *names[:5])
    assert one.disk.asked == 2, "half of them are on their way"
    one.disk.free.set()
    assert await driving == "finished"
    assert sum(map(len, one.disk.appends)) == 2 * 11 + 1


async def test_live_text_and_checkpoints_wait_until_their_attempt_is_on_disk() -> None:
    one = await Ahead.run_of("start a", "a t", "t b", t={"type": "tell"})
    deltas = one.parts.hub.deltas(one.run.id)
    one.step.holding["a"] = asyncio.Event()
    driving = await one.drive()
    await one.step.until_ran("a")
    one.disk.free.clear()
    one.step.holding["a"].set()
    await one.held_back(driving, "a")
    assert await one.store.get_checkpoint(one.run.id, "t") is None
    assert deltas.read() == {}
    assert one.disk.asked == 2, "the checkpoint does not wait for long"
    one.disk.free.set()
    assert await driving == "finished"
    assert deltas.read() == {"t": "live"}
    assert await one.store.get_checkpoint(one.run.id, "t") is not None


async def _written(one: Ahead) -> None:
    assert one.loop_of_run._ahead is not None
    await one.loop_of_run._ahead.write()


async def test_a_failed_append_drops_the_run_and_what_ran_ahead_runs_again() -> None:
    one = await Ahead.run_of("start a", "a b", "b c", "c sent", sent={"type": "note"})
    one.step.holding["c"] = asyncio.Event()
    driving = await one.drive()
    await one.step.until_ran("c")
    one.disk.failing = True
    with pytest.raises(StoreError):
        await _written(one)
    with pytest.raises(StoreError):
        await driving
    assert len(one.loop_of_run.attempts) == 0
    assert one.step.ran == {"a": 1, "b": 1, "c": 1}
    one.disk.failing = False
    one.step.holding["c"].set()
    row = await one.store.get_run(one.run.id)
    assert row is not None
    again, first = await recover(one.parts, row)
    assert [fact.key for fact in first if isinstance(fact, f.AttemptLost)] == [one.key("a")]
    assert await again.drive(first) == "finished"
    assert one.step.ran == {"a": 2, "b": 2, "c": 2}
    assert one.note.ran == {"sent": 1}
    starts = [text for append in one.disk.appends for text in append if text.startswith("node.started")]
    assert starts == [f"node.started {name}" for name in ("start", "a", "a", "b", "c", "sent")]


async def test_after_a_loss_the_run_is_strict_for_as_long_as_it_may_have_been_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ahead, "TURNS_MAX", 4)
    one = await Ahead.run_of("start a", "a b", "b c", "c d", "d e")
    one.begin()
    await one.append()
    row = await one.store.get_run(one.run.id)
    assert row is not None
    loop, first = await recover(one.parts, row)
    assert await loop.drive(first) == "finished"
    last = [append[-1] for append in one.disk.appends[1:]]
    assert last == [*(f"node.started {name}" for name in "abcd"), "run.finished"]


async def test_a_refused_end_keeps_what_ran_ahead() -> None:
    """The run was cancelled while its last block ended."""
    one = await Ahead.run_of("start a", "a b")
    one.step.holding["b"] = asyncio.Event()
    driving = await one.drive()
    await one.step.until_ran("b")
    assert await one.store.cancel_run(one.run.id, m.encode(m.Cancel("enough")), one.clock.now_ms())
    one.step.holding["b"].set()
    assert await driving == "refused"
    assert one.disk.appends[-1] == ["node.succeeded a", "node.started b"]
    row = await one.store.get_run(one.run.id)
    assert row is not None
    loop, first = await recover(one.parts, row, one.loop_of_run.attempts)
    assert not [fact for fact in first if isinstance(fact, f.AttemptLost)]
    assert await loop.drive(first) == "finished"
    assert one.step.ran == {"a": 1, "b": 1}


async def test_a_run_that_stops_writes_what_it_holds() -> None:
    one = await Ahead.run_of("start a", "a b", "b c")
    one.step.holding["b"] = asyncio.Event()
    driving = await one.drive()
    await one.step.until_ran("b")
    one.loop_of_run.stop()
    one.step.holding["b"].set()
    assert await driving == "stopped"
    assert [text for append in one.disk.appends for text in append][-1] == "node.succeeded b"
    row = await one.store.get_run(one.run.id)
    assert row is not None
    assert (row.lease_owner, row.seq) == (None, 7)


async def test_a_snapshot_is_of_what_is_on_disk_and_is_not_put_off() -> None:
    names = [f"s{n}" for n in range(30)]
    one = await Ahead.run_of(*(f"{a} {b}" for a, b in zip(["start", *names], names, strict=False)))
    append, made = one.store.append, []

    async def look(change: Append) -> Appended:
        if change.snapshot is not None:
            made.append((change.snapshot.seq, change.expected_seq, len(change.records)))
        return await append(change)

    one.store.append = look
    with often(every=10):
        assert await (await one.drive()) == "finished"
    assert len(made) >= 4
    assert all(seq == stored and added < 10 for seq, stored, added in made)


async def test_a_run_that_holds_turns_moves_to_another_version_when_they_are_on_disk(tmp_path: Path) -> None:
    step = Step()
    step.holding["b"] = asyncio.Event()
    settings: Any = {"durability": "ahead"}
    async with engine_on(tmp_path / "weft.db", step) as engine:
        await engine.workflows.save(chain("a", "b", "c") | {"settings": settings})
        await engine.workflows.save(chain("a", "b", "c", "d") | {"settings": settings})
        run = (await engine.submit("chain", version=1)).run
        await step.until_ran("b")
        assert (await engine.lifecycle.migrate(run, 2, 60)).moved
        step.holding["b"].set()
        view = await ended(engine, run)
    assert (view.status, step.ran) == ("succeeded", {"a": 1, "b": 1, "c": 1, "d": 1})


async def test_who_waits_for_a_start_hears_that_the_run_was_dropped() -> None:
    one = await Ahead.run_of("start a", "a t", t={"type": "tell"})
    one.step.holding["a"] = asyncio.Event()
    driving = await one.drive()
    await one.step.until_ran("a")
    one.disk.free.clear()
    one.step.holding["a"].set()
    await one.held_back(driving, "a")
    [_] = await one.store.claim("other", one.clock.now_ms() + LEASE_MS + 1, LEASE_MS, limit=1)
    one.disk.free.set()
    with pytest.raises(Fenced):
        await driving
    assert await one.store.get_checkpoint(one.run.id, "t") is None


@pytest.mark.parametrize(
    ("effect", "on_lost", "may"),
    [("none", "retry", True), ("read", "retry", True), ("write", "retry", False), ("read", "ask", False)],
)
def test_which_nodes_may_run_ahead(effect: Any, on_lost: Any, may: bool) -> None:
    assert may_run_ahead(Node("a", "a", "t", "A", effect=effect, policy=Policy(on_lost=on_lost))) is may
