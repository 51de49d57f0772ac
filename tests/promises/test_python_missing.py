"""A run whose function is missing waits for it, says so, and continues when a process has it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from compiler.diagnostics import CompileError
from executor.kernel.worker import missing
from executor.open.engine import Engine


def first() -> int:
    return 1


def second() -> int:
    return 2


def flow(function: str) -> dict[str, Any]:
    """It asks a person, and calls the function then."""
    return {
        "format": "weft/1",
        "name": "flow",
        "blocks": {
            "start": {"type": "start"},
            "ask": {"type": "approval", "params": {"title": "Go?"}},
            "call": {"type": "python", "params": {"function": function}},
        },
        "edges": [{"source": "start", "target": "ask"}, {"source": "ask", "target": "call"}],
    }


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing, "AGAIN_S", (0.02, 0.05))


async def asked(path: Path) -> str:
    """A run that waits for an answer, made where the function is."""
    async with weft.open(path, functions={"m1.second": second}) as engine:
        return (await engine.run(flow("m1.second"), timeout_s=5)).id


async def held_up(engine: Engine, run: str) -> str:
    """What it lacks, once it has been given back."""
    async with asyncio.timeout(20):
        while (view := await engine.runs.view(run)).lacks is None:
            await asyncio.sleep(0.02)
    assert view.finished_at_ms is None and view.error is None
    return view.lacks


@pytest.mark.parametrize("functions", [{"m2.second": second}, {}])
async def test_it_waits_and_continues(
    tmp_path: Path, functions: dict[str, Callable[[], int]], caplog: pytest.LogCaptureFixture
) -> None:
    run = await asked(tmp_path / "m.db")
    there = "m2.second" if functions else "no functions"
    with caplog.at_level(logging.WARNING, "weft.worker"):
        async with weft.open(tmp_path / "m.db", functions=functions) as engine:
            await engine.answer(run=run, node="ask", action="approve")
            assert await held_up(engine, run) == f"Python function 'm1.second' (this process has {there})"
            (why,) = [one for one in await engine.history.why(run) if one.key == "ask" or one.key == "call"][:1]
            assert why.reasons[0] == (
                f"the run waits for a process that has Python function 'm1.second' (this process has {there})"
            )
            assert not [event async for event in _events(engine, run) if event.type == "node.failed"]
    assert f"run {run} needs Python function 'm1.second' (this process has {there}), which" in caplog.text
    async with weft.open(tmp_path / "m.db", functions={"m1.second": second}) as engine:
        view = await engine.wait_finished(run, timeout_s=30)
        assert (view.status, view.output, view.lacks) == ("succeeded", 2, None)


async def _events(engine: Engine, run: str) -> Any:
    for record in await engine.store.read_events(run):
        yield record


async def test_it_can_be_cancelled(tmp_path: Path) -> None:
    run = await asked(tmp_path / "m.db")
    async with weft.open(tmp_path / "m.db", functions={"m2.second": second}) as engine:
        await engine.answer(run=run, node="ask", action="approve")
        await held_up(engine, run)
        await engine.cancel(run)
        view = await engine.wait_finished(run, timeout_s=30)
        assert (view.status, view.lacks) == ("cancelled", None)


async def test_it_can_move_to_a_version_with_the_new_name(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    async with weft.open(path, functions={"m1.second": second}) as engine:
        await engine.workflows.save(flow("m1.second"))
        run = (await engine.run("flow", timeout_s=5)).id
    async with weft.open(path, functions={"m2.second": second}) as engine:
        await engine.answer(run=run, node="ask", action="approve")
        await held_up(engine, run)
        saved = await engine.workflows.save(flow("m2.second"))
        await engine.lifecycle.migrate(run, saved.version)
        view = await engine.wait_finished(run, timeout_s=30)
        assert (view.status, view.output) == ("succeeded", 2)


async def test_what_is_not_there_is_a_finding_when_a_run_begins(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    async with weft.open(path, functions={"m1.second": second}) as engine:
        await engine.workflows.save(flow("m1.second"))
    async with weft.open(path, functions={"first": first}) as engine:
        for document in ("flow", flow("frist")):
            with pytest.raises(CompileError, match="Function must be one of first"):
                await engine.submit(document)
