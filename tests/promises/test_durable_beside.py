"""Waits beside steps that run, with the process of the run killed at every commit: each answer is received while the
step runs, and what follows from it is done."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import weft
from executor.open.engine import Engine
from executor.open.testing.crashes import killer
from executor.open.testing.process import DONE, in_child
from tests.support.killed import Killed
from weft import testing

pytestmark = pytest.mark.proof

outside = testing.Outside()
OUTPUT = ["long is done", "approve 1", "approve 2", "enough"]


@weft.step(effect="none")  # one that is lost is done again without a question
async def note(what: str) -> str:
    outside.record(what)
    return what


@weft.step(effect="read")
async def long() -> str:
    """Ends when both answers have come: they are received while it runs, or never."""
    while not {"approve 1", "approve 2"} <= {effect.what for effect in outside.effects}:
        await asyncio.sleep(0.01)
    return "long is done"


@weft.step(effect="read")
async def endless() -> str:
    await asyncio.sleep(1000)
    return "it ended"


async def asks(n: int) -> str:
    answer = await weft.approve(f"Question {n}")
    return await note(f"{answer.action} {n}")


@weft.durable
async def beside() -> list[Any]:
    results = list(await weft.gather(long(), asks(1), asks(2)))
    first = await weft.first(endless(), weft.signal("stop", type=str))
    return [*results, first.value]


class Process(Killed):
    """Starts the run, and answers what it asks."""

    async def play(self) -> None:
        async with self.engine(beside) as engine:
            run = (await engine.submit(beside, idempotency_key=self.run)).run
            answers = asyncio.create_task(_answer(engine, run))
            view = await _ended(engine, run)
            answers.cancel()
            assert (view.status, view.output) == ("succeeded", OUTPUT), view


async def _answer(engine: Engine, run: str) -> None:
    while True:
        for wait in await engine.waits.list("pending", run):
            with suppress(weft.AlreadyAnswered, weft.Conflict, weft.NotFound):
                if wait.kind == "signal":
                    await engine.signal(run, "stop", "enough")
                elif wait.link is not None:
                    await engine.answer(wait.link, {}, "approve", "ada")
        await asyncio.sleep(0.01)


async def _ended(engine: Engine, run: str) -> Any:
    while True:
        view = await engine.wait_finished(run, 30)
        if view.status in ("succeeded", "failed", "cancelled"):
            return view
        await asyncio.sleep(0.01)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("where", ["sqlite", "postgres"])
async def test_killed_at_every_commit(where: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    database = str(tmp_path / "weft.db") if where == "sqlite" else str(request.getfixturevalue("postgres"))
    nth = crashes = 0
    for when in ("before", "after"):
        for commit in range(1, 100):
            outside.clear()
            run = f"{when}-{commit}"
            killed = await in_child(Process(database, run, nth, killer(commit, when)).play, tmp_path)
            if killed != DONE:
                assert killed < 0, (tmp_path / "error").read_text()
                crashes += 1
                again = await in_child(Process(database, run, nth + 1, None).play, tmp_path)
                assert again == DONE, f"{run}: {(tmp_path / 'error').read_text()}"
            nth += 2
            noted = [effect.what for effect in outside.effects]
            assert set(noted) == {"approve 1", "approve 2"}, run
            under_way = 2 if killed != DONE else 0  # both answers may have come: their notes are steps side by side
            assert len(noted) - 2 <= under_way, f"{run}: more than what was under way was done again"
            if killed == DONE:
                break
    print(f"{crashes} crashes on {where}", file=sys.stderr)
    assert crashes > 20
