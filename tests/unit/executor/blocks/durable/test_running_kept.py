"""Durable functions that stay in memory while they wait: nothing is replayed, and what does not fit is thrown away."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

import weft
from executor.kernel.process.observe import doing
from executor.kernel.run import attempt
from executor.open.engine import Engine
from executor.open.testing.engines import engine
from executor.open.testing.play import finish
from tests.support.durable_functions import do, outside
from tests.support.until import until

log = logging.getLogger("tests.kept")
entered: list[str] = []
ended: list[str] = []


@pytest.fixture(autouse=True)
def nothing() -> None:
    outside.clear()
    entered.clear()
    ended.clear()


def effects() -> list[Any]:
    return [effect.what for effect in outside.effects]


@weft.durable
async def adding() -> int:
    """Adds up numbers; side by side it waits for a time that never comes."""
    entered.append("adding")
    total = 0

    async def add() -> None:
        nonlocal total
        while (got := await weft.signal("add", type=int)) >= 0:
            await do(f"add {got}")
            total += got

    try:
        await weft.first(add(), weft.sleep(days=1))
    finally:
        ended.append("adding")
    await weft.sleep(minutes=1)
    await do("end")
    return total


async def parked(opened: Engine, run: str, did: int) -> None:
    await until(lambda: len(outside.effects) >= did)
    await until(lambda: run not in opened.parts.owned.loops)


@pytest.mark.parametrize(("lanes", "entries"), [(10, 1), (0, 6)])
async def test_a_lane_that_is_kept_is_not_entered_again(lanes: int, entries: int) -> None:
    async with engine(workflows=[adding], lanes=lanes) as opened:
        run = (await opened.submit(adding)).run
        for n in range(3):
            await opened.signals.send(run, "add", n)
            await parked(opened, run, n + 1)
        await opened.signals.send(run, "add", -1)
        view = await finish(opened, run)
        assert (view.status, view.output) == ("succeeded", 3)
        assert effects() == ["add 0", "add 1", "add 2", "end"]
        assert opened.parts.owned.lanes.taken == (5 if lanes else 0)
    assert len(entered) == entries and len(ended) == entries


async def test_code_that_leaves_memory_ends_in_its_finally_blocks_and_continues_from_the_first_line() -> None:
    async with engine(workflows=[adding], lanes=1) as opened:
        first = (await opened.submit(adding)).run
        await opened.signals.send(first, "add", 1)
        await parked(opened, first, 1)
        assert ended == []
        second = (await opened.submit(adding)).run
        await until(lambda: ended == ["adding"])
        for run in (first, second):
            await opened.signals.send(run, "add", 2)
            await opened.signals.send(run, "add", -1)
        assert [(await finish(opened, run)).output for run in (first, second)] == [3, 2]
    assert sorted(effects()) == ["add 1", "add 2", "add 2", "end", "end"]


async def test_code_that_waits_ends_with_the_engine() -> None:
    async with engine(workflows=[adding], lanes=1) as opened:
        await opened.signals.send((await opened.submit(adding)).run, "add", 1)
        await until(lambda: len(opened.parts.owned.lanes) == 1)
    assert ended == ["adding"] and len(opened.parts.owned.lanes) == 0


@weft.durable
async def logging_() -> None:
    for n in range(2):
        log.info("%s before", n)
        await weft.gather(weft.sleep(days=1), line(n))
        log.info("%s after", n)


async def line(n: int) -> None:
    log.info("%s beside", n)


async def test_lines_of_the_log_have_the_number_of_their_attempt(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []

    def note(record: logging.LogRecord) -> bool:
        now = doing()
        seen.append(f"{record.getMessage()} {now.attempt}" if now is not None else "")
        return True

    caplog.set_level(logging.INFO, log.name)
    log.addFilter(note)
    async with engine(workflows=[logging_], lanes=1) as opened:
        await finish(opened, (await opened.submit(logging_)).run)
        assert opened.parts.owned.lanes.taken == 2
    log.removeFilter(note)
    assert seen == ["0 before 1", "0 beside 1", "0 after 2", "1 before 2", "1 beside 2", "1 after 3"]


@weft.durable
async def undoing() -> None:
    try:
        await do("a")
        await weft.signal("never")
    except weft.Cancelled:
        await do("undo a")
        raise


async def test_a_cancel_enters_the_function_from_the_first_line() -> None:
    async with engine(workflows=[undoing], lanes=10) as opened:
        run = (await opened.submit(undoing)).run
        await parked(opened, run, 1)
        assert len(opened.parts.owned.lanes) == 1
        await opened.cancel(run)
        assert (await finish(opened, run)).status == "cancelled"
        assert len(opened.parts.owned.lanes) == 0
    assert effects() == ["a", "undo a"]


@weft.durable
async def dropping() -> list[Any]:
    """Waits that are dropped, an answer to one of them, a published state, a mark and a random number."""
    entered.append("dropping")
    got: list[Any] = []
    for n in range(3):
        first = await weft.first(weft.signal("stop"), weft.sleep(minutes=1))
        weft.state({"round": n})
        if weft.patched("more"):
            await do(f"{n} {first.index}")
        got += [first.index, weft.random().random(), weft.now().isoformat(), str(weft.uuid())]
    return got


async def test_what_the_code_gets_is_the_same_with_and_without_its_lane() -> None:
    async with engine(workflows=[dropping], lanes=10) as opened:
        run = (await opened.submit(dropping)).run
        kept = (await finish(opened, run)).output
        assert len(entered) == 1
    async with engine(workflows=[dropping]) as opened:
        run = (await opened.submit(dropping)).run
        found = (await finish(opened, run)).output
    assert kept[0::4] == found[0::4] == [1, 1, 1]
    assert len(set(kept[1::4])) == len(set(kept[3::4])) == 3


async def test_a_lane_is_not_kept_by_a_block_that_reads_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "environment_names", lambda node: frozenset({"KEY"}))
    async with engine(workflows=[adding], lanes=10) as opened:
        run = (await opened.submit(adding)).run
        await opened.signals.send(run, "add", 1)
        await parked(opened, run, 1)
        assert len(opened.parts.owned.lanes) == 0
        await asyncio.sleep(0)
