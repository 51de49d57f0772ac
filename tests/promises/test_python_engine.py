"""Usual mistakes with an engine in a program: each has an error that says what to do, at the caller's line."""

from __future__ import annotations

import asyncio
import gc
import re
import subprocess
import sys
import traceback
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import weft
from executor.open.engine import GC_THRESHOLDS, Engine

DOCUMENT: dict[str, Any] = {
    "format": "weft/1",
    "name": "doubles",
    "input": {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]},
    "blocks": {
        "start": {"type": "start"},
        "double": {"type": "function", "params": {"code": "return 2 * <start.n>"}},
    },
    "edges": [{"source": "start", "target": "double"}],
}


async def wrong_input(engine: Engine) -> None:
    await engine.run(DOCUMENT, {"n": "many"})


async def input_that_is_no_object(engine: Engine) -> None:
    await engine.run(DOCUMENT, 5)


async def in_a_task(engine: Engine) -> None:
    await asyncio.create_task(engine.run(DOCUMENT, {"n": "many"}))


async def unknown_workflow(engine: Engine) -> None:
    await engine.submit("doubled")


async def unknown_run(engine: Engine) -> None:
    await engine.cancel("0123")


async def no_await(engine: Engine) -> None:
    print(engine.run(DOCUMENT, {"n": 1}).status)  # type: ignore[attr-defined]


async def closed(engine: Engine) -> None:
    await engine.close()
    await engine.run(DOCUMENT, {"n": 1})


async def closed_and_read(engine: Engine) -> None:
    await engine.close()
    await engine.wait_finished("0123", timeout_s=1)


FRAMES_MAX = 3  # the function here, and what raises

Mistake = Callable[[Engine], Awaitable[None]]


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        (wrong_input, r"many|number"),
        (input_that_is_no_object, "object"),
        (in_a_task, r"many|number"),
        (unknown_workflow, "weft workflows"),
        (unknown_run, r"engine\.runs\.list\(\)"),
        (no_await, r"put `await` in front of the call"),
        (closed, r"inside its `async with weft\.open\(\.\.\.\)` block"),
        (closed_and_read, r"inside its `async with weft\.open\(\.\.\.\)` block"),
    ],
)
@pytest.mark.filterwarnings("ignore:coroutine 'Runs.run' was never awaited")
async def test_a_mistake_says_what_to_do(mistake: Mistake, says: str) -> None:
    async with weft.open() as engine:
        with pytest.raises(Exception) as found:
            await mistake(engine)
        shown = "".join(traceback.format_exception(found.value))  # as Python prints it
        assert re.search(says, shown), shown
        frames = traceback.extract_tb(found.value.__traceback__)[1:]
        assert frames[0].filename == __file__ and len(frames) <= FRAMES_MAX, frames
        del found, frames  # they hold a call that is never awaited: Python would warn of it in a later test
        gc.collect()


async def test_a_plain_with_and_an_await_say_async_with() -> None:
    words = r"plain `with`: write `async with weft\.open\(\.\.\.\) as engine:`"
    with pytest.raises(TypeError, match=words), weft.open():  # type: ignore[attr-defined]
        pass
    with pytest.raises(TypeError, match="async with"):
        await weft.open()  # type: ignore[misc]
    with pytest.raises(AttributeError, match="async with"):
        weft.open().run  # type: ignore[attr-defined]  # noqa: B018


async def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(weft.WeftError, match=r"the folder .*file/in of the database cannot be made") as found:
        async with weft.open(tmp_path / "file" / "in" / "weft.db"):
            pass
    assert "may write" in found.value.hint
    with pytest.raises(weft.WeftError, match=r"is a folder") as found:
        async with weft.open(tmp_path):
            pass
    assert str(tmp_path / "weft.db") in found.value.hint


async def test_work_that_is_not_async_is_named() -> None:
    async def steps(ctx: Any) -> Any:
        return await ctx.step("step", "one", None, lambda: 1)

    document = {
        "format": "weft/1",
        "name": "steps",
        "blocks": {"start": {"type": "start"}, "go": {"type": "python", "params": {"function": "steps"}}},
        "edges": [{"source": "start", "target": "go"}],
    }
    async with weft.open(functions={"steps": steps}) as engine:
        run = await engine.run(document, timeout_s=30)
    assert run.error is not None
    assert (
        "the work of step 'one' returned int, which cannot be awaited: write it as `async def`"
        in (run.error["message"])
    )


async def test_an_engine_that_is_kept_alone_stays_open() -> None:
    engine = await weft.open().__aenter__()
    gc.collect()
    run = await engine.run(DOCUMENT, {"n": 2}, timeout_s=30)
    assert run.status == "succeeded", run.error
    await engine.close()


async def test_the_collector_runs_less_often_while_an_engine_is_open() -> None:
    before = gc.get_threshold()
    try:
        gc.set_threshold(700, 10, 10)
        async with weft.open():
            async with weft.open():
                assert gc.get_threshold() == GC_THRESHOLDS
            assert gc.get_threshold() == GC_THRESHOLDS
        assert gc.get_threshold() == (700, 10, 10)
        async with weft.open(tune_gc=False):
            assert gc.get_threshold() == (700, 10, 10)
        gc.set_threshold(5_000, 5, 5)
        async with weft.open():
            assert gc.get_threshold() == (5_000, 5, 5), "those of the program stay"
        gc.set_threshold(700, 10, 10)
        async with weft.open():
            gc.set_threshold(6_000, 6, 6)
        assert gc.get_threshold() == (6_000, 6, 6), "those that the program sets meanwhile stay"
    finally:
        gc.set_threshold(*before)


def test_the_version() -> None:
    assert weft.__version__ == version("weft")


LEAVES = """
import asyncio, sys
import weft

DOCUMENT = {
    "format": "weft/1",
    "name": "one",
    "blocks": {"start": {"type": "start"}, "one": {"type": "function", "params": {"code": "return 1"}}},
    "edges": [{"source": "start", "target": "one"}],
}


async def main():
    engine = await weft.open(sys.argv[1]).__aenter__()
    for _ in range(5):
        assert (await engine.run(DOCUMENT, timeout_s=30)).output["result"] == 1
    if sys.argv[2] == "raise":
        raise ValueError("left")


asyncio.run(main())
"""


@pytest.mark.parametrize("how", ["raise", "end"])
def test_a_program_that_leaves_an_engine_open_ends(how: str, postgres: str, tmp_path: Path) -> None:
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", LEAVES, place, how],
            stderr=subprocess.PIPE,
            text=True,
        )
        for place in (postgres, postgres, postgres, str(tmp_path / "weft.db"))
    ]
    try:
        for program in programs:
            _, said = program.communicate(timeout=60)
            assert (program.returncode == 0) == (how == "end"), said
            assert how == "end" or "ValueError: left" in said
    finally:
        for program in programs:
            program.kill()
            program.wait()
