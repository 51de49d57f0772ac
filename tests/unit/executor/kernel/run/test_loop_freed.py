"""A run that leaves memory is freed at once, with all that it has put out: nothing waits for the garbage collector,
which counts objects and not their bytes."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from weakref import ref

import pytest

from executor.errors import DatabaseWriteFailed, Fenced
from executor.kernel.core import messages as m
from executor.kernel.handler.needs import RunLimits
from executor.kernel.run.loop import RunLoop
from executor.kernel.store.run_rows import Append, Appended, RunRow
from executor.kernel.values.scope import Values
from executor.open.engine import Engine
from tests.support.blocks import Hold, Probe, Step
from tests.support.documents import Json, chain
from tests.support.runs import engine_on, until_event
from tests.support.until import until

SIZE = 100_000
BIG: Json = {"type": "probe", "params": {"value": "x" * SIZE}}


_of_other_tests: list[Values] = []  # in tracebacks that pytest has, for example


@pytest.fixture(autouse=True)
def without_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    _of_other_tests.extend(all_values())
    yield
    _of_other_tests.clear()
    gc.enable()


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    limits, broken = RunLimits(run_bytes=10 * SIZE), Step("broken")
    broken.failing.add("last")
    async with engine_on(tmp_path / "weft.db", Probe(), Hold(), Step(), broken, limits=limits) as engine:
        engine.parts.owned.adopt = None  # each run is claimed, and its last append is one of several
        yield engine


def all_values() -> list[Values]:
    return [found for found in gc.get_objects() if type(found) is Values]


def values_in_memory() -> list[int]:
    """Bytes of each run of this test."""
    others = set(map(id, _of_other_tests))
    return [found.held_bytes() for found in all_values() if id(found) not in others]


async def until_none_is_in_memory() -> None:
    """The threads of the database may still be about to let go of it."""
    await until(lambda: not values_in_memory(), within_s=5)


def when_it_would_end(engine: Engine, do: Callable[[Append], object]) -> list[ref[RunLoop]]:
    """Before the first append that ends a run; `do` may be async. Returns what then is the loop of that run."""
    append, loops = engine.store.append, list[ref[RunLoop]]()

    async def appending(change: Append) -> Appended:
        if change.finished and not loops:
            loop = engine.parts.owned.loops[change.run_id]
            assert isinstance(loop, RunLoop)
            loops.append(ref(loop))
            del loop
            doing = do(change)
            if asyncio.iscoroutine(doing):
                await doing
        return await append(change)

    engine.store.append = appending
    return loops


def cancelled(engine: Engine) -> Callable[[Append], object]:
    """By a message that its loop has not read."""

    async def cancel(change: Append) -> None:
        now_ms = engine.parts.clock.now_ms()
        assert await engine.store.cancel_run(change.run_id, m.encode(m.Cancel("enough")), now_ms)

    return cancel


@pytest.mark.parametrize(
    ("last", "code"),
    [
        ({}, None),
        ({"type": "broken", "policy": {"retry": {"max_attempts": 1}}}, "scripted"),
        ({"type": "set", "params": {"value": ["<big>"] * 20}}, "limit_run_bytes"),
    ],
)
async def test_a_run_that_ends(engine: Engine, last: Json, code: str | None) -> None:
    run = await engine.run(chain("big", "a", "last", big=BIG, last=last), timeout_s=30)
    assert (None if run.error is None else run.error["code"]) == code
    del run
    await until_none_is_in_memory()


async def test_a_run_that_is_cancelled_while_a_block_works(engine: Engine) -> None:
    """The time that the block has to clean up is over with the block."""
    run = (await engine.submit(chain("big", "hold", big=BIG, hold={"type": "hold"}))).run
    await until_event(engine, run, "node.started", "hold")
    assert await engine.runs.cancel(run)
    assert (await engine.wait_finished(run, 30)).status == "cancelled"
    await until_none_is_in_memory()


async def test_a_run_that_parks(engine: Engine) -> None:
    run = (await engine.submit(chain("big", "ask", big=BIG, ask={"type": "approval", "params": {"title": "?"}}))).run
    await until_event(engine, run, "run.parked")
    await until_none_is_in_memory()


async def test_a_run_that_must_be_read_anew_is_not_in_memory_twice(engine: Engine) -> None:
    """It was cancelled while its last append was under way, which is refused for that. A run at its bound of 256 MiB
    would take twice as much."""
    loops = when_it_would_end(engine, cancelled(engine))
    get_run, seen = engine.store.get_run, list[tuple[list[int], int]]()

    async def getting(run_id: str) -> RunRow | None:
        if loops and not seen:  # the first thing that is read
            await until(lambda: loops[0]() is None, within_s=5)
            assert engine._worker is not None
            seen.append((values_in_memory(), sum(engine._worker._admission._entering.values())))
        return await get_run(run_id)

    engine.store.get_run = getting
    run = await engine.run(chain("big", "a", big=BIG), timeout_s=30)
    assert run.status == "cancelled"
    del run
    [(in_memory, about_to_be)] = seen
    assert in_memory == []
    assert about_to_be >= SIZE, "others must not be let in for that"
    await until_none_is_in_memory()
    assert not engine._worker._admission._entering


@pytest.mark.parametrize("error", [Fenced("the test: another worker has it"), DatabaseWriteFailed("the test: full")])
async def test_a_run_that_is_dropped(engine: Engine, error: Exception) -> None:
    def fail(change: Append) -> None:
        raise error

    loops = when_it_would_end(engine, fail)
    run = (await engine.submit(chain("big", "a", big=BIG))).run
    await until(lambda: loops and run not in engine.parts.owned.loops)
    error.__traceback__ = None  # the test holds the error
    await until_none_is_in_memory()
