"""Whose turn it is to have a place."""

from __future__ import annotations

import asyncio

from executor.blocks.runners.children import Room


async def entering(room: Room, *runs: str) -> tuple[list[str], list[asyncio.Task[None]]]:
    """Who has entered, in order, and a task for each."""
    entered: list[str] = []

    async def enter(run: str, n: int) -> None:
        await room.enter(run)
        entered.append(f"{run}{n}")

    tasks = [asyncio.create_task(enter(run, n)) for n, run in enumerate(runs)]
    await asyncio.sleep(0)
    return entered, tasks


async def left(room: Room, times: int) -> None:
    for _ in range(times):
        room.leave()
    await asyncio.sleep(0)


async def test_runs_take_turns_and_keep_their_own_order() -> None:
    room = Room(1)
    await room.enter("first")
    assert room.is_full
    entered, _ = await entering(room, *"aaaabbc")
    assert entered == []
    await left(room, 7)
    assert entered == ["a0", "b4", "c6", "a1", "b5", "a2", "a3"]
    await left(room, 1)
    assert not room.is_full


async def test_as_many_have_a_place_as_there_are() -> None:
    room = Room(2)
    entered, _ = await entering(room, *"aaaab")
    assert entered == ["a0", "a1"]
    await left(room, 2)
    assert entered == ["a0", "a1", "a2", "b4"]


async def test_who_is_cancelled_takes_no_place() -> None:
    room = Room(1)
    await room.enter("first")
    entered, tasks = await entering(room, *"aab")
    tasks[0].cancel()
    tasks[2].cancel()
    room.leave()
    tasks[1].cancel()  # after it has got the place
    await asyncio.gather(*tasks, return_exceptions=True)
    assert entered == []
    assert not room.is_full
    await asyncio.wait_for(room.enter("last"), 30)
    assert room.is_full
