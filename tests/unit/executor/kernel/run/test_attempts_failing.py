"""However an attempt ends, its run hears of it, and hears what happened."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from compiler.catalog import BlockSpec
from executor.errors import BlockError
from executor.kernel.handler.base import Done, Outcome, StepContext, Suspend
from executor.kernel.run import attempts
from tests.support.documents import chain, document
from tests.support.runs import ended, engine_on, until_event
from tests.support.until import until


class Gate:
    """Stands until the test opens the gate of its block; `bad` fails then. Cancelled, it takes a while to clean up."""

    spec = BlockSpec("gate", "Gate", "", "action")

    def __init__(self) -> None:
        self.gates = {block: asyncio.Event() for block in ("a", "b", "c", "bad", "cleaned")}
        self.began: list[str] = []
        self.cleaned: list[str] = []

    async def run(self, ctx: StepContext) -> Done:
        self.began.append(ctx.block)
        try:
            await self.gates[ctx.block].wait()
        except asyncio.CancelledError:
            if ctx.block == "b":  # `a` is done with it at once
                await self.gates["cleaned"].wait()
            self.cleaned.append(ctx.block)
            raise
        if ctx.block == "bad":
            raise BlockError("the test says so", code="scripted", retryable=False)
        return Done(None)

    async def until_began(self, count: int) -> None:
        await until(lambda: len(self.began) >= count)


def cancelling(*edges: str) -> dict[str, Any]:
    """A failure of one block stops the others."""
    blocks = {block: {"type": "gate"} for edge in edges for block in edge.split() if block != "start"}
    return document("cancelling", *edges, blocks=blocks, settings={"on_failure": "cancel"})


async def test_an_attempt_that_is_started_and_stopped_in_one_turn_does_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`a` ends and `bad` fails while the run loop does something else: `c` starts and is not needed, in one commit."""
    monkeypatch.setattr(attempts, "CANCEL_GRACE_S", 3600)  # so nothing but its end ends it
    async with engine_on(tmp_path / "weft.db", gate := Gate()) as engine:
        run = (await engine.submit(cancelling("start a", "a c", "start bad"))).run
        await gate.until_began(2)
        gate.gates["a"].set()
        gate.gates["bad"].set()
        view = await ended(engine, run)
        assert (view.status, view.error and view.error["code"]) == ("failed", "scripted")
        assert sorted(gate.began) == ["a", "bad"]
        [stopped] = [node for node in view.nodes if node.key == "c"]
        assert stopped.error is not None
        assert stopped.error["message"] == "the result is no longer needed"


async def test_an_attempt_is_told_to_stop_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`a` has stopped, and that its run is failing is no news to `b`, which still cleans up."""
    monkeypatch.setattr(attempts, "CANCEL_GRACE_S", 3600)
    async with engine_on(tmp_path / "weft.db", gate := Gate()) as engine:
        run = (await engine.submit(cancelling("start a", "start b", "start bad"))).run
        await gate.until_began(3)
        gate.gates["bad"].set()
        await until_event(engine, run, "node.failed", "a")
        await asyncio.sleep(0)
        gate.gates["cleaned"].set()
        view = await ended(engine, run)
        assert view.status == "failed"
        assert gate.cleaned == ["a", "b"]


class Panic(BaseException):
    """What libraries in Rust raise when they have a bug is no Exception."""


class Raises:
    spec = BlockSpec("raises", "Raises", "", "action")

    def __init__(self, error: BaseException) -> None:
        self._error = error

    async def run(self, ctx: StepContext) -> Done:
        raise self._error


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (Panic("index out of bounds"), "Panic: index out of bounds"),
        (SystemExit(3), "SystemExit: 3"),
        # as os.listdir() names a file whose name is no UTF-8
        (BlockError("no caf\udce9", code="scripted", retryable=False, hint="caf\udce9"), r"no caf\udce9"),
    ],
)
async def test_whatever_a_handler_raises_is_the_failure_of_its_block(
    tmp_path: Path, error: BaseException, message: str
) -> None:
    async with engine_on(tmp_path / "weft.db", Raises(error)) as engine:
        run = (await engine.submit(chain("a", a={"type": "raises"}))).run
        await until_event(engine, run, "run.finished")
        view = await engine.runs.view(run)
        assert view.status == "failed"
        assert view.error is not None
        assert view.error["message"].startswith(message)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "function", "params": {"code": "throw new Error('half of \\ud83d')"}},
        {"type": "condition", "params": {"cases": [{"id": "a", "when": "(() => { throw new Error('\\ud83d') })()"}]}},
    ],
)
async def test_an_error_of_javascript_may_hold_half_a_character(tmp_path: Path, block: dict[str, Any]) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        run = (await engine.submit(chain("a", a=block))).run
        await until_event(engine, run, "run.finished")
        assert (await engine.runs.view(run)).status == "failed"


class Asks:
    spec = BlockSpec("asks", "Asks", "", "people", pauses=True)

    def __init__(self, **asked: Any) -> None:
        self._asked = asked

    async def run(self, ctx: StepContext) -> Outcome:
        return Suspend("form", **self._asked)


@pytest.mark.parametrize("asked", [{"request": {"of": {1, 2}}}, {"name": "\ud83d"}, {"due_ms": 10**30}])
async def test_a_pause_that_can_not_be_written_down_is_the_failure_of_its_block(
    tmp_path: Path, asked: dict[str, Any]
) -> None:
    async with engine_on(tmp_path / "weft.db", Asks(**asked)) as engine:
        run = (await engine.submit(chain("a", a={"type": "asks"}))).run
        await until_event(engine, run, "run.finished")
        view = await engine.runs.view(run)
        assert view.error is not None
        assert (view.error["code"], view.error["block"]) == ("payload_invalid", "a")
