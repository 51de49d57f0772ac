"""Callbacks and child runs that a durable function has in hand while they are open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import weft
from executor.errors import AnswerInvalid, WeftError
from executor.kernel.journal.codec import data_of
from executor.open.engine import Engine
from executor.open.testing.crashes import crash_everywhere
from executor.open.testing.engines import engine, settled
from executor.open.testing.play import finish
from server.scripted_model import ScriptedModel
from tests.support.durable_functions import do, outside
from tests.support.postgres_crashes import crash_after_each_commit
from tests.support.size import size


class Paid(msgspec.Struct):
    amount: float


@weft.step(effect="none")
async def send(url: str) -> int:
    outside.record(url)
    return len(url)


@weft.durable
async def paying() -> list[Any]:
    seen: list[Any] = []
    async with weft.callback(type=Paid, title="the bank", hours=2) as paid:
        seen.append(await send(paid.url) == len(paid.url))
        await weft.sleep(minutes=1)
        try:
            seen.append((await paid).amount)
        except TimeoutError as error:
            seen.append(str(error))
    await weft.sleep(minutes=1)
    return seen


async def called(opened: Engine, run: str, body: Any) -> None:
    (wait,) = [wait for wait in await opened.waits.list(run=run) if wait.kind == "webhook"]
    assert wait.link is not None
    await opened.callbacks.receive(wait.link.rpartition("/")[2], body, {})


def sent() -> list[Any]:
    return [effect.what for effect in outside.effects]


async def test_a_callback_has_its_address_before_it_is_awaited() -> None:
    outside.clear()
    async with engine(workflows=[paying]) as opened:
        run = (await opened.submit(paying)).run
        await settled(opened)
        (wait,) = [wait for wait in await opened.waits.list(run=run) if wait.kind == "webhook"]
        assert sent() == [wait.link] and wait.title == "the bank"
        with pytest.raises(AnswerInvalid):
            await called(opened, run, {"amount": "a lot"})
        await called(opened, run, {"amount": 3})
        assert (await finish(opened, run)).output == [True, 3.0]
        assert len(sent()) == 1
        assert wait.link is not None
        with pytest.raises(WeftError):
            await opened.callbacks.receive(wait.link.rpartition("/")[2], {"amount": 3}, {})


async def test_the_address_is_in_no_event() -> None:
    outside.clear()
    async with engine(workflows=[paying]) as opened:
        run = (await opened.submit(paying)).run
        await settled(opened)
        (url,) = sent()
        records = await opened.store.read_events(run)
        assert not [record for record in records if url.encode() in (record.data or b"") + (record.output or b"")]
        (shown,) = [data_of(r)["shown"] for r in records if data_of(r).get("name", "").endswith(".send")]
        assert shown == {"url": "callback body!2"}


async def test_no_callback_in_time() -> None:
    async with engine(workflows=[paying]) as opened:
        run = (await opened.submit(paying)).run
        assert (await finish(opened, run)).output == [True, "no callback arrived in time"]


@weft.durable
async def either() -> str:
    async with weft.callback() as called:
        await send(called.url)
        match await weft.first(called, weft.signal("stop")):
            case weft.FirstCompleted(0, body):
                return f"called with {body}"
            case _:
                pass
    await weft.sleep(hours=1)
    return "stopped"


@pytest.mark.parametrize("stop", [True, False])
async def test_the_first_of_a_callback_and_a_signal(stop: bool) -> None:
    async with engine(workflows=[either]) as opened:
        run = (await opened.submit(either)).run
        await settled(opened)
        if stop:
            await opened.signal(run, "stop")
        else:
            await called(opened, run, 7)
        await settled(opened)
        assert not [wait for wait in await opened.waits.list(run=run) if wait.kind in ("webhook", "signal")]
        assert (await finish(opened, run)).output == ("stopped" if stop else "called with 7")


@weft.durable
async def undone() -> None:
    async with weft.callback() as called:
        await send(called.url)
        try:
            await called
        except weft.Cancelled:
            await do("undone")
            raise


async def test_a_cancel_of_a_function_that_waits_for_a_callback() -> None:
    outside.clear()
    async with engine(workflows=[undone]) as opened:
        run = (await opened.submit(undone)).run
        await settled(opened)
        await opened.cancel(run)
        assert (await finish(opened, run)).status == "cancelled"
        assert sent()[-1] == "undone"


def test_a_callback_is_awaited_where_it_is_open() -> None:
    with pytest.raises(RuntimeError, match=r"async with weft\.callback"):
        weft.callback().__await__().send(None)


# --- child runs ---


@weft.durable
async def part(n: int, days: int = 1) -> str:
    await weft.sleep(days=days)
    await do(f"part {n}")
    return f"part {n} done"


@weft.durable
async def whole() -> list[Any]:
    first = await weft.start(part, 1, days=3)
    second = await weft.start(part, n=2)
    late = await weft.start(part, 3, days=100)
    seen: list[Any] = [len({first.run, second.run, late.run})]
    seen += [await second, await first]
    await late.cancel()
    try:
        await late
    except weft.StepFailed as error:
        seen.append(error.code)
    await weft.sleep(days=1)
    return seen


async def test_children_run_side_by_side_and_can_be_cancelled() -> None:
    outside.clear()
    async with engine(workflows=[whole]) as opened:
        run = (await opened.submit(whole)).run
        await settled(opened)
        children = [wait for wait in await opened.waits.list(run=run) if wait.kind == "child"]
        assert len(children) == 3
        assert (await finish(opened, run)).output == [3, "part 2 done", "part 1 done", "child_cancelled"]
        runs = [await opened.runs.view(row.id) for row in await opened.runs.list()]
        assert sorted(view.status for view in runs if view.id != run) == ["cancelled", "succeeded", "succeeded"]
        assert sent() == ["part 2", "part 1"]


@weft.durable
async def by_name() -> str:
    child = await weft.start("unknown", {"n": 1})
    return child.run


async def test_a_child_that_cannot_start_fails_where_it_is_started() -> None:
    async with engine(workflows=[by_name]) as opened:
        view = await finish(opened, (await opened.submit(by_name)).run)
        assert view.error is not None and "unknown" in view.error["message"]


LONG = 60 * 86_400  # the clock of a test is moved to the next time that is due, also while a run works


@weft.durable(undo=LONG)
async def careful(name: str) -> str:
    await do(f"begin {name}")
    try:
        await weft.sleep(days=99)
        return name
    except weft.Cancelled:
        await weft.sleep(minutes=1)
        await do(f"undo {name}")
        raise


MODELS = {"dev": ScriptedModel({"calls": [{"name": "careful", "arguments": {"name": "a"}}]})}


@weft.durable
async def hurried(how: str) -> str:
    try:
        async with weft.timeout(hours=1):
            match how:
                case "call":
                    await careful("a")
                case "start":
                    await (await weft.start(careful, "a"))
                case "gather":
                    await weft.gather(careful("a"), weft.sleep(days=9))
                case "tool":
                    await weft.agent("dev:m", "Go", tools=[careful])
                case "first":
                    await weft.first(careful("a"), weft.sleep(minutes=30))
                case _:
                    await weft.first(weft.gather(careful("a"), weft.sleep(days=9)), weft.sleep(minutes=30))
    except TimeoutError:
        await do("too late")
    else:
        await do("the other one")
    await weft.sleep(days=1)
    return how


@pytest.mark.parametrize("how", ["call", "start", "gather", "tool", "first", "first of nested"])
async def test_a_child_run_that_is_dropped_is_awaited_unless_another_call_came_first(how: str) -> None:
    outside.clear()
    async with engine(workflows=[hurried, careful], models=MODELS) as opened:
        run = (await opened.submit(hurried, how=how)).run
        view = await finish(opened, run)
        statuses = sorted([(await opened.runs.view(row.id)).status for row in await opened.runs.list()])
    assert (view.status, view.output, statuses) == ("succeeded", how, ["cancelled", "succeeded"])
    awaited = ["begin a", "undo a", "too late"]
    assert sent() == (["begin a", "the other one", "undo a"] if how.startswith("first") else awaited)


@weft.durable
async def at_once() -> None:
    async with weft.timeout(seconds=0):
        await careful("a")


@weft.durable
async def impatient() -> str:
    try:
        async with weft.timeout(hours=1):
            try:
                async with weft.timeout(minutes=59.5):
                    await careful("a")
            finally:
                await do("inner")
    except TimeoutError:
        await do("outer")
    await weft.sleep(days=1)
    return "done"


async def test_a_second_timeout_does_not_wait_for_the_child() -> None:
    outside.clear()
    async with engine(workflows=[impatient, careful]) as opened:
        view = await finish(opened, (await opened.submit(impatient)).run)
    assert (view.status, sent()) == ("succeeded", ["begin a", "inner", "outer", "undo a"])


async def test_a_child_that_was_not_begun_is_not_made() -> None:
    outside.clear()
    async with engine(workflows=[at_once, careful]) as opened:
        view = await finish(opened, (await opened.submit(at_once)).run)
        runs = await opened.runs.list()
    assert view.error is not None and "TimeoutError" in view.error["message"], view.error
    assert (len(runs), sent()) == (1, [])


@pytest.mark.proof
@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("how", ["tool", "first"])
async def test_a_crash_at_each_commit_while_a_child_is_dropped(how: str) -> None:
    outside.clear()
    report = await crash_everywhere(hurried, {"how": how}, outside=outside, models=MODELS, every=size(3, 1))
    assert (report.status, report.output, report.ok) == ("succeeded", how, True)
    assert report.commits > 10, report


@pytest.mark.proof
@pytest.mark.soak
@pytest.mark.timeout(600)
async def test_a_crash_after_each_commit_on_postgresql_while_a_child_is_dropped(
    postgres_server: str, tmp_path: Path
) -> None:
    commits, end = await crash_after_each_commit(
        hurried, {"how": "tool"}, {}, outside, postgres_server, tmp_path, MODELS, every=size(3, 1)
    )
    assert (end.status, end.output) == ("succeeded", "tool")
    assert commits > 10
