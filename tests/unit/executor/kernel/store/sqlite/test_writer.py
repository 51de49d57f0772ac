from __future__ import annotations

import asyncio
import math
import sqlite3

import pytest

from executor.errors import Conflict, DatabaseDamaged, DatabaseFull, DatabaseUnavailable, DatabaseWriteFailed
from executor.kernel.store.patience import patience
from executor.kernel.store.sqlite.connection import CommitUncertain, Database, plain_connect
from executor.kernel.store.sqlite.errors import as_weft_error
from executor.kernel.store.sqlite.writer import Stats, Writer, ping
from executor.kernel.store.writer import SHARED, Item, Outcome, Retry


def test_delays_double_up_to_a_cap_and_spread_by_a_quarter() -> None:
    retry = Retry()
    middle = [round(retry.delay_s(attempt, 0.5) * 1000) for attempt in range(1, 9)]
    assert middle == [50, 100, 200, 250, 250, 250, 250, 250]
    assert retry.delay_s(1, 0.0) == pytest.approx(0.0375)
    assert retry.delay_s(1, 1.0) == pytest.approx(0.0625)


def error(code: int, kind: type[sqlite3.Error] = sqlite3.OperationalError) -> sqlite3.Error:
    made = kind("injected")
    made.sqlite_errorcode = code
    return made


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_BUSY, DatabaseWriteFailed),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, DatabaseWriteFailed),
        (sqlite3.SQLITE_LOCKED, DatabaseWriteFailed),
        (sqlite3.SQLITE_FULL, DatabaseFull),
        (sqlite3.SQLITE_IOERR_FSYNC, DatabaseUnavailable),
        (sqlite3.SQLITE_CORRUPT, DatabaseDamaged),
        (sqlite3.SQLITE_CANTOPEN, DatabaseUnavailable),
        (sqlite3.SQLITE_CONSTRAINT_UNIQUE, Conflict),
        (sqlite3.SQLITE_ERROR, sqlite3.OperationalError),
    ],
)
def test_what_sqlite_says_in_our_words(code: int, kind: type[Exception]) -> None:
    assert type(as_weft_error(error(code))) is kind


def test_an_io_error_of_a_commit_that_did_not_happen_is_worth_another_try() -> None:
    uncertain = CommitUncertain()
    uncertain.__cause__ = error(sqlite3.SQLITE_IOERR_WRITE)
    assert type(as_weft_error(uncertain)) is DatabaseUnavailable
    assert type(as_weft_error(uncertain, again=True)) is DatabaseWriteFailed
    uncertain.__cause__ = error(sqlite3.SQLITE_FULL)
    assert type(as_weft_error(uncertain, again=True)) is DatabaseFull


def test_bugs_stay_what_they_are() -> None:
    bug = TypeError("a bug")
    assert as_weft_error(bug) is bug
    misuse = sqlite3.ProgrammingError("no code at all")
    assert as_weft_error(misuse) is misuse


class Batches(Writer):
    """A writer whose thread is the test: `handed_over` are the sizes of the batches."""

    def __init__(self) -> None:
        super().__init__(Database(":memory:", 0, plain_connect, lambda name: None), Retry(), Stats())
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self.handed_over: list[int] = []
        self._items: list[Item] = []

    def _put(self, items: list[Item]) -> None:
        self.handed_over.append(len(items))
        self._items += items

    def begin(self, count: int = 1, passes: int = 0) -> asyncio.Future[list[None]]:
        """So many appends of runs that submit another one `passes` passes of the loop after each commit."""

        async def step() -> None:
            await self.submit(ping)
            for _ in range(passes):
                await asyncio.sleep(0)
            await self.submit(ping)

        return asyncio.gather(*(step() for _ in range(count)))

    def commit(self, count: int) -> None:
        done, self._items = self._items[:count], self._items[count:]
        self._loop.call_soon(self._resolve, [(item.future, Outcome(None)) for item in done])


async def passes(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_single_item_is_handed_over_behind_the_pass_that_submits_it() -> None:
    writer = Batches()
    writer.submit(ping)
    assert writer.handed_over == []
    await passes(1)
    assert writer.handed_over == [1]


@pytest.mark.parametrize("late", [0, 1, 2])
async def test_those_that_submit_within_a_few_passes_share_a_batch(late: int) -> None:
    writer = Batches()
    steps = [writer.begin(3), writer.begin(2, late)]
    await passes()
    assert writer.handed_over == [5]
    writer.commit(5)
    await passes()
    assert writer.handed_over == [5, 5]
    writer.commit(5)
    await asyncio.gather(*steps)


async def test_a_batch_that_is_large_enough_does_not_wait() -> None:
    writer = Batches()
    steps = writer.begin(SHARED + 6)
    await passes()
    writer.commit(SHARED)
    await passes(3)
    assert writer.handed_over == [SHARED + 6, SHARED]
    writer.commit(6)
    await passes()
    assert writer.handed_over == [SHARED + 6, SHARED]  # six wait for the others
    writer.commit(SHARED)
    await passes()
    assert writer.handed_over == [SHARED + 6, SHARED, 6]
    writer.commit(6)
    await steps


async def test_a_batch_waits_for_the_end_of_a_larger_group_and_not_of_a_smaller_one() -> None:
    writer = Batches()
    first = writer.begin(3)
    await passes()
    second = writer.begin(2)
    await passes()
    assert writer.handed_over == [3]
    third = writer.begin(1)
    await passes()
    assert writer.handed_over == [3, 3]
    for count in (3, 3, 3, 3):
        writer.commit(count)
        await passes()
    await asyncio.gather(first, second, third)


async def test_a_request_waits_for_no_group() -> None:
    writer = Batches()
    steps = writer.begin(3)
    await passes()
    with patience(10):
        asked = writer.submit(ping)
    await passes(1)
    assert writer.handed_over == [3, 1]
    writer.commit(4)
    await asked
    await passes()
    writer.commit(3)
    await steps


async def test_the_next_group_is_that_of_requests_and_others_have_every_second_one() -> None:
    """Before, a request waited for two groups of others every second time."""
    writer = Batches()

    def add(names: str) -> None:
        """`R` is of a request."""
        for name in names:
            until_s = 1e12 if name == "R" else math.inf
            writer._waiting.append(Item(asyncio.get_running_loop().create_future(), ping, (name,), until_s))

    def commit(count: int = 10) -> str:
        """The first of the next group; the others of it are left out because a request waits."""
        group = writer._next_group()
        writer._waiting[:0] = group[count:]
        return "".join(item.args[0] for item in group[:count])

    for _ in range(2):  # it is the same when requests came before
        add("abc")
        assert commit(2) == "ab"
        add("dRR")
        assert commit() == "RR"
        add("R")
        assert commit(1) == "c"
        assert commit() == "R"
        assert commit() == "d"
        add("R")
        assert commit() == "R"
        add("Ra")
        assert commit() == "R"
        assert commit() == "a"
