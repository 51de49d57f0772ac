"""Waits of durable functions while their steps run: they open at once, and the code receives their ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weft
from executor.open.engine import Engine
from executor.open.testing.engines import engine
from executor.service.views import WaitView


class Gate:
    """The long step: whether it has begun, and may end."""

    def __init__(self) -> None:
        self.began, self.opened = asyncio.Event(), asyncio.Event()


gates: list[Gate] = []


@pytest.fixture
async def gate() -> Gate:
    gates[:] = [Gate()]
    return gates[0]


@weft.step(effect="read")
async def long() -> str:
    gates[0].began.set()
    await gates[0].opened.wait()
    return "done"


@weft.step(effect="read")
async def quick(what: str) -> str:
    return what


@weft.durable
async def either() -> list[Any]:
    """Which ended first; and what the code did then, while the step that has lost is over."""
    match await weft.first(long(), weft.signal("stop", type=str)):
        case weft.FirstCompleted(0, value):
            return ["step", value]
        case weft.FirstCompleted(_, value):
            return ["signal", value, await quick("after")]


@weft.durable
async def both() -> list[Any]:
    async def asks() -> list[str]:
        answer = await weft.approve("Is it good?")
        return [answer.action, await quick("noted")]

    return list(await weft.gather(long(), asks()))


@weft.durable
async def gives_up() -> str:
    async def asks() -> None:
        await weft.approve("Is it good?")

    asked = asyncio.ensure_future(asks())
    await weft.signal("enough")
    asked.cancel()
    return await long()


async def waits_of(opened: Engine, run: str, count: int) -> list[WaitView]:
    """Return its open waits as soon as they are so many."""
    async with asyncio.timeout(10):
        while len(found := await opened.waits.list(run=run)) != count:
            await asyncio.sleep(0.01)
    return found


async def test_a_signal_is_received_while_a_step_runs_and_ends_it(gate: Gate) -> None:
    async with engine(workflows=[either]) as opened:
        run = (await opened.submit(either)).run
        await waits_of(opened, run, 1)
        await opened.signal(run, "stop", "now")
        view = await opened.wait_finished(run, timeout_s=10)
        assert view.output == ["signal", "now", "after"]


async def test_a_question_can_be_answered_while_a_step_runs_and_its_branch_continues(gate: Gate) -> None:
    async with engine(workflows=[both]) as opened:
        run = (await opened.submit(both)).run
        [wait] = await waits_of(opened, run, 1)
        assert wait.link is not None
        await opened.answer(wait.link, {}, "approve", "ada")
        async with asyncio.timeout(10):
            while len((await opened.runs.node(run, "body")).steps) < 3:
                await asyncio.sleep(0.01)
        assert await opened.waits.list(run=run) == []
        gate.opened.set()
        view = await opened.wait_finished(run, timeout_s=10)
        assert view.output == ["done", ["approve", "noted"]]


async def test_a_question_that_is_not_needed_any_more_closes_while_a_step_runs(gate: Gate) -> None:
    async with engine(workflows=[gives_up]) as opened:
        run = (await opened.submit(gives_up)).run
        await waits_of(opened, run, 2)
        await opened.signal(run, "enough")
        await asyncio.wait_for(gate.began.wait(), 10)
        await waits_of(opened, run, 0)
        gate.opened.set()
        assert (await opened.wait_finished(run, timeout_s=10)).output == "done"


@weft.durable
async def naps(count: int) -> int:
    for _ in range(count):
        await weft.sleep(seconds=0.01)
    return count


async def test_a_short_sleep_passes_in_the_entry_that_began_it() -> None:
    async with weft.open(workflows=[naps]) as opened:
        run = (await opened.submit(naps, count=5)).run
        assert (await opened.wait_finished(run, timeout_s=10)).output == 5
        types = [record.type for record in await opened.parts.store.read_events(run)]
        assert "node.left" not in types and types.count("step.finished") == 5


@weft.durable
async def asks(people: int) -> list[str]:
    async with weft.timeout(days=3):
        answers = await weft.gather(*[weft.approve(f"Is it good for {n}?") for n in range(people)])
    return [answer.action for answer in answers]


async def test_a_question_is_answered_by_its_node_unless_several_are_open() -> None:
    async with engine(workflows=[asks]) as opened:
        one = (await opened.submit(asks, people=1)).run
        await waits_of(opened, one, 2)  # the question, and the timer of the timeout
        await opened.answer(run=one, node="body", action="approve")
        assert (await opened.wait_finished(one, 30)).output == ["approve"]

        two = (await opened.submit(asks, people=2)).run
        questions = [wait.id for wait in await waits_of(opened, two, 3) if wait.kind == "approval"]
        with pytest.raises(weft.Conflict, match="waits for several answers") as refused:
            await opened.answer(run=two, node="body", action="approve")
        assert all(id in str(refused.value.hint) for id in questions)
        for id in questions:
            await opened.answer(run=two, node=id, action="reject")
        assert (await opened.wait_finished(two, 30)).output == ["reject", "reject"]
