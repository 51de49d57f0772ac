"""Appends that come alone, committed in the thread of the event loop."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from executor.errors import DatabaseReplaced, Fenced
from executor.kernel.store.run_rows import Append, Appended, RunRow
from executor.kernel.store.sqlite.store import SQLiteStore
from tests.support.other_process import OtherProcess
from tests.support.rows import T0, change, new_run, owned_run, record
from tests.support.until import until


class Commits:
    """Of a store: `here` are those in the thread of the event loop."""

    def __init__(self, path: Path, below_s: float = math.inf) -> None:
        self.store = SQLiteStore(path, busy_timeout_ms=60_000, commit_here_below_s=below_s, fault=self._passed)
        self._loop = threading.get_ident()
        self.here = self.there = 0

    def _passed(self, point: str) -> None:
        if point != "tx.group.after_commit":
            return
        if threading.get_ident() == self._loop:
            self.here += 1
        else:
            self.there += 1

    def forget(self) -> None:
        self.here = self.there = 0


@pytest_asyncio.fixture
async def commits(tmp_path: Path) -> AsyncIterator[Commits]:
    made = Commits(tmp_path / "weft.db")
    await made.store.open()
    yield made
    await made.store.close()


def steps(run: RunRow, count: int) -> list[Append]:
    return [change(run, record(), expected_seq=run.seq + n) for n in range(count)]


async def test_appends_that_come_alone_are_committed_here(commits: Commits) -> None:
    run = await owned_run(commits.store)
    commits.forget()
    for step in steps(run, 5):
        await commits.store.append(step)
    assert (commits.here, commits.there) == (5, 0)
    assert len(await commits.store.read_events(run.id)) == 6


async def test_a_run_whose_steps_take_no_time_leaves_some_to_others(commits: Commits) -> None:
    run = await owned_run(commits.store)
    passes, done = 0, False

    async def other() -> None:
        nonlocal passes
        while not done:
            await asyncio.sleep(0)
            passes += 1

    beside = asyncio.create_task(other())
    for step in steps(run, 20):
        await commits.store.append(step)
    done = True
    await beside
    assert passes >= 20


async def test_what_comes_together_is_one_group_of_the_thread(commits: Commits) -> None:
    runs = [await owned_run(commits.store, f"run-{n}") for n in range(3)]
    commits.forget()
    assert await asyncio.gather(*(commits.store.append(change(run, record())) for run in runs)) == [Appended(2, 0)] * 3
    assert (commits.here, commits.there) == (0, 1)


async def test_only_appends_are_committed_here(commits: Commits) -> None:
    await owned_run(commits.store)
    await commits.store.ping()
    assert commits.here == 0


async def test_large_appends_are_not(commits: Commits) -> None:
    run = await owned_run(commits.store)
    await commits.store.append(change(run, record(output=b"x" * 100_000)))
    await commits.store.append(change(run, record(), expected_seq=2, blobs=(("sha", b"x" * 100_000),)))
    assert commits.here == 0


async def test_nor_while_commits_last_long(tmp_path: Path) -> None:
    commits = Commits(tmp_path / "weft.db", below_s=0.25)
    await commits.store.open()
    database = commits.store._database
    run = await owned_run(commits.store)
    commits.forget()
    database.commit_s = 2.0
    first, second, *_ = steps(run, 2)
    await commits.store.append(first)
    assert commits.here == 0
    assert database.commit_s < 2.0
    database.commit_s = 0.0
    await commits.store.append(second)
    assert commits.here == 1
    await commits.store.close()


async def test_one_that_finds_the_database_locked_does_not_hold_the_loop(commits: Commits) -> None:
    run = await owned_run(commits.store)
    commits.forget()
    first, second, *_ = steps(run, 2)
    other = OtherProcess(commits.store.path)
    append = asyncio.create_task(commits.store.append(first))
    await asyncio.sleep(0.1)  # with the busy timeout of the writer's thread this would last a minute
    assert not append.done()
    other.let_go()
    assert await append == Appended(2, 0)
    assert (commits.here, commits.there) == (0, 1)
    await commits.store.append(second)
    assert commits.here == 1


async def test_nor_one_that_comes_while_the_thread_uses_the_database(commits: Commits) -> None:
    run = await owned_run(commits.store)
    commits.forget()
    with commits.store._writer._at_work:
        append = asyncio.create_task(commits.store.append(change(run, record())))
        await asyncio.sleep(0.05)
        assert not append.done()
    await append
    assert (commits.here, commits.there) == (0, 1)


async def test_it_hears_of_messages_and_of_the_fence(commits: Commits) -> None:
    run = await owned_run(commits.store)
    assert await commits.store.post_message(run.id, b"fact", T0)
    assert await commits.store.append(change(run, record())) == Appended(2, 1)
    with pytest.raises(Fenced):
        await commits.store.append(change(run, record(), expected_seq=5))
    with pytest.raises(Fenced):
        await commits.store.append(change(run, record(), epoch=7, expected_seq=2))
    assert len(await commits.store.read_events(run.id)) == 2


async def test_its_log_is_copied_when_nothing_is_committed_for_a_while(commits: Commits) -> None:
    run = await owned_run(commits.store)
    stats = commits.store.stats
    await until(lambda: stats.checkpoints)
    before = stats.checkpoints
    commits.forget()
    await commits.store.append(change(run, record()))
    assert commits.here == 1
    await until(lambda: stats.checkpoints > before)


async def test_its_result_comes_after_the_store_was_closed(commits: Commits) -> None:
    run = await owned_run(commits.store)
    append = asyncio.create_task(commits.store.append(change(run, record())))
    await asyncio.sleep(0)
    await commits.store.close()
    assert await append == Appended(2, 0)


async def test_a_file_that_was_replaced_is_not_written(tmp_path: Path) -> None:
    commits = Commits(tmp_path / "weft.db")
    await commits.store.open()
    run = await owned_run(commits.store)
    (tmp_path / "weft.db").rename(tmp_path / "elsewhere.db")
    await asyncio.sleep(0.02)  # the path is looked at every few milliseconds
    with pytest.raises(DatabaseReplaced):
        await commits.store.append(change(run, record()))
    (tmp_path / "elsewhere.db").rename(tmp_path / "weft.db")
    await asyncio.sleep(0.02)
    assert await commits.store.append(change(run, record())) == Appended(2, 0)
    assert (await commits.store.create_run(new_run("run-2")))[1]
    await commits.store.close()
