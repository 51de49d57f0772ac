"""Where the events of a durable function say that its calls are made: the line, the task and the group."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import Any

import weft
from executor.blocks.types.python import Python
from executor.kernel.journal.codec import data_of
from executor.open.testing.engines import engine
from executor.open.testing.play import finish
from tests.support.documents import chain

LINES = Path(__file__).read_text().splitlines()


@weft.step(effect="none")
async def pack(part: int, note: str = "") -> int:
    return part


async def helper(part: int) -> int:
    return await pack(part)  # in a helper


@weft.durable
async def child() -> int:
    return await pack(9)  # of the child


@weft.durable
async def sites() -> None:
    await pack(1)  # plain
    with weft.group("ship", part=3):
        await weft.gather(
            pack(2),  # of a gather
            helper(3),
        )
        with weft.group("inner"):
            await weft.gather([4], pack)  # by function
    await weft.first(
        weft.signal("never"),  # first of two
        weft.sleep(seconds=1),  # second of two
    )
    async with asyncio.timeout(5):  # a timeout
        await asyncio.create_task(pack(5))  # a task
        await child()  # a child
    await pack(6, "x" * 2_000)  # long


async def started() -> list[dict[str, Any]]:
    async with engine(workflows=[sites]) as opened:
        run = (await opened.submit(sites)).run
        view = await finish(opened, run)
        assert view.status == "succeeded", view.error
        records = await opened.store.read_events(run)
    return [data_of(record) for record in records if record.type == "step.started"]


async def test_each_call_has_its_line_its_task_and_its_group() -> None:
    shown = [
        (LINES[data["line"] - 1].split("  # ")[-1], data.get("task", 0), data.get("above", 0), data.get("group", ""))
        for data in sorted(await started(), key=lambda data: data["n"])
    ]
    assert shown == [
        ("plain", 0, 0, ""),
        ("of a gather", 1, 0, "ship part=3"),
        ("in a helper", 2, 0, "ship part=3"),
        ("by function", 3, 0, "ship part=3/inner"),
        ("first of two", 4, 0, ""),
        ("second of two", 5, 0, ""),
        ("a timeout", 0, 0, ""),
        ("a task", 6, 0, ""),
        ("a child", 0, 0, ""),
        ("long", 0, 0, ""),
    ]


async def test_it_shows_the_input_and_of_a_long_one_the_beginning() -> None:
    by_line = {LINES[data["line"] - 1].split("  # ")[-1]: data for data in await started()}
    assert by_line["plain"]["shown"] == {"part": 1}
    assert "shown" not in by_line["first of two"]
    long = by_line["long"]["shown"]
    assert long.startswith('{"note":"xxx') and long.endswith("x…") and len(long.encode()) <= 1_024 + 3


async def test_a_handler_records_none_of_it() -> None:
    async def work() -> int:
        return 1

    async def works(ctx: weft.StepContext) -> Any:
        return await ctx.step("step", "one", {"a": 1}, work)

    async with engine(blocks=[Python({"works": works})]) as opened:
        run = (await opened.submit(chain("a", a={"type": "python", "params": {"function": "works"}}))).run
        await finish(opened, run)
        records = await opened.store.read_events(run)
    [data] = [data_of(record) for record in records if record.type == "step.started"]
    assert set(data) == {"n", "kind", "name", "input_hash", "effect"}


def test_a_group_outside_of_a_durable_function_does_nothing() -> None:
    with weft.group("ship", part=3):
        assert inspect.currentframe() is not None
