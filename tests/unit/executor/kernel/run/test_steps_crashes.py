"""A handler with three steps and a wait in between, whose process ends at each of its commits, before or after it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from executor.blocks.types.python import Python
from executor.kernel.handler.base import StepContext, Suspend
from executor.kernel.journal.codec import data_of
from executor.open.engine import Engine
from tests.support.crashes import ends_at
from tests.support.documents import chain
from tests.support.runs import engine_on, outputs, settled, token_of

pytestmark = pytest.mark.usefixtures("invariants_hold")

DOCUMENT = chain("a", a={"type": "python", "params": {"function": "works"}, "policy": {"on_lost": "retry"}})
COMMITS_MAX = 20


class Works:
    """The function `works` notes the work of each step. `asks`: it waits for so many answers side by side."""

    def __init__(self, asks: int = 1) -> None:
        self.done: list[str] = []
        self._asks = asks

    def block(self) -> Python:
        async def works(ctx: StepContext) -> Any:
            def step(name: str, effect: Any) -> Any:
                async def work() -> str:
                    self.done.append(name)
                    return name

                return ctx.step("tool", name, name, work, effect=effect)

            first = await step("one", "none")
            asked = [ctx.wait(Suspend("approval", {"title": f"OK, {n}?"}, None, ("yes",))) for n in range(self._asks)]
            answer, *_ = await asyncio.gather(*asked)
            pair = await asyncio.gather(step("two", "read"), step("three", "write"))
            return [first, answer["action"], *pair]

        return Python({"works": works})


async def until_ended(engine: Engine, run: str, ended: asyncio.Event | None = None) -> bool:
    """Answers all that is asked until the run has ended (True), or its process has."""
    async with asyncio.timeout(60):
        while ended is None or not ended.is_set():
            view = await engine.runs.view(run)
            if view.status not in ("queued", "running", "waiting"):
                return True
            for wait in await engine.waits.list(run=run):
                action = "retry" if wait.kind == "attention" else "yes"
                await engine.waits.answer(token_of(wait.link), {}, action)
            await asyncio.sleep(0.005)
    return False


async def steps_in(engine: Engine, run: str, type: str) -> set[int]:
    """Numbers of the steps with such an event."""
    records = await engine.store.read_events(run)
    return {data_of(record)["n"] for record in records if record.type == type}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_no_finished_step_is_repeated(tmp_path: Path, after: bool) -> None:
    numbers = {"one": 1, "two": 3, "three": 4}
    for commit in range(1, COMMITS_MAX):
        path, works = tmp_path / f"{commit}.db", Works()
        async with engine_on(path, works.block()) as engine:
            ended = ends_at(engine, commit, after)
            run = (await engine.submit(DOCUMENT)).run
            if await until_ended(engine, run, ended):
                break
            await engine.stop_working(grace_s=0)
            finished = await steps_in(engine, run, "step.finished")
            assert {numbers[name] for name in works.done} <= await steps_in(engine, run, "step.started")
        before = len(works.done)
        async with engine_on(path, works.block()) as engine:
            assert await until_ended(engine, run)
            assert outputs(await settled(engine, run))["a"] == ["one", "yes", "two", "three"]
        repeated = set(works.done[before:])
        assert not {name for name in repeated if numbers[name] in finished}, f"commit {commit}"
        assert set(works.done) == set(numbers)
        assert len(works.done) <= len(numbers) + 2  # of each that was under way
    else:
        raise AssertionError("the run has more commits than were tried")
    assert commit > 6


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_no_one_is_asked_twice_when_waits_are_side_by_side(tmp_path: Path, after: bool) -> None:
    numbers = {"one": 1, "two": 4, "three": 5}
    for commit in range(1, COMMITS_MAX):
        path, works = tmp_path / f"{commit}.db", Works(asks=2)
        async with engine_on(path, works.block()) as engine:
            ended = ends_at(engine, commit, after)
            run = (await engine.submit(DOCUMENT)).run
            if await until_ended(engine, run, ended):
                break
            await engine.stop_working(grace_s=0)
            finished = await steps_in(engine, run, "step.finished")
        before = len(works.done)
        async with engine_on(path, works.block()) as engine:
            assert await until_ended(engine, run)
            assert outputs(await settled(engine, run))["a"] == ["one", "yes", "two", "three"]
            records = await engine.store.read_events(run)
        opened = [data_of(record) for record in records if record.type == "wait.opened"]
        asked = [each["title"] for each in opened if each["kind"] == "approval"]
        assert asked == ["OK, 0?", "OK, 1?"], f"commit {commit}"
        assert not {name for name in works.done[before:] if numbers[name] in finished}, f"commit {commit}"
    else:
        raise AssertionError("the run has more commits than were tried")
    assert commit > 6
