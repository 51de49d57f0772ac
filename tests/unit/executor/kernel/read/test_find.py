"""What is not there, or is deleted meanwhile, is NotFound."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from executor.errors import CorruptJournal, NotFound
from executor.kernel.read.find import SharedRows, existing_run, find_run, find_version
from executor.kernel.store.topics.store import Store


class Rows:
    """Run `r` until it is deleted; versions 1 and 2 of workflow `w`, of which 2 is active."""

    def __init__(self) -> None:
        self.deleted = False

    async def get_run(self, run: str) -> Any:
        return SimpleNamespace(id=run) if run == "r" and not self.deleted else None

    async def get_workflow(self, name: str, version: int | None = None) -> Any:
        number = 2 if version is None else version
        return SimpleNamespace(name=name, version=number) if name == "w" and number in (1, 2) else None


async def test_a_run_or_not_found() -> None:
    store = cast(Store, Rows())
    assert (await find_run(store, "r")).id == "r"
    with pytest.raises(NotFound, match="there is no run 'other'"):
        await find_run(store, "other")


class Slow(Rows):
    """Each read takes until it is let go; its row says which read it was."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[asyncio.Event] = []

    async def get_run(self, run: str) -> Any:
        number, free = len(self.reads), asyncio.Event()
        self.reads.append(free)
        await free.wait()
        return None if self.deleted else SimpleNamespace(id=run, read=number)


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_who_asks_during_a_read_shares_the_next_one() -> None:
    store = Slow()
    rows = SharedRows(cast(Store, store))
    asked: list[Any] = [asyncio.create_task(rows.find("r"))]
    await turns()
    asked += [asyncio.create_task(rows.find("r")) for _ in range(3)]
    other: Any = asyncio.create_task(rows.find("other"))
    await turns()
    assert len(store.reads) == 2, "one of each run"
    store.reads[0].set()
    await turns()
    assert len(store.reads) == 3
    asked.append(asyncio.create_task(rows.find("r")))  # the second read has begun: that one is too old
    await turns()
    for free in store.reads:
        free.set()
    await turns()
    store.reads[3].set()
    assert [(await row).read for row in asked] == [0, 2, 2, 2, 3]
    assert (await other).read == 1
    await turns()
    assert not (rows._reading or rows._next)


async def test_one_who_leaves_takes_the_row_from_none_of_the_others() -> None:
    store = Slow()
    rows = SharedRows(cast(Store, store))
    first, second, third = (asyncio.create_task(rows.find("r")) for _ in range(3))
    await turns()
    first.cancel()
    second.cancel()
    await turns()
    store.deleted = True
    store.reads[1].set()
    with pytest.raises(NotFound):
        await third
    await turns()
    assert not (rows._reading or rows._next)


@pytest.mark.parametrize("error", [None, CorruptJournal("its plan is missing")])
async def test_a_run_that_is_deleted_meanwhile_is_not_found(error: Exception | None) -> None:
    rows = Rows()
    with pytest.raises(NotFound):
        async with existing_run(cast(Store, rows), "r"):
            rows.deleted = True
            if error is not None:
                raise error


async def test_an_error_about_a_run_that_is_still_there_stays() -> None:
    with pytest.raises(CorruptJournal):
        async with existing_run(cast(Store, Rows()), "r"):
            raise CorruptJournal("its plan is missing")


@pytest.mark.parametrize(("asked", "found"), [(None, 2), (1, 1), (2, 2)])
async def test_a_version_of_a_workflow(asked: int | None, found: int) -> None:
    assert (await find_version(cast(Store, Rows()), "w", asked)).version == found


@pytest.mark.parametrize(
    ("name", "version", "message"),
    [("x", None, "there is no workflow 'x'"), ("w", 3, "there is no version 3 of workflow 'w'")],
)
async def test_no_such_version(name: str, version: int | None, message: str) -> None:
    with pytest.raises(NotFound, match=message) as caught:
        await find_version(cast(Store, Rows()), name, version)
    assert caught.value.code == "workflow_not_found"
