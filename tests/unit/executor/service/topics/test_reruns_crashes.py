"""A run that continues with another definition, in a process that ends at each of its commits, before or after it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from executor.blocks.types.python import Python
from executor.errors import BlockError
from executor.kernel.handler.base import StepContext
from executor.service.topics.reruns import Target
from tests.support.blocks import Step
from tests.support.crashes import ends_at
from tests.support.documents import Json, chain
from tests.support.runs import engine_on, outputs, settled
from tests.unit.executor.kernel.run.test_steps_crashes import until_ended

pytestmark = pytest.mark.usefixtures("invariants_hold")

COMMITS_MAX = 20
BLOCKS: Json = {"mail": {"type": "mail"}, "work": {"type": "python", "params": {"function": "works"}}}
FIRST = chain("mail", "a", "work", **BLOCKS)
OTHER = chain("new", "mail", "a", "work", **BLOCKS, a={"params": {"value": "changed"}})


class Works:
    """The function `works` makes two calls, and fails after them until it is `repaired`."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.repaired = False

    def block(self) -> Python:
        async def works(ctx: StepContext) -> Any:
            async def work(name: str) -> str:
                self.done.append(name)
                return name

            made = [await ctx.step("tool", name, name, partial(work, name), effect="write") for name in ("one", "two")]
            if not self.repaired:
                raise BlockError("not yet", code="scripted", retryable=False)
            return made

        return Python({"works": works})


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_nothing_that_was_taken_over_is_done_or_asked_about(tmp_path: Path, after: bool) -> None:
    for commit in range(1, COMMITS_MAX):
        path, works, mail, step = tmp_path / f"{commit}.db", Works(), Step("mail", careful=True), Step()
        async with engine_on(path, works.block(), mail, step) as engine:
            source = (await engine.submit(FIRST)).run
            assert (await settled(engine, source)).status == "failed"
            works.repaired = True
            ended = ends_at(engine, commit, after)
            run = (await engine.lifecycle.go_on(source, Target(document=OTHER), idempotency_key="once")).run
            over = await until_ended(engine, run, ended)
        async with engine_on(path, works.block(), mail, step) as engine:
            run = (await engine.lifecycle.go_on(source, Target(document=OTHER), idempotency_key="once")).run
            assert await until_ended(engine, run)
            view = await settled(engine, run)
            assert (view.status, outputs(view)["work"]) == ("succeeded", ["one", "two"]), f"commit {commit}"
            assert (mail.ran["mail"], works.done) == (1, ["one", "two"]), f"commit {commit}"
            assert not [r for r in await engine.store.read_events(run) if (r.type, r.node) == ("wait.opened", "mail")]
        if over:
            break
    assert 3 < commit < COMMITS_MAX - 1
