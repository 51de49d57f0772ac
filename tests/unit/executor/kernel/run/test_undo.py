"""A run of a durable function that is cancelled: what its code sees, and what it may do then."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

import weft
from executor.kernel.journal.codec import data_of
from executor.open.engine import Engine
from executor.open.testing.engines import ManualClock, engine
from executor.open.testing.play import CANCEL, finish
from executor.service.views import RunView
from tests.support.durable_functions import after, do, outside

Made = weft.DurableFunction[..., Any]


async def cancelled(flow: Made, answers: Any = None, *, more: tuple[Made, ...] = (), **arguments: Any) -> RunView:
    """Play a run, which one of the answers cancels."""
    outside.clear()
    async with engine(workflows=[flow, *more]) as opened:
        run = (await opened.submit(flow, **arguments)).run
        return await finish(opened, run, {"never": CANCEL, **(answers or {})})


def effects() -> list[Any]:
    return [effect.what for effect in outside.effects]


async def until(opened: Engine, run: str, type: str, name: str = "") -> None:
    """Wait for an event of the run, of a step with this name."""
    while True:
        for one in await opened.store.read_events(run):
            if one.type == type and name in data_of(one).get("name", ""):
                return
        await asyncio.sleep(0.005)


async def types_after(opened: Engine, run: str, type: str) -> list[str]:
    types = [one.type for one in await opened.store.read_events(run)]
    return types[types.index(type) + 1 :]


@weft.durable
async def saga(order: str) -> str:
    undo: list[str] = []
    try:
        undo.append(f"release {await do(order)}")
        await weft.signal("never")
        return "sent"
    except (weft.Cancelled, TimeoutError):
        for what in reversed(undo):
            await do(what)
        await weft.sleep(hours=1)
        answer = await weft.approve("Is it released?")
        await do(f"{answer.action} at {weft.now():%H:%M}")
        raise


async def test_the_code_sees_a_cancel_where_it_waits_and_compensates_with_steps_and_waits() -> None:
    view = await cancelled(saga_of_two_hours, {"Is it released?": "approve"}, order="7")
    assert (view.status, view.error) == ("cancelled", None)
    assert effects() == ["7", "release 7", "approve at 09:00"]
    assert {node.key: node.status for node in view.nodes} == {
        "start": "succeeded",
        "body": "cancelled",
        "undo@:finally": "succeeded",
    }


saga_of_two_hours = weft.durable(undo=timedelta(hours=2))(saga.function)


async def test_the_time_for_it_is_limited() -> None:
    view = await cancelled(saga, order="7")
    [undo] = [node for node in view.nodes if node.key == "undo@:finally"]
    assert view.status == "cancelled" and undo.status == "cancelled" and effects() == ["7", "release 7"]


async def test_a_second_cancel_ends_it() -> None:
    outside.clear()
    async with engine(workflows=[saga]) as opened:
        run = (await opened.submit(saga, order="7")).run
        await until(opened, run, "run.parked")
        await opened.cancel(run)
        await until(opened, run, "step.started", "sleep")
        await opened.cancel(run)
        view = await finish(opened, run)
    assert view.status == "cancelled" and effects() == ["7", "release 7"]


@weft.step
async def slow_write(text: str) -> str:
    await asyncio.sleep(0.05)
    outside.record(text)
    return text


@weft.step(effect="read")
async def slow_read(text: str) -> str:
    await asyncio.sleep(30)
    return text


@weft.durable
async def at_a_step(effect: str) -> None:
    paid = None
    try:
        paid = await (slow_write("pay") if effect == "write" else slow_read("look"))
        await do("more")
    except weft.Cancelled:
        await do(f"undo {paid}")
        raise


@pytest.mark.parametrize(("effect", "done"), [("write", ["pay", "undo pay"]), ("read", ["undo None"])])
async def test_a_step_that_changes_something_ends_first_and_its_output_is_known(effect: str, done: list[str]) -> None:
    outside.clear()
    async with engine(workflows=[at_a_step]) as opened:
        run = (await opened.submit(at_a_step, effect=effect)).run
        await until(opened, run, "step.started", "slow_")
        await opened.cancel(run)
        view = await finish(opened, run)
    assert (view.status, effects()) == ("cancelled", done)


@weft.durable
async def done_by_then() -> str:
    return await slow_write("pay")


async def test_a_function_that_returns_before_it_sees_the_cancel_has_undone_nothing() -> None:
    outside.clear()
    async with engine(workflows=[done_by_then]) as opened:
        run = (await opened.submit(done_by_then)).run
        await until(opened, run, "step.started", "slow_")
        await opened.cancel(run)
        view = await finish(opened, run)
    [undo] = [node for node in view.nodes if node.key == "undo@:finally"]
    assert undo.error is not None
    assert (view.status, undo.error["code"], effects()) == ("cancelled", "cancelled_late", ["pay"])


@weft.durable
async def careless(order: str) -> str:
    await do(order)
    await weft.signal("never")
    return order


async def test_a_function_that_does_not_see_it_costs_three_events() -> None:
    outside.clear()
    async with engine(workflows=[careless]) as opened:
        run = (await opened.submit(careless, order="7")).run
        await finish(opened, run, {"never": CANCEL})
        assert await types_after(opened, run, "run.cancelling") == [
            "wait.closed", "cleanup.opened", "node.started", "node.succeeded", "run.finished",
        ]  # fmt: skip


async def test_a_run_that_is_not_cancelled_has_no_event_of_it() -> None:
    async with engine(workflows=[careless]) as opened:
        run = (await opened.submit(careless, order="7")).run
        view = await finish(opened, run, {"never": "yes"})
        assert view.status == "succeeded" and [node.key for node in view.nodes] == ["start", "body"]
        assert (await types_after(opened, run, "node.left"))[-2:] == ["node.succeeded", "run.finished"]


@weft.durable
async def with_finally() -> None:
    try:
        await weft.signal("never")
    finally:
        await do("finally")


@weft.durable
async def swallowing() -> str:
    try:
        await weft.signal("never")
    except weft.Cancelled:
        await do("swallowed")
    return "done"


@weft.durable
async def failing() -> None:
    try:
        await weft.signal("never")
    except weft.Cancelled:
        await do("first")
        raise ValueError("the bank is closed") from None


@pytest.mark.parametrize(("flow", "done"), [(with_finally, "finally"), (swallowing, "swallowed"), (failing, "first")])
async def test_the_run_ends_as_cancelled_whatever_the_code_does(flow: Made, done: str) -> None:
    view = await cancelled(flow)
    [undo] = [node for node in view.nodes if node.key == "undo@:finally"]
    assert (view.status, view.error, effects()) == ("cancelled", None, [done])
    if flow is failing:
        assert undo.error is not None and "ValueError: the bank is closed" in undo.error["message"]


@weft.durable
async def branches() -> None:
    async def branch(name: str) -> None:
        try:
            await do(name)
            await weft.signal("never")
        except weft.Cancelled:
            await weft.sleep(minutes=1)
            await do(f"undo {name}")
            raise

    async with asyncio.TaskGroup() as group:
        group.create_task(branch("a"))
        group.create_task(branch("b"))


async def test_each_branch_compensates() -> None:
    view = await cancelled(branches)
    assert view.status == "cancelled"
    assert (sorted(effects()[:2]), sorted(effects()[2:])) == (["a", "b"], ["undo a", "undo b"])


@weft.durable
async def shielded() -> None:
    try:
        async with weft.shield():
            async with weft.shield():
                await do("in the shield")
            try:
                async with weft.timeout(minutes=1):
                    await weft.signal("never")
            except TimeoutError:
                await do("the time is over")
        await do("not begun")
    except weft.Cancelled:
        await do("undone")
        raise


async def test_a_shield_ends_before_the_cancel_is_seen_and_timeouts_in_it_work() -> None:
    view = await cancelled(shielded)
    assert (view.status, effects()) == ("cancelled", ["in the shield", "the time is over", "undone"])


@weft.durable
async def shields_in_a_row() -> None:
    async def work(n: int) -> None:
        while True:
            async with weft.shield():
                await weft.sleep(minutes=1 + n)
                await do(f"{n} at {weft.now():%H:%M}")

    await weft.gather(work(0), work(1))


async def test_no_shield_begins_when_a_cancel_waits_for_others() -> None:
    outside.clear()
    async with engine(workflows=[shields_in_a_row]) as opened:
        clock = opened.parts.clock
        assert isinstance(clock, ManualClock)
        run = (await opened.submit(shields_in_a_row)).run
        await until(opened, run, "run.parked")
        await opened.cancel(run)
        view = await finish(opened, run)
    assert (view.status, effects()) == ("cancelled", ["0 at 08:01", "1 at 08:02"])


@weft.durable(timeout=0.1)
async def too_slow() -> None:
    try:
        await after(30, "slow")
    except weft.Cancelled:
        await do("undo")
        raise


async def test_a_time_limit_is_seen_as_a_cancel_and_the_run_fails() -> None:
    outside.clear()
    async with engine(workflows=[too_slow]) as opened:
        run = (await opened.submit(too_slow)).run
        view = await finish(opened, run)
    assert view.error is not None
    assert (view.status, view.error["code"], effects()) == ("failed", "run_timeout", ["undo"])


@weft.durable
async def child(name: str) -> str:
    try:
        await do(name)
        await weft.signal("never", days=9)
    except weft.Cancelled:
        await weft.sleep(minutes=1)
        await do(f"undo {name}")
        raise
    return name


@weft.durable
async def parent() -> None:
    try:
        await child("child")
    except weft.Cancelled:
        await do("undo the parent")
        await called("called by the compensation")
        raise


@weft.durable
async def called(name: str) -> str:
    return await do(name)


async def test_the_child_of_a_run_is_cancelled_with_it_and_compensates_first() -> None:
    view = await cancelled(parent)
    assert view.status == "cancelled"
    assert effects() == ["child", "undo child", "undo the parent", "called by the compensation"]


@weft.durable
async def numbers() -> None:
    before = weft.uuid(), weft.random().random()
    try:
        await do(f"{before}")
        await weft.signal("never")
    finally:
        await do(f"{before}")


async def test_random_values_are_the_same_in_the_compensation() -> None:
    await cancelled(numbers)
    assert len(set(effects())) == 1 and len(effects()) == 2


@weft.durable
async def with_open_waits() -> None:
    started = await weft.start(child, "started")
    async with weft.callback() as paid:
        try:
            await do("after")
            await paid
        except weft.Cancelled:
            await do(f"undo {started.run != '' and paid.url != ''}")
            raise


async def test_runs_that_it_has_started_end_first_and_open_callbacks_close() -> None:
    outside.clear()
    async with engine(workflows=[with_open_waits, child]) as opened:
        run = (await opened.submit(with_open_waits)).run
        await until(opened, run, "run.parked")
        [started] = [one.id for one in await opened.store.list_runs() if one.id != run]
        await until(opened, started, "run.parked")
        await opened.cancel(run)
        view = await finish(opened, run)
        assert [wait.kind for wait in await opened.waits.list(run=run)] == []
    assert (view.status, effects()[-2:]) == ("cancelled", ["undo started", "undo True"])


@weft.durable
async def timed_out() -> None:
    try:
        async with weft.timeout(minutes=5):
            await child("late")
    except TimeoutError:
        await weft.sleep(hours=1)
        await do("continues")


async def test_a_child_run_that_a_timeout_drops_is_cancelled() -> None:
    outside.clear()
    async with engine(workflows=[timed_out]) as opened:
        run = (await opened.submit(timed_out)).run
        view = await finish(opened, run)
    assert (view.status, effects()) == ("succeeded", ["late", "undo late", "continues"])
