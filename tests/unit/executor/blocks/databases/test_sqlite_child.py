"""The process in which queries on SQLite files run: its bounds, how it ends, and what is left when it crashes."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from executor.blocks.databases.rows import Answer, Query, Reply
from executor.blocks.databases.sqlite import SqliteFiles
from executor.blocks.databases.sqlite_child import MEMORY_BYTES_MAX
from executor.errors import BlockError, Lost
from tests.support.sql_children import is_alive, is_computing, sql_children
from tests.support.until import until

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
FILL = (
    "INSERT INTO orders (name) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT hex(randomblob(500)) FROM n"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as db, db:
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT)")
        db.executemany("INSERT INTO orders VALUES (?, ?)", [(n, f"o{n}") for n in range(1, 6)])
    return tmp_path / "shop.db"


@pytest.fixture
async def files() -> AsyncIterator[SqliteFiles]:
    made = SqliteFiles()
    yield made
    await made.close()
    assert sql_children(os.getpid()) == []


async def ask(files: SqliteFiles, file: Path, text: str, **more: Any) -> Answer:
    return await files.ask(file, Query(text, **more), run="a run", waiting=nullcontext)


async def refusal(files: SqliteFiles, file: Path, text: str, **more: Any) -> BlockError:
    with pytest.raises(BlockError) as caught:
        await ask(files, file, text, **more)
    return caught.value


async def the_child() -> int:
    (pid,) = await until(lambda: sql_children(os.getpid()))
    return pid


async def in_the_middle(journal: Path) -> None:
    """Pages of the transaction are in the file already: the cache has no room for them."""
    await until(lambda: journal.exists() and journal.stat().st_size > 0)
    before = journal.with_name("shop.db").stat().st_size
    await until(lambda: journal.with_name("shop.db").stat().st_size > before + 100_000)


async def test_queries_run_in_a_process_that_stays(files: SqliteFiles, file: Path) -> None:
    answer = await ask(files, file, "SELECT sqlite_version() AS version")
    assert tuple(map(int, answer.rows[0]["version"].split("."))) >= (3, 50, 2)
    pid = await the_child()
    for n in range(3):
        assert (await ask(files, file, "SELECT :n AS n", parameters={"n": n})).rows == [{"n": n}]
    assert await the_child() == pid


async def test_numbers_cross_as_they_are(files: SqliteFiles, file: Path) -> None:
    given = {"a": 2.0, "b": 2, "c": 2**63 - 1, "d": -(2**63), "e": 1e16, "f": -0.0}
    answer = await ask(files, file, "SELECT typeof(:a), typeof(:b), :a, :b, :c, :d, :e, :f", parameters=given)
    assert repr(list(answer.rows[0].values())) == repr(
        ["real", "integer", 2.0, 2, str(2**63 - 1), str(-(2**63)), 1e16, -0.0]
    )


async def test_a_crash_is_one_failed_attempt_and_the_next_query_has_a_new_process(
    files: SqliteFiles, file: Path
) -> None:
    for query, read_only in ((ENDLESS, True), (FILL, False)):
        running = asyncio.create_task(ask(files, file, query, read_only=read_only))
        if read_only:
            pid = await the_child()
            await until(partial(is_computing, pid))
        else:
            await in_the_middle(Path(f"{file}-journal"))
            pid = await the_child()
        os.kill(pid, signal.SIGSEGV)
        with pytest.raises(BlockError, match=r"ended: SIGSEGV; it has changed nothing") as crashed:
            await running
        assert (crashed.value.code, crashed.value.retryable) == ("sql_crashed", True)
        # What the process had written into the file already is undone, also by a query that only reads.
        assert (await ask(files, file, "SELECT count(*) AS n FROM orders")).rows == [{"n": 5}]
        assert await the_child() != pid


async def test_a_process_that_ends_without_work_is_no_attempt(files: SqliteFiles, file: Path) -> None:
    await ask(files, file, "SELECT 1")
    pid = await the_child()
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not Path(f"/proc/{pid}").exists())
    for _ in range(5):
        await asyncio.sleep(0)  # the event loop reads that as well
    assert (await ask(files, file, "SELECT 1 AS n")).rows == [{"n": 1}]


async def test_a_cancelled_query_undoes_what_it_has_changed_and_its_process_ends(
    files: SqliteFiles, file: Path
) -> None:
    journal = Path(f"{file}-journal")
    running = asyncio.create_task(ask(files, file, FILL, read_only=False, timeout_s=300))
    await in_the_middle(journal)
    pid = await the_child()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: not is_alive(pid))
    assert not journal.exists()
    assert (await ask(files, file, "SELECT count(*) AS n FROM orders")).rows == [{"n": 5}]


async def test_a_stopped_process_is_killed(files: SqliteFiles, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not keep its time itself."""
    monkeypatch.setattr("executor.blocks.databases.sqlite.GRACE_S", 0.2)
    await ask(files, file, "SELECT 1")
    pid = await the_child()
    os.kill(pid, signal.SIGSTOP)
    assert (await refusal(files, file, "SELECT 1", timeout_s=0.1)).code == "sql_timeout"
    await until(lambda: not is_alive(pid))
    assert (await ask(files, file, "SELECT 1 AS n")).rows == [{"n": 1}]


async def test_queries_run_side_by_side(files: SqliteFiles, file: Path) -> None:
    endless = [asyncio.create_task(ask(files, file, ENDLESS, timeout_s=300)) for _ in range(2)]
    await until(lambda: len(sql_children(os.getpid())) == 2)
    other = file.with_name("other.db")
    await ask(files, other, "CREATE TABLE t (a)", read_only=False)
    assert (await ask(files, other, "INSERT INTO t VALUES (1)", read_only=False)).affected == 1
    assert len(sql_children(os.getpid())) == 3 and not any(task.done() for task in endless)
    for task in endless:
        task.cancel()
    await asyncio.wait(endless)


async def test_a_process_that_starts_for_a_call_that_was_cancelled_ends_with_the_others(
    files: SqliteFiles, file: Path
) -> None:
    call = asyncio.create_task(ask(files, file, "SELECT 1"))
    await until(lambda: sql_children(os.getpid()))  # Python has begun to start; the child is not ready
    call.cancel()
    await asyncio.wait([call])
    await files.close()
    assert sql_children(os.getpid()) == []


async def test_runs_wait_for_one_of_few_processes(file: Path) -> None:
    files = SqliteFiles(most=2, idle_s=0.01)
    answers = await asyncio.gather(*(ask(files, file, "SELECT :n AS n", parameters={"n": n}) for n in range(20)))
    assert [answer.rows[0]["n"] for answer in answers] == list(range(20))
    await until(lambda: sql_children(os.getpid()) == [])  # those without work end
    await files.close()


async def test_memory_has_a_bound(files: SqliteFiles, file: Path) -> None:
    row = ", ".join(f"hex(zeroblob(2000000 - {n}))" for n in range(100))  # 400 MB in one row
    error = await refusal(files, file, f"SELECT {row}")
    assert (error.code, error.retryable) == ("sql_too_large", False)
    assert error.message == "the query needs more than 128 MiB of memory"
    limits = Path(f"/proc/{await the_child()}/limits").read_text()
    most = {line[:26].strip(): line[26:].split() for line in limits.splitlines()}
    assert most["Max address space"][:2] == [str(MEMORY_BYTES_MAX)] * 2
    assert most["Max core file size"][:2] == ["0", "0"]
    assert int(most["Max cpu time"][0]) < 60 and most["Max file size"][0] == str(8 * 1024**3)


async def test_the_process_has_no_secrets_of_the_environment(
    files: SqliteFiles, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_SECRET_SHOP", "a-canary-of-the-environment")
    await ask(files, file, "SELECT 1")
    given = Path(f"/proc/{await the_child()}/environ").read_bytes()
    assert b"WEFT_" not in given and b"canary" not in given


async def test_text_that_is_not_utf8_can_be_read(files: SqliteFiles, file: Path) -> None:
    answer = await ask(files, file, "SELECT CAST(x'63616ff9' AS TEXT) AS name, CAST(x'ff' AS TEXT) AS x")
    assert answer.rows == [{"name": "cao\ufffd", "x": "\ufffd"}]


@pytest.mark.parametrize(
    "query", ["SELECT 1; SELECT 2", "SELECT 1; -- one\n DELETE FROM orders", ";;SELECT 1; SELECT 2"]
)
async def test_a_query_is_one_statement(files: SqliteFiles, file: Path, query: str) -> None:
    error = await refusal(files, file, query)
    assert (error.code, error.message) == ("sql_refused", "a query must not have more than one statement")


@pytest.mark.parametrize(
    "query", ["SELECT 1 AS n;", "/* a; b */ SELECT 1 AS n; -- the end; of it", "SELECT 1 AS n ; ;\n"]
)
async def test_a_statement_may_end_and_be_explained(files: SqliteFiles, file: Path, query: str) -> None:
    assert (await ask(files, file, query)).rows == [{"n": 1}]


async def test_places_are_characters_not_bytes(files: SqliteFiles, file: Path) -> None:
    error = await refusal(files, file, "SELECT 'ä€😀',\n 'ü' || nam, nam FROM orders")
    assert error.message == "the database refused the query at line 2, column 9: no such column: nam"


async def test_tables_that_other_tables_are_made_of_cannot_be_damaged(files: SqliteFiles, file: Path) -> None:
    """That is SQLITE_DBCONFIG_DEFENSIVE."""
    await ask(files, file, "CREATE VIRTUAL TABLE notes USING fts5(text)", read_only=False)
    error = await refusal(files, file, "UPDATE notes_data SET block = x'00'", read_only=False)
    assert "notes_data may not be modified" in error.message


async def test_a_process_that_does_not_start_is_an_error(
    files: SqliteFiles, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    error = await refusal(files, file, "SELECT 1")
    assert (error.code, error.retryable, error.deferred) == ("sql_crashed", True, None)
    assert error.message == "the process for queries on SQLite files did not start: exit code 1"
    monkeypatch.setattr(sys, "executable", "/there/is/none")
    assert (await refusal(files, file, "SELECT 1")).deferred == "not_begun"


def test_an_old_sqlite_is_refused() -> None:
    code = "import executor.blocks.databases.sqlite_child as c; c.OLDEST = 9_000_000; c.main()"
    done = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    failure = msgspec.json.decode(done.stdout, type=Reply).failure
    assert failure is not None and failure.code == "not_installed" and not failure.retryable
    assert "need SQLite 3.50.2 or newer, and apsw has 3." in failure.message
    assert "pip install --upgrade apsw" in failure.hint


async def test_it_is_unknown_what_a_crash_during_the_commit_has_left(files: SqliteFiles, file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM orders").fetchall()  # a commit waits for it
        running = asyncio.create_task(ask(files, file, "DELETE FROM orders", read_only=False))

        pid = await the_child()
        await until(lambda: has_pending_lock(pid))
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(Lost, match="lost during the commit: SIGKILL"):
            await running


def has_pending_lock(pid: int) -> bool:
    """With which SQLite waits for readers before it commits."""
    locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return any(lock[-4:-3] == [str(pid)] and lock[-2] == str(0x40000000) for lock in locks)
