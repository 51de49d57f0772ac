"""A handler with steps and waits side by side, its process killed at every second commit (at every one in `make soak`):
what has ended is not done again, and no person is asked twice."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from executor.blocks.types.python import Python
from executor.kernel.handler.base import StepContext, Suspend
from executor.kernel.journal.codec import data_of
from executor.open.testing.crashes import killer
from executor.open.testing.process import DONE, in_child
from tests.support.documents import chain
from tests.support.killed import Killed
from tests.support.runs import token_of
from tests.support.size import size
from weft import testing

pytestmark = pytest.mark.proof

outside = testing.Outside()
DOCUMENT = chain("a", a={"type": "python", "params": {"function": "works"}, "policy": {"on_lost": "retry"}})
EFFECTS: dict[str, Any] = {"one": "none", "two": "read", "three": "write"}


async def works(ctx: StepContext) -> Any:
    def step(name: str) -> Any:
        async def work() -> str:
            outside.record(name)
            return name

        return ctx.step("tool", name, name, work, effect=EFFECTS[name])

    def ask(n: int) -> Any:
        return ctx.wait(Suspend("approval", {"title": f"OK, {n}?"}, None, ("yes",)))

    first = await step("one")
    answers = await asyncio.gather(ask(0), ask(1))
    return [first, *(answer["action"] for answer in answers), *await asyncio.gather(step("two"), step("three"))]


class Asked(Killed):
    async def play(self) -> None:
        async with self.opened([Python({"works": works})]) as engine, asyncio.timeout(60):
            run = (await engine.submit(DOCUMENT, idempotency_key=self.run)).run
            while (view := await engine.runs.view(run)).status in ("queued", "running", "waiting"):
                for wait in await engine.waits.list(run=run):
                    action = "retry" if wait.kind == "attention" else "yes"
                    await engine.waits.answer(token_of(wait.link), {}, action)
                await asyncio.sleep(0.005)
            self.armed = False
            assert view.output == ["one", "yes", "yes", "two", "three"], view
            opened = [data_of(one) for one in await engine.store.read_events(run) if one.type == "wait.opened"]
            assert [one["title"] for one in opened if one["kind"] == "approval"] == ["OK, 0?", "OK, 1?"]


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize("where", ["sqlite", "postgres"])
async def test_killed_at_every_commit(where: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    database = str(tmp_path / "weft.db") if where == "sqlite" else str(request.getfixturevalue("postgres"))
    nth = crashes = 0
    for when in ("before", "after"):
        for commit in range(1, 100, size(2, 1)):
            outside.clear()
            run = f"{when}-{commit}"
            killed = await in_child(Asked(database, run, nth, killer(commit, when)).play, tmp_path)
            if killed != DONE:
                assert killed < 0, (tmp_path / "error").read_text()
                crashes += 1
                again = await in_child(Asked(database, run, nth + 1, None).play, tmp_path)
                assert again == DONE, f"{run}: {(tmp_path / 'error').read_text()}"
            nth += 2
            done = [effect.what for effect in outside.effects]
            assert set(done) == set(EFFECTS), run
            assert len(done) - len(EFFECTS) <= 2 * (killed != DONE), f"{run}: more than what was under way"
            if killed == DONE:
                break
    print(f"{crashes} crashes on {where}", file=sys.stderr)
    assert crashes > 9
