"""Branches of a handler never get the results of each other: a call that could exchange them is refused."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from executor.blocks.types.python import Python
from executor.kernel.handler.base import StepContext, Suspend
from executor.open.engine import Engine
from tests.support.documents import chain
from tests.support.runs import engine_on, settled, token_of

Json = dict[str, Any]
Handler = Callable[[StepContext], Any]
BRANCHES = ("A", "B", "C")


async def step(ctx: StepContext, name: str, output: Any = None, pause_s: float = 0.0, input: Any = None) -> Any:
    async def work() -> Any:
        await asyncio.sleep(pause_s)
        return output

    return await ctx.step("tool", name, input, work, effect="read")


async def pair(ctx: StepContext, branch: str) -> list[Any]:
    """Two steps, one after the other, with the name and input that all branches use."""
    first = await step(ctx, "first", branch, random.random() / 100)
    return [first, await step(ctx, "second", branch, random.random() / 100)]


async def asked(ctx: StepContext) -> None:
    await ctx.wait(Suspend("approval", {"title": "continue?"}, None, ("yes",)))


async def ended(engine: Engine, *, answer: bool = True) -> Any:
    run = (await engine.submit(chain("a", a={"type": "python", "params": {"function": "works"}}))).run
    if answer:
        found = await settled(engine, run)
        if found.status == "waiting":
            for wait in await engine.waits.list(run=run):
                await engine.waits.answer(token_of(wait.link), {}, "yes")
    return await engine.wait_finished(run, timeout_s=60)


# --- refused


async def two_steps_in_each_branch(ctx: StepContext) -> Any:
    found = await asyncio.gather(*(pair(ctx, branch) for branch in BRANCHES))
    await asked(ctx)
    return found


async def two_steps_in_each_task(ctx: StepContext) -> Any:
    async with asyncio.TaskGroup() as tasks:
        made = [tasks.create_task(pair(ctx, branch)) for branch in BRANCHES]
    await asked(ctx)
    return [task.result() for task in made]


async def a_step_as_each_branch_is_over(ctx: StepContext) -> Any:
    goes = asyncio.Event()

    async def branch(name: str) -> Any:
        async def work() -> str:
            if name != "A":
                await goes.wait()
            return name

        return await ctx.step("tool", "first", None, work, effect="read")

    found = []
    try:
        for task in asyncio.as_completed([asyncio.create_task(branch(name)) for name in BRANCHES]):
            found.append([await task, await step(ctx, "second")])
    finally:
        goes.set()
    await asked(ctx)
    return found


async def a_step_beside_a_branch(ctx: StepContext) -> Any:
    task = asyncio.create_task(pair(ctx, "A"))
    found = await pair(ctx, "B")
    await asked(ctx)
    return [await task, found]


async def a_worker_pool(ctx: StepContext) -> Any:
    queue, found = list(range(6)), []

    async def worker() -> None:
        while queue:
            item = queue.pop(0)
            found.append([item, await step(ctx, "work", item, random.random() / 100)])

    await asyncio.gather(worker(), worker())
    await asked(ctx)
    return found


async def waits_and_then_steps(ctx: StepContext) -> Any:
    async def branch(name: str) -> Any:
        await asked(ctx)
        return await step(ctx, "second", name)

    return await asyncio.gather(*(branch(name) for name in BRANCHES))


def threads_beside_each_other(ctx: StepContext) -> Any:
    """The work of the first ends when the other one is refused."""
    meet, refused = threading.Barrier(2, timeout=30), threading.Event()

    def one(branch: str) -> Any:
        meet.wait()
        try:
            return ctx.step_from_thread("tool", "first", None, lambda: refused.wait(30), effect="read")
        finally:
            refused.set()

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, "AB"))


def threads_one_after_another(ctx: StepContext) -> Any:
    """Each call alone, but whose is next is not known."""
    turn = [threading.Event() for _ in range(4)]
    turn[0].set()

    def one(which: int) -> Any:
        found = []
        try:
            for n in (which, which + 2):
                turn[n].wait(30)
                found.append(ctx.step_from_thread("tool", "first", None, lambda n=n: n, effect="read"))  # type: ignore[misc]  # mypy has no type for a lambda with a default
                if n < 3:
                    turn[n + 1].set()
        except BaseException:
            for event in turn:
                event.set()
            raise
        return found

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, (0, 1)))


REFUSED = [
    two_steps_in_each_branch,
    two_steps_in_each_task,
    a_step_as_each_branch_is_over,
    a_step_beside_a_branch,
    a_worker_pool,
    waits_and_then_steps,
    threads_beside_each_other,
    threads_one_after_another,
]


@pytest.mark.parametrize("handler", REFUSED, ids=lambda handler: handler.__name__)
async def test_numbers_that_could_be_exchanged_are_refused(tmp_path: Path, handler: Handler) -> None:
    async with engine_on(tmp_path / "weft.db", Python({"works": handler})) as engine:
        for _ in range(3):
            run = await ended(engine)
            assert run.status == "failed", run.output
            assert run.error is not None and run.error["code"] == "steps_unordered", run.error
            assert "asyncio.gather" in run.error["hint"]


# --- allowed, and the same in each entry


async def one_step_a_branch(ctx: StepContext) -> Any:
    return await asyncio.gather(*(step(ctx, "first", branch, random.random() / 100) for branch in BRANCHES))


async def calls_made_before_any_is_awaited(ctx: StepContext) -> Any:
    async def work(branch: str) -> str:
        await asyncio.sleep(random.random() / 100)
        return branch

    calls: list[Awaitable[Any]] = []
    for branch in BRANCHES:
        calls += [ctx.step("tool", "first", None, lambda branch=branch: work(branch), effect="read")]  # type: ignore[misc]  # see above
    return await asyncio.gather(*calls)


async def branches_one_after_another(ctx: StepContext) -> Any:
    one_at_a_time = asyncio.Semaphore(1)

    async def branch(name: str) -> Any:
        async with one_at_a_time:
            return await pair(ctx, name)

    return await asyncio.gather(*(branch(name) for name in BRANCHES))


async def rounds(ctx: StepContext) -> Any:
    return [await one_step_a_branch(ctx) for _ in range(3)]


async def a_limit_of_time_within_one(ctx: StepContext) -> Any:
    async def inner() -> Any:
        return [await asyncio.wait_for(pair(ctx, "A"), 60), await step(ctx, "third", "B")]

    async def outer() -> Any:
        return [await step(ctx, "before", "C"), await asyncio.wait_for(inner(), 60), await step(ctx, "after", "D")]

    return [await asyncio.wait_for(outer(), 60), await pair(ctx, "E")]


async def branches_in_a_branch(ctx: StepContext) -> Any:
    async def whole() -> Any:
        return [await step(ctx, "before", "C"), await one_step_a_branch(ctx), await pair(ctx, "A")]

    return [await asyncio.create_task(whole()), await pair(ctx, "B")]


ALLOWED = [
    one_step_a_branch,
    calls_made_before_any_is_awaited,
    branches_one_after_another,
    rounds,
    a_limit_of_time_within_one,
    branches_in_a_branch,
]


@pytest.mark.parametrize("handler", ALLOWED, ids=lambda handler: handler.__name__)
async def test_what_has_one_order_is_the_same_in_each_entry(tmp_path: Path, handler: Handler) -> None:
    entries: list[Any] = []

    async def works(ctx: StepContext) -> Any:
        entries.append(await handler(ctx))
        await asked(ctx)
        return entries[-1]

    async with engine_on(tmp_path / "weft.db", Python({"works": works})) as engine:
        for _ in range(3):
            entries.clear()
            run = await ended(engine)
            assert run.status == "succeeded", run.error
            assert len(entries) == 2 and entries[0] == entries[1]


def threads_that_are_joined(ctx: StepContext) -> Any:
    def one(branch: str) -> Any:
        return ctx.step_from_thread("tool", "first", None, lambda: branch, effect="read")

    found = [one("before")]
    for branch in BRANCHES:
        with ThreadPoolExecutor(1) as pool:
            found.append(pool.submit(one, branch).result())
    return [*found, one("after")]


async def test_threads_that_are_over_are_not_side_by_side(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", Python({"works": threads_that_are_joined})) as engine:
        run = await ended(engine, answer=False)
        assert run.status == "succeeded", run.error
