"""Locks, full disks, uncertain commits, cancelled callers: what the writer does when something goes wrong."""

from __future__ import annotations

import asyncio
import math
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from executor.errors import DatabaseUnavailable, DatabaseWriteFailed, Fenced
from executor.kernel.store.patience import patience
from executor.kernel.store.run_rows import Appended
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.sqlite.writer import GROUP_ROWS_MIN
from executor.kernel.store.writer import Retry
from tests.support.other_process import OtherProcess
from tests.support.rows import T0, change, new_run, owned_run, record, row, wait
from tests.support.until import until

QUICK = Retry(attempts=6, base_ms=1, cap_ms=5)


@pytest.fixture(params=[0.0, math.inf], ids=["thread", "here"])
def here(request: pytest.FixtureRequest) -> float:
    """For `commit_here_below_s`: appends that come alone are committed in the writer's thread, or in the loop's."""
    return float(request.param)


def poll(condition: Callable[[], bool]) -> None:
    """For things that the writer's thread does not report."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


async def test_a_short_lock_of_another_process_only_delays(tmp_path: Path, here: float) -> None:
    store = SQLiteStore(tmp_path / "weft.db", busy_timeout_ms=60_000, commit_here_below_s=here)
    await store.open()
    run = await owned_run(store)
    other = OtherProcess(store.path)
    append = asyncio.create_task(store.append(change(run, record())), name="append")
    await asyncio.sleep(0.2)
    assert not append.done()
    assert (await row(store, run.id)).seq == 1  # readers go on
    other.let_go()
    assert (await append).seq == 2
    assert store.stats.retries == 0
    await store.close()


async def test_a_busy_database_is_tried_again_as_a_whole(tmp_path: Path, here: float) -> None:
    patient = Retry(attempts=1000, base_ms=50, cap_ms=50)  # whenever the other process comes to let go
    store = SQLiteStore(tmp_path / "weft.db", busy_timeout_ms=0, retry=patient, commit_here_below_s=here)
    await store.open()
    run = await owned_run(store)
    other = OtherProcess(store.path)
    append = asyncio.create_task(store.append(change(run, record(), waits=(wait(run.id),))), name="append")
    await asyncio.to_thread(poll, lambda: store.stats.retries > 0)
    other.let_go()
    assert (await append).seq == 2
    assert store.stats.retries >= 1
    assert len(await store.list_waits()) == 1
    await store.close()


async def test_who_closes_does_not_wait_for_all_tries(tmp_path: Path, here: float) -> None:
    """A server that is stopped while another process has the lock would otherwise be killed before it has ended."""
    for_long = Retry(attempts=1000, base_ms=100, cap_ms=100)
    store = SQLiteStore(tmp_path / "weft.db", busy_timeout_ms=0, retry=for_long, commit_here_below_s=here)
    await store.open()
    run = await owned_run(store)
    other = OtherProcess(store.path)
    append = asyncio.create_task(store.append(change(run, record())), name="append")
    await asyncio.to_thread(poll, lambda: store.stats.retries > 0)
    await store.close()
    assert store.stats.retries < for_long.attempts
    with pytest.raises(DatabaseWriteFailed):
        await append
    other.let_go()


async def test_who_gives_up_opening_does_not_wait_for_all_tries(tmp_path: Path) -> None:
    first = SQLiteStore(tmp_path / "weft.db")
    await first.open()
    await first.close()
    tries = 3_000  # half a minute
    store = SQLiteStore(tmp_path / "weft.db", busy_timeout_ms=0, retry=Retry(attempts=tries, base_ms=10, cap_ms=10))
    other = OtherProcess(store.path)
    try:
        opening = asyncio.create_task(store.open())
        await until(lambda: store.stats.retries)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
    finally:
        other.let_go()
    assert store.stats.retries < tries
    await store.open()
    await store.close()


async def test_a_lock_that_stays_fails_the_write_and_only_that(tmp_path: Path, here: float) -> None:
    store = SQLiteStore(tmp_path / "weft.db", busy_timeout_ms=0, retry=QUICK, commit_here_below_s=here)
    await store.open()
    run = await owned_run(store)
    other = OtherProcess(store.path)
    results = await asyncio.gather(
        *(store.append(change(run, record(), expected_seq=seq)) for seq in (1, 2)), return_exceptions=True
    )
    assert [type(result) for result in results] == [DatabaseWriteFailed] * 2
    assert results[0] is not results[1]
    assert store.stats.retries % 6 == 0
    other.let_go()
    assert (await store.append(change(run, record()))).seq == 2
    await store.close()


class Broken(sqlite3.Connection):
    """A connection whose statements can be made to fail: `trouble` sees each before it runs."""

    trouble: Callable[[sqlite3.Connection, str, Any], None] | None = None

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        if Broken.trouble is not None:
            Broken.trouble(self, sql, parameters)
        return super().execute(sql, parameters)


def broken_connect(path: str) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, factory=Broken, check_same_thread=False)


def sqlite_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("injected")
    error.sqlite_errorcode = code
    return error


@pytest.fixture
def trouble() -> Any:
    """Set the next failures: `trouble(statement, code, committed, times)`. An append that is a transaction by itself is
    a COMMIT too."""

    def arrange(statement: str, code: int, times: int = 1, commit_first: bool = False) -> None:
        left = times

        def fail(db: sqlite3.Connection, sql: str, parameters: Any) -> None:
            nonlocal left
            if left and sql.strip().startswith(statement):
                left -= 1
                if commit_first:
                    sqlite3.Connection.execute(db, sql, parameters).fetchall()
                raise sqlite_error(code)

        Broken.trouble = staticmethod(fail)

    yield arrange
    Broken.trouble = None


async def broken_store(tmp_path: Path, here: float) -> SQLiteStore:
    store = SQLiteStore(tmp_path / "weft.db", connect=broken_connect, retry=QUICK, commit_here_below_s=here)
    await store.open()
    return store


async def test_a_commit_that_raised_but_happened_is_not_done_twice(tmp_path: Path, trouble: Any, here: float) -> None:
    store = await broken_store(tmp_path, here)
    run = await owned_run(store)
    trouble("COMMIT", sqlite3.SQLITE_IOERR, commit_first=True)
    assert (await store.append(change(run, record(), waits=(wait(run.id),)))).seq == 2
    assert len(await store.read_events(run.id)) == 2

    trouble("COMMIT", sqlite3.SQLITE_IOERR, commit_first=True)
    assert await store.append(change(run, record(), expected_seq=2)) == Appended(3, 0)
    assert len(await store.read_events(run.id)) == 3

    trouble("COMMIT", sqlite3.SQLITE_IOERR, commit_first=True)
    assert await store.post_message(run.id, b"fact", T0)
    assert len(await store.read_inbox(run.id)) == 1

    trouble("COMMIT", sqlite3.SQLITE_IOERR, commit_first=True)
    answered = await store.answer_wait(wait(run.id).token_hash, b"yes", "ada", b"fact", T0)
    assert answered is not None and answered.won

    trouble("COMMIT", sqlite3.SQLITE_IOERR, commit_first=True)
    assert (await store.create_run(new_run("run-2")))[1]
    assert store.stats.retries == 0
    await store.close()


async def test_a_commit_that_raised_and_did_not_happen_is_done_again(tmp_path: Path, trouble: Any, here: float) -> None:
    store = await broken_store(tmp_path, here)
    run = await owned_run(store)
    trouble("COMMIT", sqlite3.SQLITE_IOERR, times=3)
    assert (await store.append(change(run, record()))).seq == 2
    assert store.stats.retries == 3
    trouble("COMMIT", sqlite3.SQLITE_BUSY)
    assert await store.post_message(run.id, b"fact", T0)
    assert len(await store.read_inbox(run.id)) == 1
    await store.close()


async def test_a_commit_that_never_works_fails_without_a_trace(tmp_path: Path, trouble: Any, here: float) -> None:
    store = await broken_store(tmp_path, here)
    run = await owned_run(store)
    trouble("COMMIT", sqlite3.SQLITE_IOERR, times=100)
    with pytest.raises(DatabaseWriteFailed):
        await store.append(change(run, record()))
    trouble("COMMIT", sqlite3.SQLITE_FULL)
    with pytest.raises(DatabaseUnavailable):
        await store.append(change(run, record()))
    assert (await store.append(change(run, record()))).seq == 2
    await store.close()


@pytest.mark.parametrize("code", [sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CORRUPT])
@pytest.mark.parametrize("statement", ["BEGIN IMMEDIATE", "UPDATE heads", "INSERT INTO blobs"])
async def test_a_disk_that_says_no_fails_the_group(
    tmp_path: Path, trouble: Any, here: float, code: int, statement: str
) -> None:
    store = await broken_store(tmp_path, here)
    run = await owned_run(store)
    trouble(statement, code)
    with pytest.raises(DatabaseUnavailable):
        await store.append(change(run, record(), blobs=(("sha", b"x"),)))
    assert len(await store.read_events(run.id)) == 1
    assert (await store.append(change(run, record(), blobs=(("sha", b"x"),)))).seq == 2  # it recovers by itself
    await store.close()


async def test_a_full_disk(tmp_path: Path) -> None:
    limit = 0

    def connect(path: str) -> sqlite3.Connection:
        db = sqlite3.connect(path, isolation_level=None)
        if limit:
            db.execute(f"PRAGMA max_page_count = {limit}")
        return db

    store = SQLiteStore(tmp_path / "weft.db", connect=connect)
    await store.open()
    run = await owned_run(store)
    await store.close()
    limit = (tmp_path / "weft.db").stat().st_size // 4096 + 2

    store = SQLiteStore(tmp_path / "weft.db", connect=connect)
    await store.open()
    with pytest.raises(DatabaseUnavailable, match="full"):
        await store.append(change(run, record(output=b"x" * 100_000)))
    assert (await row(store, run.id)).seq == 1
    limit = 0  # space returns
    assert (await store.append(change(run, record(output=b"x" * 100_000)))).seq == 2
    await store.close()


async def test_a_cancelled_caller_harms_no_other(tmp_path: Path) -> None:
    entered, go_on = threading.Event(), threading.Event()
    hold = False

    def fault(name: str) -> None:
        if hold:
            entered.set()
            go_on.wait(20)

    store = SQLiteStore(tmp_path / "weft.db", fault=fault)
    await store.open()
    runs = [await owned_run(store, f"run-{i}") for i in range(3)]
    hold = True
    under_way = asyncio.create_task(store.append(change(runs[0], record())), name="under way")
    await asyncio.to_thread(entered.wait, 20)
    queued = asyncio.create_task(store.append(change(runs[1], record())), name="queued")
    await asyncio.sleep(0)
    for task in (under_way, queued):
        task.cancel()
    await asyncio.gather(under_way, queued, return_exceptions=True)
    assert under_way.cancelled() and queued.cancelled()
    hold = False
    go_on.set()

    assert (await store.append(change(runs[2], record()))).seq == 2
    assert [(await row(store, run.id)).seq for run in runs] == [2, 2, 2]  # committed all the same
    await store.close()


async def test_a_cancelled_reader_harms_no_other(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "weft.db")
    await store.open()
    run = await owned_run(store)
    for _ in range(20):
        read = asyncio.create_task(store.read_events(run.id), name="read")
        await asyncio.sleep(0)
        read.cancel()
    assert len(await store.read_events(run.id)) == 1
    assert (await store.append(change(run, record()))).seq == 2
    await store.close()


async def test_a_bug_in_one_item_reaches_its_caller_alone(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "weft.db")
    await store.open()
    runs = [await owned_run(store, f"run-{i}") for i in range(3)]
    results = await asyncio.gather(
        store.append(change(runs[0], record())),
        store.append(change(runs[1], record(at_ms=2**70))),
        store.append(change(runs[2], record(), expected_seq=5)),
        return_exceptions=True,
    )
    assert results[0] == Appended(2, 0)
    assert isinstance(results[1], TypeError)  # larger than any integer that is stored
    assert isinstance(results[2], Fenced)
    assert [(await row(store, run.id)).seq for run in runs] == [2, 1, 1]
    await store.close()


async def test_those_who_wait_share_a_commit(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "weft.db")
    await store.open()
    await asyncio.gather(*(store.create_run(new_run(f"run-{i}")) for i in range(500)))
    assert store.stats.items == 500
    assert store.stats.commits <= 100
    assert store.stats.group_max >= 20
    assert store.stats.rows >= 1000

    before = store.stats.commits
    await store.claim("w1", 0, 1)
    assert store.stats.commits == before  # nothing changed, nothing synced
    await store.ping()
    assert store.stats.commits == before + 1
    await store.close()


async def test_a_group_has_a_bound(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "weft.db")
    await store.open()
    await asyncio.gather(*(store.create_run(new_run(f"run-{i}")) for i in range(3000)))
    assert store.stats.group_max <= 1024
    assert len(await store.list_runs(limit=5000)) == 3000
    await store.close()


async def test_a_request_does_not_wait_for_all_that_came_before_it(tmp_path: Path) -> None:
    """While a transaction holds the writer up, steps of runs come in, and then a request. It is committed after a few
    of them, they share the rest."""
    held, entered = threading.Event(), threading.Event()

    def fault(name: str) -> None:
        if name == "tx.group.before_commit" and not entered.is_set():
            entered.set()
            assert held.wait(60)

    store = SQLiteStore(tmp_path / "weft.db", fault=fault)
    await store.open()
    order: list[str] = []

    async def create(name: str) -> None:
        await store.create_run(new_run(name))
        order.append(name)

    first = asyncio.gather(create("first"), create("second"))
    await asyncio.to_thread(entered.wait, 60)
    steps = [asyncio.create_task(create(f"step-{i}")) for i in range(2000)]
    await asyncio.sleep(0)
    with patience(60):
        request = asyncio.create_task(create("request"))
    await asyncio.sleep(0)
    held.set()
    await asyncio.gather(first, *steps, request)
    assert order.index("request") < 200, "a group of requests goes first, or after a few rows of the others"
    assert [name for name in order if name.startswith("step")] == [f"step-{i}" for i in range(2000)]
    assert store.stats.commits < 50
    await store.close()


async def test_a_request_waits_for_few_rows_of_the_group_under_way(tmp_path: Path) -> None:
    """The rest of that group is committed behind it."""
    held, entered = threading.Event(), threading.Event()
    writes = 0

    def fault(name: str) -> None:
        nonlocal writes
        if name == "write.create_run":
            writes += 1
            if writes == 5:
                entered.set()
                assert held.wait(60)

    store = SQLiteStore(tmp_path / "weft.db", fault=fault)
    await store.open()
    order: list[str] = []

    async def create(name: str) -> None:
        await store.create_run(new_run(name))
        order.append(name)

    steps = [asyncio.create_task(create(f"step-{i}")) for i in range(500)]
    await asyncio.to_thread(entered.wait, 60)
    with patience(60):
        request = asyncio.create_task(create("request"))
    for _ in range(5):
        await asyncio.sleep(0)
    held.set()
    await asyncio.gather(*steps, request)
    assert 5 <= order.index("request") <= GROUP_ROWS_MIN // 3, "a run is three rows"
    assert [name for name in order if name != "request"] == [f"step-{i}" for i in range(500)]
    assert store.stats.commits == 3
    await store.close()


async def test_an_idle_writer_copies_its_wal_into_the_file(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "weft.db")
    await store.open()
    await owned_run(store)
    await asyncio.to_thread(poll, lambda: store.stats.checkpoints > 0)
    await store.close()
