"""What is written is often large, and the thread that wrote it may wait for hours: nothing of it is held then, nor does
it wait for the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from weakref import ref

import pytest

from executor.errors import Conflict
from executor.kernel.store.sqlite.connection import Database, Tx, plain_connect
from executor.kernel.store.sqlite.writer import Stats, Writer
from executor.kernel.store.writer import Retry
from tests.support.until import until


class Large:
    """An argument of an item."""


def write(tx: Tx, large: Large, error: Exception | None) -> None:
    if error is not None:
        raise error


@pytest.fixture(autouse=True)
def without_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
async def writer(tmp_path: Path) -> AsyncIterator[Writer]:
    database = Database(str(tmp_path / "weft.db"), 0, plain_connect, lambda name: None)
    writer = Writer(database, Retry(), Stats())
    await writer.open()
    yield writer
    await writer.close()


async def test_what_was_written(writer: Writer) -> None:
    large = Large()
    held = ref(large)
    await writer.submit(write, large, None)
    del large
    await until(lambda: held() is None, within_s=5)


@pytest.mark.parametrize("error", [Conflict("refused"), TypeError("a bug")])
async def test_what_was_refused(writer: Writer, error: Exception) -> None:
    """Its error is raised by who waits for it, and would hold all that was there and here."""

    async def caller(large: Large) -> None:
        with pytest.raises(type(error)):
            await writer.submit(write, large, error)

    large = Large()
    held = ref(large)
    await caller(large)
    del large
    error.__traceback__ = None  # the test holds the error
    await until(lambda: held() is None, within_s=5)


async def test_a_bug_still_says_where_it_is(writer: Writer) -> None:
    with pytest.raises(TypeError) as raised:
        await writer.submit(write, Large(), TypeError("a bug"))
    [note] = raised.value.__notes__
    assert f"{Path(__file__).name}" in note
    assert "in write\n" in note
