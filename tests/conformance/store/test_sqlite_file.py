"""What only the file has: how it is opened, what is still there after a restart, who may read it, what its views
show."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import stat
from pathlib import Path

import pytest

from executor.errors import DatabaseUnavailable, SchemaTooNew, StoreError
from executor.kernel.store import batches
from executor.kernel.store.migrate import APPLICATION_ID
from executor.kernel.store.run_rows import EventFilter
from executor.kernel.store.sqlite.connection import plain_connect
from executor.kernel.store.sqlite.dialect import TEXTS
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics import claims, limits, run_lists, waits
from tests.support.rows import LEASE_MS, T0, change, finish, new_run, owned_run, record, row, wait


async def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    first = SQLiteStore(tmp_path / "weft.db")
    await first.open()
    workflow = (await first.put_workflow("expense", b"{}", "h", T0)).row
    run = await owned_run(first)
    await first.append(change(run, record(), waits=(wait(run.id),), blobs=(("sha", b"big"),)))
    await first.post_message(run.id, b"fact", T0)
    signal = await first.post_signal(run.id, "paid", None, b"1", None, None, b"fact", T0)
    found = await row(first, run.id)
    await first.close()

    second = SQLiteStore(tmp_path / "weft.db")
    await second.open()
    assert await second.get_workflow("expense") == workflow
    assert await row(second, run.id) == found
    assert len(await second.read_events(run.id)) == 2
    assert await second.list_waits() == [wait(run.id)]
    assert await second.get_blob("sha") == b"big"
    assert len(await second.read_inbox(run.id)) == 2
    assert signal is not None and await second.unconsumed_signals(run.id) == [signal[0]]
    await second.close()


@pytest.mark.parametrize("left", ["nothing", "an empty file"])
async def test_a_log_without_its_database_is_not_thrown_away(tmp_path: Path, left: str) -> None:
    """As SQLite would do without a word."""
    store = SQLiteStore(tmp_path / "weft.db")
    await store.open()
    await owned_run(store)
    files = {end: (tmp_path / f"weft.db{end}").read_bytes() for end in ("", "-wal")}  # as a killed process leaves them
    await store.close()
    (tmp_path / "again").mkdir()
    db, wal = (tmp_path / "again" / f"weft.db{end}" for end in files)
    wal.write_bytes(files["-wal"])
    if left == "an empty file":
        db.touch()
    with pytest.raises(DatabaseUnavailable, match=r"has data, but its database .* is missing") as refused:
        await SQLiteStore(db).open()
    assert "weft restore" in refused.value.hint
    assert wal.read_bytes() == files["-wal"]
    db.write_bytes(files[""])
    store = SQLiteStore(db)
    await store.open()
    assert sum((await store.count_runs()).values()) == 1
    await store.close()


async def test_a_folder_that_cannot_be_looked_into_is_a_database_that_cannot_be_used(tmp_path: Path) -> None:
    """Not an error of ours: a writer that meets it in the middle of a commit must not report it as "not on disk"."""
    (tmp_path / "file").touch()
    with pytest.raises(DatabaseUnavailable, match="Not a directory"):
        await SQLiteStore(tmp_path / "file" / "weft.db").open()


async def test_the_pragmas_come_in_the_safe_order(tmp_path: Path) -> None:
    seen: list[str] = []
    connections: list[sqlite3.Connection] = []

    def connect(path: str) -> sqlite3.Connection:
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        db.set_trace_callback(seen.append)
        connections.append(db)
        return db

    store = SQLiteStore(tmp_path / "weft.db", busy_timeout_ms=1234, connect=connect)
    await store.open()
    assert seen[:5] == [
        "PRAGMA busy_timeout = 1234",
        "PRAGMA synchronous = EXTRA",
        "PRAGMA journal_mode = WAL",
        "PRAGMA synchronous = FULL",
        "PRAGMA wal_autocheckpoint = 0",
    ]
    db = connections[-1]  # the first one made the schema
    assert [db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")] == ["wal", 2]
    await store.close()


async def test_a_file_that_cannot_have_a_wal_is_refused(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "weft.db", connect=lambda path: plain_connect(":memory:"))
    with pytest.raises(DatabaseUnavailable, match="write-ahead log"):
        await store.open()


async def test_what_is_no_database_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    path.write_bytes(b"a letter to my aunt\n" * 100)
    with pytest.raises(DatabaseUnavailable):
        await SQLiteStore(path).open()
    assert path.read_bytes() == b"a letter to my aunt\n" * 100


async def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailable, match="cannot be created"):
        await SQLiteStore(tmp_path / "no" / "weft.db").open()


async def test_a_newer_file_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("PRAGMA user_version = 9999")
    with pytest.raises(SchemaTooNew):
        await SQLiteStore(path).open()
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)


async def test_the_file_is_private_and_keeps_its_wal(tmp_path: Path) -> None:
    path = tmp_path / "odd name?#%.db"
    before = os.umask(0o022)
    try:
        store = SQLiteStore(path)
        await store.open()
        for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
            assert stat.S_IMODE(name.stat().st_mode) == 0o600
        await owned_run(store)
        await store.close()
    finally:
        os.umask(before)
    assert Path(f"{path}-wal").stat().st_size > 0
    with contextlib.closing(sqlite3.connect(f"file:{tmp_path}/odd name%3f%23%25.db?immutable=1", uri=True)) as db:
        # `immutable` reads the file without its WAL: close has copied everything over
        assert db.execute("SELECT count(*) FROM runs").fetchone() == (1,)
        assert db.execute("SELECT count(*) FROM writers").fetchone() == (0,)


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "weft.db")
    with pytest.raises(StoreError, match="closed"):
        await store.get_run("run-1")
    await store.open()
    waiting = asyncio.gather(*(store.create_run(new_run(f"run-{i}")) for i in range(20)))
    await asyncio.sleep(0)
    await store.close()
    assert [created for _, created in await waiting] == [True] * 20  # what was queued before is done
    for call in (store.create_run(new_run("late")), store.get_run("run-1"), store.ping()):
        with pytest.raises(StoreError, match="closed"):
            await call
    await store.close()
    await store.open()  # and may be opened again
    assert len(await store.list_runs()) == 20
    await store.close()


async def test_readers_never_see_half_an_append_and_never_wait(tmp_path: Path) -> None:
    slow = asyncio.Event()
    store = SQLiteStore(tmp_path / "weft.db")
    await store.open()
    run = await owned_run(store)

    async def write() -> None:
        for seq in range(1, 400, 3):
            await store.append(change(run, record(), record(), record(), expected_seq=seq))
        slow.set()

    async def read() -> int:
        reads = 0
        while not slow.is_set():
            _, count = await store.find_events(run.id, EventFilter(limit=1))
            assert count % 3 == 1
            events = await store.read_events(run.id)
            assert len(events) % 3 == 1
            assert len(events) >= count
            reads += 1
        return reads

    _, *reads = await asyncio.gather(write(), read(), read(), read())
    assert all(reads)
    with contextlib.closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # the writer cannot write now; readers do not notice
        assert len(await asyncio.wait_for(store.read_events(run.id), 30)) == 400
    await store.close()


async def test_the_hot_statements_use_their_indexes(sqlite: SQLiteStore) -> None:
    with contextlib.closing(sqlite3.connect(sqlite.path)) as db:

        def plan(statement: str, *values: object) -> str:
            return " | ".join(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {TEXTS[statement]}", values))

        keys = plan(claims.READY_KEYS, "default", "", 1)
        assert keys.count("heads_ready") == keys.count(" h ") == 2 and "TEMP B-TREE" not in keys
        first = plan(claims.FIRST_READY, "[]", "default", 1, 1)
        assert "q USING INDEX heads_ready" in first and "h USING INTEGER PRIMARY KEY" in first
        assert "TEMP B-TREE" not in first, "it would sort all runs of a key"
        later = plan(claims.MAKE_READY, "[]", 1)
        assert "heads_later" in later and "TEMP B-TREE" not in later
        assert "heads_by_owner" in plan(claims.FIND_LAPSED + claims.LAPSED_IN_ORDER, 1, "[]", 1)
        due = plan(claims.NEXT_DUE, "[]")
        assert due.count("heads_later") == due.count("heads_ready") == 1 and due.count("heads_by_owner") == 2
        assert due.count(" h ") == 4 and "TEMP B-TREE" not in due
        assert due.count("slots_freed") == plan(limits.FREED_KEYS).count("slots_freed") == 1
        for statement in (limits.FREE_SLOTS, limits.HELD_BY_RUNS):
            assert "slots_of_run" in plan(statement, "1")
        unblock = plan(limits.UNBLOCK, "k", 1)
        assert "h USING INDEX heads_blocked" in unblock or "h USING COVERING INDEX heads_blocked" in unblock
        assert "TEMP B-TREE" not in unblock
        under_way = plan(run_lists.RUNS_UNDER_WAY + run_lists.RUNS_PAGE, "running", 1)
        assert "SEARCH d USING INTEGER PRIMARY KEY" in under_way, "it would read all runs that ever were"
        page = plan(batches.JOURNAL, "r", 0, 1)
        assert "SEARCH batches" in page and "SCAN" not in page
        assert "TEMP B-TREE" not in page
        assert "waits_by_status" in plan(waits.WAITS + waits.WAITS_OF_STATUS["pending"] + waits.WAITS_PAGE, 1)
        assert "TEMP B-TREE" not in plan(waits.WAITS + waits.WAITS_OF_STATUS["pending"] + waits.WAITS_PAGE, 1)
        of_run = waits.WAITS + waits.WAITS_OF_STATUS_IN_RUN + waits.WAITS_OF_RUN + waits.WAITS_PAGE
        for found in (
            plan(of_run, "pending", "r", 1),
            plan(waits.CANCEL_WAITS, 1, "r"),
            plan(waits.WAITS_BELOW, "r", 1),
        ):
            assert "waits_by_status" not in found, "it would look at the pending waits of all other runs"
        assert "runs_by_time" in plan(run_lists.RUNS + run_lists.RUNS_PAGE, 1)
        assert "runs_by_workflow" in plan(run_lists.RUNS + run_lists.RUNS_OF_WORKFLOW + run_lists.RUNS_PAGE, "w", 1)


async def test_views_show_the_business_side(sqlite: SQLiteStore) -> None:
    store = sqlite
    run = await owned_run(store)
    await store.append(
        change(
            run,
            record("node.started", "draft", T0 + 1, path="review#0"),
            record("retry.scheduled", "draft", T0 + 2, path="review#0"),
            record("node.succeeded", "draft", T0 + 5, path="review#0", output=b'{"text":"hi"}'),
            record("node.started", "send", T0 + 6),
            record("node.failed", "send", T0 + 7),
            record("node.skipped", "log", T0 + 7),
            record("wait.opened", "ask", T0 + 8),
            record("variables.patched", "ask", T0 + 8),
        )
    )
    with contextlib.closing(sqlite3.connect(store.path)) as db:
        assert db.execute("SELECT workflow, node, path, json_extract(output, '$.text') FROM outputs").fetchall() == [
            ("expense", "draft", "review#0", "hi")
        ]
        nodes = "SELECT node, path, status, started_at_ms, changed_at_ms FROM nodes ORDER BY node"
        assert db.execute(nodes).fetchall() == [
            ("ask", "", "waiting", None, T0 + 8),
            ("draft", "review#0", "succeeded", T0 + 1, T0 + 5),
            ("log", "", "skipped", None, T0 + 7),
            ("send", "", "failed", T0 + 6, T0 + 7),
        ]
        attempts = "SELECT node, attempt, started_at_ms, finished_at_ms, outcome FROM attempts ORDER BY node"
        assert db.execute(attempts).fetchall() == [
            ("draft", 1, T0 + 1, T0 + 5, "succeeded"),
            ("log", 1, None, T0 + 7, "skipped"),
            ("send", 1, T0 + 6, T0 + 7, "failed"),
        ]
        await finish(store, run, "failed")
        assert db.execute("SELECT status FROM nodes WHERE node = 'ask'").fetchone() == ("cancelled",)


async def test_two_stores_on_one_file_share_the_work(tmp_path: Path) -> None:
    # with `fault` they make the schema themselves (tests/support/fresh_database.py)
    one, two = (SQLiteStore(tmp_path / "weft.db", fault=lambda point: None) for _ in range(2))
    await asyncio.gather(one.open(), two.open())
    await asyncio.gather(*(one.create_run(new_run(f"run-{i:02}")) for i in range(30)))
    claimed = await asyncio.gather(*([one, two][i % 2].claim(f"w{i % 2}", T0, LEASE_MS, 3) for i in range(12)))
    ids = [run.id for runs in claimed for run in runs]
    assert len(ids) == len(set(ids)) == 30
    await one.close()
    await two.ping()
    assert len(await two.list_runs(limit=100)) == 30
    await two.close()
