"""`ctx.cancelled`, in a thread that cannot be stopped."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from executor.blocks.types.typed import block
from executor.kernel.handler.base import Over, StepContext
from tests.support.documents import document
from tests.support.runs import engine_on, ran, until_event
from tests.support.until import until


class Thread:
    """Block type `works`: works in a thread until its attempt is over."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.saw: list[bool] = []

        @block(type="works")
        def works(ctx: StepContext, waits: bool) -> str:
            self.begun.set()
            self.saw.append(bool(ctx.cancelled))
            if waits:
                ctx.cancelled.wait(60)
            else:
                while not ctx.cancelled:
                    pass
            self.saw.append(bool(ctx.cancelled))
            return "ignored"

        self.block = works


def works(waits: bool, **policy: object) -> dict[str, object]:
    return document("works", "start a", blocks={"a": {"type": "works", "params": {"waits": waits}, "policy": policy}})


@pytest.mark.parametrize("waits", [True, False])
async def test_a_thread_sees_that_its_run_was_cancelled(tmp_path: Path, waits: bool) -> None:
    thread = Thread()
    async with engine_on(tmp_path / "over.db", thread.block) as engine:
        run = (await engine.submit(works(waits))).run
        await until_event(engine, run, "node.started", "a")
        await asyncio.to_thread(thread.begun.wait, 30)
        await engine.cancel(run)
        await until(lambda: len(thread.saw) == 2)
    assert thread.saw == [False, True]


async def test_a_thread_sees_that_its_time_is_over(tmp_path: Path) -> None:
    thread = Thread()
    async with engine_on(tmp_path / "over.db", thread.block) as engine:
        view = await ran(engine, works(True, timeout_s=0.05))
        await until(lambda: len(thread.saw) == 2)
    assert view.error is not None and view.error["code"] == "timeout"
    assert thread.saw == [False, True]


def test_a_wait_ends_by_itself() -> None:
    over = Over()
    assert not over.wait(0.01) and not over
    over.end()
    assert over.wait() and over
