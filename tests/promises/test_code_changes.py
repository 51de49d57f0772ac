"""A change of the code under open runs of a durable function: found when a run is entered, never a wrong result, and
nothing is lost: the run waits, says why, and continues when code that fits is there."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any

import pytest

import weft
from executor.kernel.worker import missing, other_code
from executor.open.engine import Engine
from executor.service.views import RunView, WaitView

FLOW = '''
import time, weft

@weft.step
async def reserve(order: str) -> str:
    return f"reserved {order}"

@weft.step
async def charge(order: str, at: float = 0) -> str:
    return f"charged {order}"

@weft.durable
async def order(order: str) -> list[str]:
    """Reserve, charge, and wait."""
    done = [await reserve(order)]
    done.append(await charge(order))
    done.append(await weft.signal("courier", type=str))
    return done
'''
CHARGED = "    done.append(await charge(order))\n"
UNDOING = """    try:
        await weft.signal("courier")
        await weft.sleep(days=1)
    except weft.Cancelled:
        await reserve("nothing")
        raise
"""
DONE = ["reserved 7", "charged 7", "Ada"]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(missing, "AGAIN_S", (0.02, 0.05))
    monkeypatch.setattr(missing, "GIVE_BACK_S", 0.1)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    for name in ("flow", "shop"):
        sys.modules.pop(name, None)


def flow(folder: Path, code: str, module: str = "flow") -> weft.DurableFunction[..., Any]:
    """Return the function `order` of a file with this code."""
    (folder / f"{module}.py").write_text(code)
    sys.modules.pop(module, None)
    invalidate_caches()
    made: weft.DurableFunction[..., Any] = import_module(module).order
    assert made.code, "it is read from the file, which the next call changes"
    return made


async def waiting(folder: Path, code: str = FLOW) -> str:
    """Return a run that waits for its courier, begun with this code."""
    made = flow(folder, code)
    async with weft.open(folder / "runs.db", workflows=[made]) as engine:
        run = (await engine.submit(made, order="7")).run
        while (await engine.runs.view(run)).status != "waiting":
            await asyncio.sleep(0.01)
        return run


async def question(engine: Engine, run: str, key: str = "body") -> WaitView:
    async with asyncio.timeout(20):
        while True:
            view = await engine.runs.view(run)
            assert view.error is None and view.finished_at_ms is None
            for wait in view.waits:
                if wait.kind == "attention" and wait.block == key:
                    assert wait.request["reason"] == "code"
                    return wait
            await asyncio.sleep(0.02)


async def answered(folder: Path, run: str, code: str, module: str = "flow") -> str:
    """Bring the courier where this code is; return what the run asks then."""
    async with weft.open(folder / "runs.db", workflows=[flow(folder, code, module)]) as engine:
        await engine.signal(run, "courier", "Ada")
        wait = await question(engine, run)
        assert wait.id in [one.id for one in await engine.waits.list(run=run)]
        return str(wait.request["text"])


async def ended(engine: Engine, run: str) -> RunView:
    """Return the run when it has ended: `wait_finished` also returns one that waits for people."""
    async with asyncio.timeout(20):
        while (view := await engine.runs.view(run)).finished_at_ms is None:
            await asyncio.sleep(0.02)
    return view


async def result(folder: Path, run: str, code: str) -> Any:
    async with weft.open(folder / "runs.db", workflows=[flow(folder, code)]) as engine:
        view = await ended(engine, run)
        assert view.status == "succeeded", view.error
        return view.output


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (FLOW.replace(CHARGED, ""), "call 2 is the wait `courier` now, and was `flow.charge(order=\"7\")`"),
        (FLOW.replace(CHARGED, CHARGED.replace("order", '"8"')), 'flow.charge(order="8")` now, and was'),
        (FLOW.replace('    done.append(await weft.signal("courier", type=str))\n', ""), "the wait `courier` when"),
        (FLOW.replace("reserve(", "hold("), "call 1 is `flow.hold("),
        (FLOW.replace("reserve(order: str) -> str", "reserve(order: str) -> int"), "does not fit its type"),
        (FLOW.replace("order(order: str)", "order(order: str, size: int)"), "size is required"),
    ],
    ids=[
        "a step is removed", "other arguments", "a wait is removed", "a step is renamed", "another type", "a parameter",
    ],
)  # fmt: skip
async def test_a_run_waits_for_code_that_fits(tmp_path: Path, code: str, says: str) -> None:
    run = await waiting(tmp_path)
    text = await answered(tmp_path, run, code)
    assert says in text and "flow.py:" in text and "began with other code" in text
    assert await result(tmp_path, run, FLOW) == DONE


@pytest.mark.parametrize(
    "code",
    [
        FLOW.replace('"courier", type=str))', '"courier", type=str))\n    await weft.sleep(seconds=0.01)'),
        FLOW.replace('"""Reserve, charge, and wait."""', "n: int = 3"),
        FLOW.replace('return f"charged {order}"', 'return "charged another"'),
        FLOW.replace("def order(order: str)", "def order(order: str, parts: int = 1)"),
    ],
    ids=["a call after it", "a line", "what a step does", "a parameter"],
)
async def test_a_change_that_fits_continues_at_once(tmp_path: Path, code: str) -> None:
    run = await waiting(tmp_path)
    made = flow(tmp_path, code)
    async with weft.open(tmp_path / "runs.db", workflows=[made]) as engine:
        await engine.signal(run, "courier", "Ada")
        assert (await ended(engine, run)).output == DONE


async def test_a_function_that_is_not_here_is_asked_for(tmp_path: Path) -> None:
    run = await waiting(tmp_path)
    text = await answered(tmp_path, run, FLOW, module="shop")
    assert text.startswith("There is no durable function 'flow.order'") and "This process has shop.order." in text
    assert await result(tmp_path, run, FLOW) == DONE


async def test_a_function_that_was_moved_has_its_old_name(tmp_path: Path) -> None:
    run = await waiting(tmp_path)
    moved = FLOW.replace("@weft.durable\n", '@weft.durable(aliases=("flow.order",))\n')
    moved = moved.replace("@weft.step\nasync def reserve", '@weft.step(name="flow.reserve")\nasync def reserve')
    moved = moved.replace("@weft.step\nasync def charge", '@weft.step(name="flow.charge")\nasync def charge')
    async with weft.open(tmp_path / "runs.db", workflows=[flow(tmp_path, moved, "shop")]) as engine:
        await engine.signal(run, "courier", "Ada")
        assert (await ended(engine, run)).output == DONE


async def test_a_process_without_functions_asks_for_it(tmp_path: Path) -> None:
    run = await waiting(tmp_path)
    async with weft.open(tmp_path / "runs.db") as engine:
        await engine.signal(run, "courier", "Ada")
        assert "This process has none." in (await question(engine, run)).request["text"]
    assert await result(tmp_path, run, FLOW) == DONE


async def test_a_clock_in_the_body_holds_the_run_up(tmp_path: Path) -> None:
    clock = FLOW.replace("charge(order)", "charge(order, time.time())")
    run = await waiting(tmp_path, clock)
    text = await answered(tmp_path, run, clock)
    assert "call 2" in text and "is not the same each time" in text
    async with weft.open(tmp_path / "runs.db", workflows=[flow(tmp_path, clock)]) as engine:
        await asyncio.sleep(0.1)
        assert (await question(engine, run)).request["text"] == text, "the same code is not tried again"
        await engine.answer(run=run, node="body", action="fail", by="Ada")
        view = await ended(engine, run)
    assert view.error is not None and (view.status, view.error["code"]) == ("failed", "code_changed")


async def test_a_process_that_had_the_code_all_along_continues_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_code, "LOOK_EVERY_S", 0.1)
    run = await waiting(tmp_path)
    await answered(tmp_path, run, FLOW.replace(CHARGED, ""))
    old, new = flow(tmp_path, FLOW), flow(tmp_path, FLOW.replace(CHARGED, ""))
    async with (
        weft.open(tmp_path / "runs.db", workflows=[new]) as engine,
        weft.open(tmp_path / "runs.db", workflows=[old]),
    ):
        assert (await ended(engine, run)).output == DONE
        entries = [
            event async for event in events(engine, run) if event.type == "node.started" and event.node == "body"
        ]
        assert len(entries) == 3, "the process with the other code did not enter it again"


async def events(engine: Engine, run: str) -> Any:
    for record in await engine.store.read_events(run):
        yield record


async def test_a_cancelled_run_waits_for_the_code_that_undoes_it(tmp_path: Path) -> None:
    undoing = FLOW.replace('    done.append(await weft.signal("courier", type=str))\n', UNDOING)
    run = await waiting(tmp_path, undoing)
    changed = flow(tmp_path, undoing.replace(CHARGED, ""))
    async with weft.open(tmp_path / "runs.db", workflows=[changed]) as engine:
        await engine.signal(run, "courier", "Ada")
        await question(engine, run)
        await engine.cancel(run)
        assert (await question(engine, run, "undo")).request["reason"] == "code"
    async with weft.open(tmp_path / "runs.db", workflows=[flow(tmp_path, undoing)]) as engine:
        assert (await ended(engine, run)).status == "cancelled"
        assert [step.name for step in (await engine.runs.node(run, "undo@:finally")).steps] == ["flow.reserve"]


CHECKED = FLOW.replace(
    CHARGED, f'    if weft.patched("check"):\n        done.append(await reserve("check"))\n{CHARGED}'
)
AFTER = FLOW.replace(
    "    return done\n", '    if weft.patched("mail"):\n        done.append(await reserve("mail"))\n    return done\n'
)


async def marks(engine: Engine, run: str) -> list[tuple[str, str]]:
    steps = (await engine.runs.node(run, "body")).steps
    return [(step.kind, step.name) for step in steps if step.kind == "mark"]


async def test_a_run_that_has_passed_a_patch_stays_without_it(tmp_path: Path) -> None:
    run = await waiting(tmp_path)
    made = flow(tmp_path, CHECKED)
    async with weft.open(tmp_path / "runs.db", workflows=[made]) as engine:
        new = (await engine.submit(made, order="8")).run
        for each in (run, new):
            await engine.signal(each, "courier", "Ada")
        assert (await ended(engine, run)).output == DONE
        view = await ended(engine, new)
        assert view.output == ["reserved 8", "reserved check", "charged 8", "Ada"]
        assert (await marks(engine, run), await marks(engine, new)) == ([], [("mark", "check")])


async def test_a_run_that_comes_to_a_patch_gets_it(tmp_path: Path) -> None:
    run = await waiting(tmp_path)
    made = flow(tmp_path, AFTER)
    async with weft.open(tmp_path / "runs.db", workflows=[made]) as engine:
        await engine.signal(run, "courier", "Ada")
        assert (await ended(engine, run)).output == [*DONE, "reserved mail"]


async def test_a_mark_is_a_call_that_old_code_does_not_make(tmp_path: Path) -> None:
    run = await waiting(tmp_path, CHECKED)
    text = await answered(tmp_path, run, FLOW)
    assert "call 2 is `flow.charge(" in text and "and was the mark `check` when" in text
    assert await result(tmp_path, run, CHECKED) == ["reserved 7", "reserved check", "charged 7", "Ada"]
