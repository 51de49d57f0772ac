from __future__ import annotations

import asyncio

import pytest

from executor.kernel.process.shared_reads import SharedReads


class Reader:
    """Reads that end when `let` says so."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.value = 0
        self.let = asyncio.Event()

    async def read(self, key: str) -> int:
        self.begun.append(key)
        value = self.value
        await self.let.wait()
        return value


async def passes(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_those_who_ask_in_one_pass_share_a_read() -> None:
    reader = Reader()
    shared = SharedReads(reader.read)
    asking = [asyncio.create_task(shared.read(key)) for key in ("a", "a", "b", "a")]
    await passes()
    assert reader.begun == ["a", "b"]
    reader.let.set()
    assert await asyncio.gather(*asking) == [0, 0, 0, 0]


async def test_who_asks_during_a_read_sees_what_was_written_before() -> None:
    reader = Reader()
    shared = SharedReads(reader.read)
    first = asyncio.create_task(shared.read("a"))
    await passes()
    reader.value = 1
    later = [asyncio.create_task(shared.read("a")) for _ in range(3)]
    await passes()
    assert reader.begun == ["a"], "the next read begins when this one has ended"
    reader.let.set()
    assert await first == 0
    assert await asyncio.gather(*later) == [1, 1, 1]
    assert reader.begun == ["a", "a"]


async def test_an_error_reaches_all_and_a_cancelled_caller_takes_nothing_from_others() -> None:
    reader = Reader()

    async def read(key: str) -> int:
        await reader.read(key)
        raise ValueError(key)

    shared = SharedReads(read)
    asking = [asyncio.create_task(shared.read("a")) for _ in range(3)]
    await passes()
    asking[0].cancel()
    reader.let.set()
    for task in asking[1:]:
        with pytest.raises(ValueError, match="a"):
            await task
    with pytest.raises(ValueError, match="a"):
        await shared.read("a")
    assert len(reader.begun) == 2
