"""Durable functions whose run is cancelled, killed at every commit: what they did is undone once."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import weft
from executor.blocks.connectors.stored import connectors
from executor.blocks.llm.endpoints import endpoints_of
from executor.blocks.types.functions import blocks_of
from executor.blocks.types.registry import Registry
from executor.open.testing.crashes import COMMITS_MAX, When, crash_everywhere, killer
from executor.open.testing.engines import ManualClock
from executor.open.testing.outside import Entered
from executor.open.testing.play import CANCEL
from executor.open.testing.process import DONE, ERROR_FILE, Process, Result, Workflow, in_child
from executor.service.views import WaitView
from tests.support.durable_functions import after, do, outside
from tests.support.size import size

LONG = 60 * 86_400  # the clock of a test is moved to the next time that is due, also while a run works

pytestmark = [pytest.mark.proof, pytest.mark.timeout(600)]


@weft.durable(undo=LONG)
async def saga(order: str, parts: int = 2) -> str:
    """Reserve parts and charge; undo all of it on a cancel, with waits and a person."""
    undo: list[str] = []
    try:
        for n in range(parts):
            await do(f"reserve {order}-{n}")
            undo.append(f"release {order}-{n}")
        undo.append(f"refund {await do(f'charge {order}')}")
        await weft.signal("courier")
        return "sent"
    except (weft.Cancelled, TimeoutError):
        for what in reversed(undo):
            await do(what)
        await weft.sleep(days=1)
        await weft.approve("Was the customer told?")
        await do("closed")
        raise


@weft.durable(undo=LONG)
async def branches() -> None:
    """Branches that compensate side by side, one of them in a shield."""

    async def branch(name: str) -> None:
        try:
            await do(name)
            await weft.signal(f"never {name}")
        finally:
            await weft.sleep(minutes=1)
            await do(f"undo {name}")

    async def shielded() -> None:
        async with weft.shield():
            await do("begin")
            await weft.sleep(minutes=2)
            await do("end")
        await weft.signal("never c")

    async with asyncio.TaskGroup() as group:
        group.create_task(branch("a"))
        group.create_task(branch("b"))
        group.create_task(shielded())


@weft.durable(undo=LONG)
async def child(name: str, below: str = "") -> None:
    try:
        await do(f"child {name}")
        await (child(below) if below else weft.signal("never"))
    except weft.Cancelled:
        await weft.sleep(minutes=1)
        await do(f"undo child {name}")
        raise


@weft.durable(undo=LONG)
async def parent() -> None:
    try:
        await child("a", "b")
    except weft.Cancelled:
        await do("undo parent")
        await closing()
        raise


@weft.durable
async def closing() -> str:
    return await do(await after(0, "closed"))


@pytest.mark.parametrize(
    ("flow", "input", "answers"),
    [
        (saga, {"order": "7"}, {"courier": CANCEL, "Was the customer told?": "approve"}),
        (branches, {}, {"never a": CANCEL}),
        (parent, {}, {"never": CANCEL}),
    ],
    ids=["saga", "branches", "children"],
)
@pytest.mark.soak
async def test_killed_at_every_commit(
    flow: weft.DurableFunction[..., Any], input: Any, answers: Mapping[str, Any]
) -> None:
    outside.clear()
    report = await crash_everywhere(flow, input, answers=answers, outside=outside, every=size(3, 1))
    assert (report.status, report.error) == ("cancelled", None)
    assert report.commits > 15


@weft.step
async def mark(what: str) -> str:
    outside.record({"what": what, "step": weft.context().idempotency_key.rpartition("#")[2]})
    return what


@weft.durable(undo=LONG)
async def short() -> str:
    """Do two things, one after the other, and undo those that were done."""
    done: list[str] = []
    try:
        for what in ("a", "b"):
            done.append(await mark(what))
        await weft.signal("go")
    except weft.Cancelled:
        for what in reversed(done):
            await mark(f"undo {what}")
        await weft.sleep(minutes=1)
        raise
    return "done"


class Cancelling(Process):
    """A process that only cancels the run. `play` starts it, or continues it, as any other."""

    async def cancel(self) -> None:
        engine = await self._open(ManualClock(self._begin_ms()), Entered(self._folder / "none"), work=False)
        try:
            for run in await engine.store.list_runs():
                await engine.cancel(run.id)
        finally:
            await engine.close(grace_s=0)


def truth(wait: WaitView) -> Any:
    """Answer the signal, and whether a step that was lost was done."""
    if wait.kind == "signal":
        return 1
    n = re.findall(r"Step (\d+) of", wait.title or "")
    did = [effect.what["what"] for effect in outside.effects if [effect.what["step"]] == n]
    return {"action": "done", "fields": {"output": did[0]}} if did else "retry"


ANSWERS = {"body": truth, "undo": truth}
WORKFLOW = Workflow(short, {}, blocks_of([short], None), ANSWERS, {}, (), endpoints_of(None), (), outside)


async def play(folder: Path, commit: int = 0, when: When = "before") -> Result | None:
    """Return the end of the run, or None if the process was killed."""
    process = Process(WORKFLOW, folder, fault=killer(commit, when) if commit else None)
    code = await in_child(process.play, folder)
    assert code == DONE or commit, (folder / ERROR_FILE).read_text()
    return Result.read(folder) if code == DONE else None


def check(result: Result) -> None:
    """All that was done was undone once, unless the function had ended."""
    effects = [effect.what["what"] for effect in outside.effects]
    if result.nodes["body"] == "succeeded" or result.nodes["undo@:finally"] == "failed":  # cancelled_late
        assert effects == ["a", "b"]
        return
    done = [what for what in effects if not what.startswith("undo ")]
    assert effects == [*done, *(f"undo {what}" for what in reversed(done))] and result.status == "cancelled"


@pytest.mark.soak
@pytest.mark.parametrize("when", ["before", "after"])
async def test_cancelled_after_a_crash_at_each_commit_and_killed_at_each_commit_of_the_compensation(
    when: When, tmp_path: Path
) -> None:
    Registry.load(connectors())  # as crash_everywhere does: their imports are done once
    await in_child(Process(WORKFLOW, tmp_path).make, tmp_path)
    crashes = 0
    # Each third commit of each kind, and all of them in `make soak`.
    for commit in range(size(1 if when == "before" else 2, 1), COMMITS_MAX, size(3, 1)):
        outside.clear()
        cancelled = copied(tmp_path, f"cancelled-{commit}")
        if await play(cancelled, commit, when) is not None:
            break
        assert await in_child(Cancelling(WORKFLOW, cancelled).cancel, cancelled) == DONE
        effects = [effect.what for effect in outside.effects]
        for again in range(1, COMMITS_MAX):
            outside.clear()
            for what in effects:
                outside.record(what)
            folder = copied(cancelled, f"killed-{commit}-{again}")
            result = await play(folder, again, "after" if again % 2 else "before")
            crashes += result is None
            check(result or (await play(folder)) or pytest.fail("it does not end"))
            shutil.rmtree(folder)
            if result is not None:
                break
    assert crashes > size(16, 50)


def copied(folder: Path, name: str) -> Path:
    """Return a new folder with the same files, inside of `folder`."""
    made = folder / name
    made.mkdir()
    for path in folder.iterdir():
        if path.is_file():
            shutil.copy(path, made)
    return made
