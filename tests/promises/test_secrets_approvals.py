"""An approval counts for what the person saw: no run that continues another one has it for other data."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from compiler.catalog import BlockSpec
from executor.errors import Conflict
from executor.kernel.handler.base import Done, StepContext, Suspend
from executor.kernel.run.answers import Answerer
from executor.open.engine import Engine
from executor.service.views import RunView
from tests.support.blocks import Step
from tests.support.documents import call, document, in_a_row
from tests.support.runs import engine_on, outputs, seq_of, settled, token_of, until_event

Json = dict[str, Any]
BOSS = Answerer("user:boss", frozenset({"user:boss"}), "approver")
KINDS: Mapping[str, Json] = {"link": {}, "by": {"by": ["user:boss"]}, "four eyes": {"not_starter": True}}


def payment(**asked: Any) -> Json:
    asks = {"type": "approval", "params": {"title": "Pay <start.to>?", **asked}}
    blocks = {"ask": asks, "pay": {"type": "pay", "params": {"value": "<start.to>"}}, "last": {"type": "step"}}
    return document("payment", "start ask", "ask approve pay", "pay last", blocks=blocks)


class World:
    def __init__(self, engine: Engine, pay: Step) -> None:
        self.engine = engine
        self.pay = pay

    async def approve(self, run: str) -> RunView:
        """The boss answers all that is open, in this run and below it."""
        await settled(self.engine, run)
        view = await self.engine.runs.view(run)
        for wait in [*view.waits, *view.child_waits]:
            if wait.link is not None:
                await self.engine.answer(token_of(wait.link), {}, "approve", who=BOSS)
        return await settled(self.engine, run)

    async def approved(self, of: Any, **input: Any) -> str:
        run = (await self.engine.submit(of, input={"to": "acct-1", **input})).run
        assert (await self.approve(run)).status == "succeeded"
        assert sum(self.pay.ran.values()) == 1
        return run

    async def assert_asks(self, run: str, title: str | None) -> RunView:
        """The run waits for a person again, has paid nothing, and shows the data that it has. Then it is answered."""
        paid = sum(self.pay.ran.values())
        view = await settled(self.engine, run)
        assert view.status == "waiting" and sum(self.pay.ran.values()) == paid
        assert title is None or view.waits[0].title == title
        done = await self.approve(run)
        assert done.status == "succeeded"
        return done


@asynccontextmanager
async def world(tmp_path: Path) -> AsyncIterator[World]:
    pay = Step("pay", careful=True)
    async with engine_on(tmp_path / "weft.db", pay, Step()) as engine:
        yield World(engine, pay)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("after", ["wait.closed", "node.succeeded", "pay"])
async def test_a_fork_with_other_data_asks_again(tmp_path: Path, kind: str, after: str) -> None:
    async with world(tmp_path) as at:
        run = await at.approved(payment(**KINDS[kind]))
        node, type = ("pay", "node.started") if after == "pay" else ("ask", after)
        seq = await seq_of(at.engine, run, type, node)
        forked = await at.engine.lifecycle.fork(run, seq, {"start": {"to": "acct-EVE"}})
        assert forked.seq < seq
        done = await at.assert_asks(forked.run, "Pay acct-EVE?")
        assert outputs(done)["pay"]["value"] == "acct-EVE"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_fork_after_the_payment_does_not_repeat_it_unasked(tmp_path: Path, kind: str) -> None:
    async with world(tmp_path) as at:
        run = await at.approved(payment(**KINDS[kind]))
        seq = await seq_of(at.engine, run, "node.succeeded", "pay")
        with pytest.raises(Conflict, match="done again") as refused:
            await at.engine.lifecycle.fork(run, seq, {"start": {"to": "acct-EVE"}})
        assert refused.value.code == "answer_not_carried"
        before = refused.value.extra["seq"]
        await at.assert_asks((await at.engine.lifecycle.fork(run, before)).run, "Pay acct-1?")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_fork_with_the_same_data_keeps_the_answer_unless_another_person_must_give_it(
    tmp_path: Path, kind: str
) -> None:
    async with world(tmp_path) as at:
        run = await at.approved(payment(**KINDS[kind]))
        seq = await seq_of(at.engine, run, "node.succeeded", "ask")
        same = {"start": outputs(await at.engine.runs.view(run))["start"]}
        for edits in ({}, same):
            forked = await at.engine.lifecycle.fork(run, seq, edits)
            if kind == "four eyes":
                await at.assert_asks(forked.run, "Pay acct-1?")
            else:
                assert (await settled(at.engine, forked.run)).status == "succeeded"


@pytest.mark.parametrize("kind", KINDS)
async def test_the_answer_itself_is_not_edited(tmp_path: Path, kind: str) -> None:
    async with world(tmp_path) as at:
        run = await at.approved(payment(**KINDS[kind]))
        seq = await seq_of(at.engine, run, "node.succeeded", "ask")
        with pytest.raises(Conflict) as refused:
            await at.engine.lifecycle.fork(run, seq, {"ask": {"action": "approve", "answered_by": "user:ceo"}})
        assert refused.value.code == "answer_not_carried"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_run_from_the_block_behind_it(tmp_path: Path, kind: str) -> None:
    async with world(tmp_path) as at:
        run = await at.approved(payment(**KINDS[kind]))
        assert ("ask" in (await at.engine.lifecycle.preview_run_from(run, "pay")).again) == (kind == "four eyes")
        for again in (await at.engine.lifecycle.run_from(run, "pay"), await at.engine.lifecycle.retry(run, "pay")):
            if kind == "four eyes":
                await at.assert_asks(again.run, "Pay acct-1?")
            else:
                assert (await settled(at.engine, again.run)).status == "succeeded"
        await at.assert_asks((await at.engine.lifecycle.run_from(run, "pay", input={"to": "acct-EVE"})).run, None)


async def test_asking_again_does_not_pay_again(tmp_path: Path) -> None:
    async with world(tmp_path) as at:
        run = await at.approved(payment(not_starter=True))
        again = await at.engine.lifecycle.run_from(run, "last")
        await at.assert_asks(again.run, "Pay acct-1?")
        assert at.pay.ran == {"pay": 1}, "its output is taken over, once the question is answered"


async def test_an_answer_that_was_taken_over_is_no_weaker(tmp_path: Path) -> None:
    async with world(tmp_path) as at:
        run = await at.approved(payment(by=["user:boss"]))
        again = (await at.engine.lifecycle.run_from(run, "pay")).run
        assert (await settled(at.engine, again)).status == "succeeded"
        third = await at.engine.lifecycle.run_from(again, "pay", input={"to": "acct-EVE"})
        await at.assert_asks(third.run, None)
        seq = await seq_of(at.engine, again, "node.started", "pay")
        forked = await at.engine.lifecycle.fork(again, seq, {"start": {"to": "acct-EVE"}})
        await at.assert_asks(forked.run, "Pay acct-EVE?")


async def test_a_second_question_is_asked_again_with_the_first(tmp_path: Path) -> None:
    async with world(tmp_path) as at:
        asks: Json = {
            "first": {"type": "approval", "params": {"title": "One?", "not_starter": True}},
            "second": {"type": "approval", "params": {"title": "Two?"}},
        }
        blocks = {**asks, "pay": {"type": "pay", "params": {"value": "<start.to>"}}}
        edges = ("start first", "first approve second", "second approve pay")
        source = (await at.engine.submit(document("two", *edges, blocks=blocks), input={"to": "acct-1"})).run
        await at.approve(source)
        assert (await at.approve(source)).status == "succeeded"
        again = (await at.engine.lifecycle.run_from(source, "pay")).run
        assert [(await settled(at.engine, again)).waits[0].title] == ["One?"]
        await at.approve(again)
        assert [(await settled(at.engine, again)).waits[0].title] == ["Two?"]


@pytest.mark.parametrize("kind", KINDS)
async def test_an_approval_in_a_child_run_counts_for_what_the_child_was_given(tmp_path: Path, kind: str) -> None:
    async with world(tmp_path) as at:
        child = {"ask": {"type": "approval", "params": {"title": "Pay <start.to>?", **KINDS[kind]}}}
        blocks = {
            "check": call("child", input={"to": "<start.to>"}),
            "pay": {"type": "pay", "params": {"value": "<start.to>"}},
        }
        await at.engine.workflows.save(document("child", "start ask", blocks=child), "child")
        run = await at.approved(in_a_row("parent", blocks))
        seq = await seq_of(at.engine, run, "node.succeeded", "check")
        with pytest.raises(Conflict) as refused:
            await at.engine.lifecycle.fork(run, seq, {"start": {"to": "acct-EVE"}})
        assert refused.value.code == "answer_not_carried"
        edited = await at.engine.lifecycle.fork(run, refused.value.extra["seq"], {"start": {"to": "acct-EVE"}})
        view = await settled(at.engine, edited.run)
        assert view.status == "waiting" and at.pay.ran == {"pay": 1}
        with pytest.raises(Conflict) as refused:
            await at.engine.lifecycle.run_from(run, "pay", input={"to": "acct-EVE"})
        assert (refused.value.code, refused.value.hint) == ("answer_not_carried", "run from 'check'")
        if kind == "four eyes":
            for continued in (at.engine.lifecycle.run_from(run, "pay"), at.engine.lifecycle.fork(run, seq)):
                with pytest.raises(Conflict) as refused:
                    await continued
                assert refused.value.code == "answer_not_carried"
        else:
            assert (await settled(at.engine, (await at.engine.lifecycle.fork(run, seq)).run)).status == "succeeded"


class Caller:
    """Block type `caller`: asks before it does something, as an agent does before it calls a tool."""

    spec = BlockSpec("caller", "Caller", "", "action", params={"type": "object"}, effect="write")

    async def run(self, ctx: StepContext) -> Done:
        to = ctx.params["to"]
        asked = Suspend("approval", request={"title": f"Send to {to}?"}, actions=("approve", "reject"))
        await ctx.wait(asked, name="approve send")
        await ctx.wait(Suspend("signal", name="go"), name="hold")
        return Done({"sent": to})


async def test_an_approval_inside_a_block_counts_for_its_params(tmp_path: Path) -> None:
    blocks = {"agent": {"type": "caller", "params": {"to": "<start.to>"}}}
    async with engine_on(tmp_path / "weft.db", Caller()) as engine:
        run = (await engine.submit(in_a_row("agent", blocks), input={"to": "acct-1"})).run
        [asked] = (await settled(engine, run)).waits
        await engine.answer(token_of(asked.link), {}, "approve")
        seq = await until_event(engine, run, "wait.opened", "agent", 2)
        forked = await engine.lifecycle.fork(run, seq, {"start": {"to": "acct-EVE"}})
        view = await settled(engine, forked.run)
        assert [(wait.kind, wait.title) for wait in view.waits] == [("approval", "Send to acct-EVE?")]
        same = (await engine.lifecycle.fork(run, seq)).run
        assert [wait.kind for wait in (await engine.runs.view(same)).waits] == ["signal"]


def held(before: Json, **asked: Any) -> Json:
    """With a wait after the approval, during which the run can move to another version."""
    made = payment(**asked)
    made["blocks"] |= {"before": before, "hold": {"type": "signal", "params": {"name": "go"}}}
    made["edges"] = [{"source": a, "target": b} for a, b in (("start", "before"), ("before", "ask"), ("hold", "pay"))]
    made["edges"].append({"source": "ask", "handle": "approve", "target": "hold"})
    return made


@pytest.mark.parametrize(("kind", "changed", "moves"), [
    ("by", "before", False),
    ("by", "text", False),
    ("link", "before", False),
    ("link", "text", False),
    ("by", "last", True),
    ("four eyes", "last", False),
])  # fmt: skip
async def test_a_run_moves_to_another_version_with_the_answers_that_count_there(
    tmp_path: Path, kind: str, changed: str, moves: bool
) -> None:
    async with world(tmp_path) as at:
        before: Json = {"type": "step", "params": {"value": "acct-1"}}
        one = held(before, **KINDS[kind])
        await at.engine.workflows.save(one, "payment")
        run = (await at.engine.submit("payment", input={"to": "acct-1"})).run
        await at.approve(run)
        two = held(before, **KINDS[kind])
        if changed == "before":
            two["blocks"]["before"] = {"type": "step", "params": {"value": "acct-EVE"}}
        elif changed == "text":
            two["blocks"]["ask"]["params"]["title"] = "Lunch?"
        else:
            two["blocks"]["more"] = {"type": "step"}
            two["edges"].append({"source": "pay", "target": "more"})
        saved = await at.engine.workflows.save(two, "payment")
        if moves:
            assert (await at.engine.lifecycle.migrate(run, saved.version)).moved
        else:
            with pytest.raises(Conflict) as refused:
                await at.engine.lifecycle.migrate(run, saved.version)
            assert refused.value.code == "migration_conflict" and "answered" in refused.value.message
