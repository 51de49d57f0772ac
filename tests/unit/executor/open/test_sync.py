"""`weft.open_sync`: an engine for programs without asyncio."""

from __future__ import annotations

import ast
import asyncio
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import weft
from executor.open.blocking import TOPICS
from executor.open.engine import Engine
from tests.support.sync_engine import OUT, stub


@weft.durable
async def order(number: str, ask: bool = False) -> str:
    if ask:
        return (await weft.approve(f"Send {number}?", actions=["yes", "no"])).action
    return f"sent {number}"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[weft.SyncEngine]:
    with weft.open_sync(tmp_path / "runs.db", workflows=[order]) as engine:
        yield engine


def test_calls_return_and_streams_are_iterators(engine: weft.SyncEngine, tmp_path: Path) -> None:
    assert engine.run(order, number="7", timeout_s=20).output == "sent 7"
    started = engine.submit(order, number="8", ask=True)
    live = engine.follow(started.run, text=True)
    assert isinstance(next(live), weft.WaitOpened)
    (wait,) = engine.waits.list(run=started.run)
    engine.answer(wait, action="yes")
    assert [type(event) for event in live] == [weft.WaitClosed, weft.RunFinished]
    events = engine.stream(started.run)
    assert next(events).type == "run.started"
    events.close()
    assert [event.seq for event in engine.stream(started.run, after=2)][:2] == [3, 4]
    with ThreadPoolExecutor(8) as pool:
        views = pool.map(lambda n: engine.run(order, number=str(n), timeout_s=20), range(20))
        assert [view.output for view in views] == [f"sent {n}" for n in range(20)]
    with pytest.raises(weft.NotFound, match="nothing"):
        engine.runs.view("nothing")

    waiting = engine.submit(order, number="9", ask=True).run
    engine.close()
    with pytest.raises(RuntimeError, match="this engine is closed"):
        engine.runs.count()
    again = weft.open_sync(tmp_path / "runs.db", workflows=[order])
    assert again.wait_finished(waiting, 20).status == "waiting"
    again.answer(run=waiting, node="body", action="no")
    assert again.wait_finished(waiting, 20).output == "no"
    before = threading.active_count()
    del again  # nothing refers to it: it closes
    assert threading.active_count() < before


def test_an_interrupted_call_is_cancelled_and_the_engine_still_works(engine: weft.SyncEngine) -> None:
    run = engine.submit(order, number="7", ask=True).run
    following = engine.stream(run)
    calls: list[Callable[[], Any]] = [lambda: engine.run(order, number="8", ask=True), lambda: list(following)]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    main = threading.get_ident()
    try:
        for call in calls:
            threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT)).start()
            with pytest.raises(KeyboardInterrupt):
                call()
    finally:
        signal.signal(signal.SIGINT, before)
    assert list(following) == []
    assert engine.wait_finished(run, 20).status == "waiting"


async def test_a_running_loop_is_not_stopped(engine: weft.SyncEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match=r"would stop the event loop .* write `async with weft.open\(...\)` there"):
        engine.runs.count()
    with pytest.raises(RuntimeError, match="would stop the event loop"):
        weft.open_sync()
    assert await asyncio.to_thread(engine.runs.count) == await asyncio.to_thread(engine.runs.count)
    notebook = ModuleType("IPython")
    notebook.get_ipython = SimpleNamespace  # type: ignore[attr-defined]  # a module has no attributes of its own
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    assert engine.run(order, number="7", timeout_s=20).output == "sent 7"


PROGRAM = """
import os, sys, weft

engine = weft.open_sync(sys.argv[1])
engine.workflows.validate({})
if (child := os.fork()) == 0:
    try:
        engine.runs.count()
    except RuntimeError as error:
        print(error, flush=True)
else:
    print(os.waitpid(child, 0)[1])
"""


def test_a_program_ends_without_close_and_a_fork_has_no_engine(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROGRAM, tmp_path / "runs.db"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "this engine was opened before this process was forked: open one in each process\n0\n"


def test_type_checkers_see_what_programs_get(engine: weft.SyncEngine) -> None:
    assert OUT.read_text(encoding="utf-8") == stub(), "run `python -m tests.support.sync_engine`"
    classes = [node for node in ast.parse(OUT.read_text()).body if isinstance(node, ast.ClassDef)]
    methods = [{f.name for f in made.body if isinstance(f, ast.FunctionDef)} for made in classes]
    objects = [engine, *(getattr(engine, topic) for topic in TOPICS)]
    assert len(objects) == len(methods)
    for found, wanted in zip(objects, methods, strict=True):
        names = {name for name in dir(found) if not name.startswith("_")} - set(TOPICS)
        assert names == {name for name in wanted if not name.startswith("_")}
    assert re.findall(r"`(?:engine)?\.(\w+)`", Engine.__doc__ or "") == list(TOPICS)
    with pytest.raises(AttributeError, match=r"engine\.upkeep has no 'stop'"):
        engine.upkeep.stop()  # type: ignore[attr-defined]  # not in the stub: the engine calls it
