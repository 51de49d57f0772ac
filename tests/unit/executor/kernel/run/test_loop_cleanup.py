"""Cleanups in an engine: they run however their container or run ends, once, also if the process ends at any commit."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from executor.blocks.types.python import Python
from executor.errors import Conflict
from executor.kernel.handler.base import StepContext
from executor.open.engine import Engine
from executor.open.testing.crashes import crash_everywhere
from executor.open.testing.outside import Outside
from tests.support.documents import document
from tests.support.runs import engine_on, settled, token_of

pytestmark = pytest.mark.usefixtures("invariants_hold")

ONCE = {"on_lost": "retry"}


class World:
    """What the functions did. `work` fails, `hang` waits until it is cancelled."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def block(self) -> Python:
        async def note(ctx: StepContext, text: str) -> Any:
            self.done.append(text)
            return text

        async def work(ctx: StepContext) -> Any:
            self.done.append("work")
            raise ValueError("it broke")

        async def hang(ctx: StepContext) -> Any:
            self.done.append("hang")
            await asyncio.Event().wait()

        return Python({"note": note, "work": work, "hang": hang})


def call(function: str, text: str = "", **more: Any) -> dict[str, Any]:
    arguments = {"arguments": {"text": text}} if text else {}
    return {"type": "python", "params": {"function": function, **arguments}, "policy": ONCE, **more}


def cleaned(work: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """start -> loop (open -> work, finally: close) -> after, and at the end of the run: last."""
    return document(
        "cleaned",
        "start loop",
        "loop body open",
        "open work",
        "loop finally close",
        "loop after",
        "start finally last",
        blocks={
            "loop": {"type": "loop", "params": {"mode": "for", "count": 2}},
            "open": call("note", "open <loop.index>", parent="loop"),
            "work": {**work, "parent": "loop"},
            "close": call("note", "close <open>", parent="loop"),
            "after": call("note", "after"),
            "last": call("note", 'last <after ?? "no">'),
        },
        settings=settings,
    )


async def ended(engine: Engine, run: str) -> str:
    return (await settled(engine, run)).status


async def until(condition: Any) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


async def test_a_cleanup_runs_once_after_the_last_iteration(tmp_path: Path) -> None:
    world = World()
    async with engine_on(tmp_path / "a.db", world.block()) as engine:
        run = (await engine.submit(cleaned(call("note", "work")))).run
        assert await ended(engine, run) == "succeeded"
        view = await engine.runs.view(run)
    assert world.done == ["open 0", "work", "open 1", "work", "close open 1", "after", "last after"]
    assert view.output == "after"  # not what the cleanup put out


async def test_a_cleanup_runs_when_the_body_fails_and_the_error_stays(tmp_path: Path) -> None:
    world = World()
    async with engine_on(tmp_path / "a.db", world.block()) as engine:
        run = (await engine.submit(cleaned(call("work")))).run
        assert await ended(engine, run) == "failed"
        view = await engine.runs.view(run)
        (why,) = await engine.history.why(run, "close")
    assert world.done == ["open 0", "work", "close open 0", "last no"]
    assert view.error is not None and view.error["block"] == "work"
    assert any("this is its cleanup" in reason for reason in why.reasons)


async def test_a_cancel_waits_for_the_cleanups_and_a_second_one_does_not(tmp_path: Path) -> None:
    world = World()
    async with engine_on(tmp_path / "a.db", world.block()) as engine:
        run = (await engine.submit(cleaned(call("hang")))).run
        await until(lambda: "hang" in world.done)
        await engine.cancel(run)
        assert await ended(engine, run) == "cancelled"
        assert world.done == ["open 0", "hang", "close open 0", "last no"]
        slow = cleaned(call("hang"))
        slow["blocks"]["close"] = call("hang", parent="loop")
        world.done.clear()
        run = (await engine.submit(slow)).run
        await until(lambda: "hang" in world.done)
        await engine.cancel(run)
        await until(lambda: world.done.count("hang") == 2)
        await engine.cancel(run)
        assert await ended(engine, run) == "cancelled"
        assert "last no" not in world.done
        with pytest.raises(Conflict):
            await engine.lifecycle.migrate(run, 2)


async def test_a_cancel_without_the_cleanups(tmp_path: Path) -> None:
    world = World()
    async with engine_on(tmp_path / "a.db", world.block()) as engine:
        run = (await engine.submit(cleaned(call("hang")))).run
        await until(lambda: "hang" in world.done)
        await engine.cancel(run, now=True)
        assert await ended(engine, run) == "cancelled"
    assert world.done == ["open 0", "hang"]


async def test_a_run_that_a_cleanup_calls_after_a_cancel_runs_to_its_end(tmp_path: Path) -> None:
    world = World()
    calling = cleaned(call("hang"))
    inside = {"parent": "loop"}
    calling["blocks"] |= {
        "close": {"type": "run_workflow", "params": {"workflow": "closing"}, **inside},
        "other": call("note", "closed otherwise", **inside),
    }
    calling["blocks"]["last"]["params"]["arguments"]["text"] = "last"
    calling["edges"].append({"source": "close", "target": "other", "handle": "error"})
    closing = document("closing", "start closed", blocks={"closed": call("note", "closed")})
    async with engine_on(tmp_path / "a.db", world.block()) as engine:
        await engine.workflows.save(closing)
        run = (await engine.submit(calling)).run
        await until(lambda: "hang" in world.done)
        await engine.cancel(run)
        assert await ended(engine, run) == "cancelled"
        view = await engine.runs.view(run)
    assert world.done == ["open 0", "hang", "closed", "last"]
    assert [child.status for child in view.children] == ["succeeded"]


async def test_a_cleanup_has_a_time_limit(tmp_path: Path) -> None:
    world = World()
    slow = cleaned(call("note", "work"), cleanup_timeout_s=0.2)
    slow["blocks"]["close"] = call("hang", parent="loop")
    async with engine_on(tmp_path / "a.db", world.block()) as engine:
        run = (await engine.submit(slow)).run
        assert await ended(engine, run) == "failed"
        view = await engine.runs.view(run)
    assert view.error is not None and view.error["code"] == "cleanup_timeout"
    assert world.done[-2:] == ["hang", "last no"]


async def test_a_response_is_kept_while_the_cleanup_of_the_run_waits(tmp_path: Path) -> None:
    path, world = tmp_path / "a.db", World()
    answered = document(
        "answered",
        "start reply",
        "start finally ask",
        blocks={
            "reply": {"type": "response", "params": {"status": 201, "body": {"ok": True}}},
            "ask": {"type": "approval", "params": {"title": "Close?"}},
        },
    )
    async with engine_on(path, world.block()) as engine:
        run = (await engine.submit(answered)).run
        async with asyncio.timeout(30):
            while not (waits := await engine.waits.list(run=run)):
                await asyncio.sleep(0.005)
    async with engine_on(path, world.block()) as engine:
        await engine.waits.answer(token_of(waits[0].link), {}, "approve")
        view = await settled(engine, run)
    assert (view.status, view.output) == ("succeeded", {"ok": True})
    assert view.response == {"status": 201, "headers": {}, "body": {"ok": True}}


@pytest.mark.parametrize("fails", [False, True], ids=["succeeds", "fails"])
async def test_a_cleanup_survives_a_crash_at_each_commit(tmp_path: Path, fails: bool) -> None:
    outside = Outside(tmp_path)

    async def note(ctx: StepContext, text: str) -> str:
        outside.record(text, once=ctx.idempotency_key)
        return text

    async def work(ctx: StepContext) -> None:
        outside.record("work", once=ctx.idempotency_key)
        raise ValueError("it broke")

    workflow = cleaned(call("work") if fails else call("note", "work"))
    report = await crash_everywhere(workflow, functions={"note": note, "work": work}, outside=outside)
    assert report.status == ("failed" if fails else "succeeded")
    assert report.commits >= 5
