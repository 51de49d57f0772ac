"""Parts of the journals: how they are begun, and dropped with the runs of their days."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

pytest.importorskip("psycopg")

import psycopg
from msgspec.structs import replace

from executor.kernel.store.batches import JOURNAL
from executor.kernel.store.migrate import packaged_migrations
from executor.kernel.store.postgres.connection import Session
from executor.kernel.store.postgres.days import NUMBERED, Days
from executor.kernel.store.postgres.dialect import TEXTS
from executor.kernel.store.postgres.migrate import migrate
from executor.kernel.store.postgres.parts import LOOSE, WIDTH, name_of_day
from executor.kernel.store.postgres.reading import REFERENCES, open_reading
from executor.kernel.store.postgres.store import PostgresStore
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.cache import CacheRow
from executor.kernel.store.topics.outbox import NotificationRow
from executor.kernel.store.topics.snapshots import SNAPSHOT_SEQ_MIN, CheckpointRow, SnapshotRow
from executor.kernel.store.topics.upkeep import OWN, Retired
from executor.kernel.store.topics.usage import Spent, UsageRow
from executor.service.upkeep.doctor import examine
from executor.service.upkeep.gc import DAY_MS, collect
from executor.service.upkeep.transfer import transfer
from tests.support.rows import LEASE_MS, T0, change, finish, new_run, owned_run, record, row, wait
from tests.support.until import until

LATER = T0 + DAY_MS
DAY = 20_000  # any: 2024-10-04
POINTS = ("attached", "marked", "moved", "page", "deleted", "detached")


class Killed(Exception):
    pass


@pytest_asyncio.fixture
async def store(postgres: str) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(postgres)
    await opened.open()
    yield opened
    await opened.close()


@asynccontextmanager
async def days(address: str, fault: Callable[[str], None] = lambda name: None) -> AsyncIterator[Days]:
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as db:
        await db.execute("SET lock_timeout = 500")
        yield Days(db, fault)


async def begin(address: str, day: int) -> None:
    async with days(address) as parts:
        assert await parts.begin(day)


async def retire(address: str, before_ms: int = LATER) -> Retired:
    async with days(address) as parts:
        return await parts.retire(before_ms)


async def names(address: str) -> list[str]:
    async with days(address) as parts:
        return [part.name for part in await parts.parts()]


async def asked(address: str, sql: str) -> list[tuple[Any, ...]]:
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as db:
        return await (await db.execute(sql.encode())).fetchall()


def unsound(address: str) -> list[str]:
    with closing(open_reading(address)) as reading:
        return list(reading.unsound(10))


async def ended(store: PostgresStore, id: str, now_ms: int = T0, **fields: Any) -> None:
    await store.create_run(new_run(id, **fields))
    (run,) = await store.claim("w", T0, LEASE_MS, run_id=id)
    await store.append(change(run, record(output=b"x" * 100)))
    await finish(store, run, now_ms=now_ms)


async def with_everything(store: PostgresStore, id: str) -> RunRow:
    """An open run that has rows in each table that runs have rows in."""
    run = await owned_run(store, id)
    notification = NotificationRow(id, "ask!1", 1, "email", b"{}", "pending", 0, T0, T0)
    cached = CacheRow(f"of {id}", "run", "expense", id, "b", "set", "", None, T0, LATER, b"1")
    await store.append(
        change(
            run,
            *(record() for _ in range(SNAPSHOT_SEQ_MIN)),
            waits=(wait(id),),
            blobs=((f"hash of {id}", b"a"),),
            notifications=(notification,),
            cached=(cached,),
        )
    )
    run = await row(store, id)
    await store.put_checkpoint(run.epoch, CheckpointRow(id, "b", 1, T0, b"1"))
    await store.post_signal(id, "s", None, b"1", "dedupe", None, b"{}", T0)
    return run


async def test_a_kept_run_stays_when_its_day_goes(postgres: str, store: PostgresStore) -> None:
    for id in ("gone", "kept"):
        await ended(store, id)
    assert await store.keep_run("kept", b"{}", T0)
    before = await store.read_events("kept")
    await begin(postgres, DAY)
    await ended(store, "new")
    assert (await retire(postgres)).runs == 1
    assert await store.get_run("gone") is None
    assert await store.read_events("kept") == before


async def test_a_day_goes_with_its_journals(postgres: str, store: PostgresStore) -> None:
    for n in range(3):
        await ended(store, f"old{n}")
    run = await with_everything(store, "gone")
    await finish(store, run)
    await begin(postgres, DAY)
    await ended(store, "new")
    before = await store.read_events("new")
    assert await names(postgres) == [name_of_day(DAY), "batches_first", "batches_moved"]

    assert await retire(postgres, T0) == Retired()  # none ended before
    assert await retire(postgres) == Retired(4, 3 * 3 + run.seq + 1, 1)
    assert await names(postgres) == [name_of_day(DAY), "batches_moved"]
    assert await asked(postgres, LOOSE) == []
    assert [run.id for run in await store.list_runs()] == ["new"]
    assert await store.read_events("new") == before and await store.read_events("gone") == []
    for table in OWN:
        assert await asked(postgres, f"SELECT * FROM {table}") == []
    assert await asked(postgres, "SELECT * FROM cache") == await asked(postgres, "SELECT * FROM snapshots") == []
    assert unsound(postgres) == []
    assert await retire(postgres) == Retired()  # the present part stays, whatever its runs are


async def test_runs_that_outlive_their_day_lose_nothing(postgres: str, store: PostgresStore) -> None:
    await ended(store, "old")
    waiting = await with_everything(store, "waiting")
    await store.append(change(waiting, record(), snapshot=SnapshotRow(waiting.seq + 1, 1, "c", "plan-1", 5, b"snap")))
    owned = await owned_run(store, "owned")
    await ended(store, "late", LATER)
    await ended(store, "source")
    await store.create_run(new_run("reader", sources=("source",), source_run_id="source"))
    await begin(postgres, DAY)
    ids = ("waiting", "owned", "late", "source", "reader")
    before = {id: (await store.get_run(id), await store.read_events(id)) for id in ids}
    snapshot = await store.get_snapshot("waiting")
    assert snapshot is not None

    assert await retire(postgres) == Retired(1, 3, 1)
    assert await store.get_run("old") is None
    assert {id: (await store.get_run(id), await store.read_events(id)) for id in ids} == before
    assert await store.get_snapshot("waiting") == snapshot
    assert await asked(postgres, "SELECT count(DISTINCT n) FROM batches_moved") == [(5,)]
    assert unsound(postgres) == []
    # they are as before for their owners, and go when they are over
    assert (await store.append(change(owned, record()))).seq == owned.seq + 1
    await finish(store, owned)
    assert len(await store.read_events("owned")) == owned.seq + 2
    assert await store.delete_runs(["owned", "late"]) == ["owned", "late"]
    assert await asked(postgres, "SELECT count(DISTINCT n) FROM batches_moved") == [(3,)]
    assert await retire(postgres) == Retired()


async def test_children_go_behind_their_parent_and_stay_with_it(postgres: str, store: PostgresStore) -> None:
    for root in ("over", "open"):
        run = await owned_run(store, root)
        child = new_run(f"{root}-child", parent_run_id=root, parent_key="c")
        await store.append(change(run, record(), children=(child,)))
        (below,) = await store.claim("w1", T0, LEASE_MS, run_id=child.id)
        await finish(store, below)
    await finish(store, await row(store, "over"))
    await begin(postgres, DAY)
    assert (await retire(postgres)).runs == 2
    assert sorted(run.id for run in await store.list_runs()) == ["open", "open-child"]
    assert await store.get_family("over") is None and await store.get_family("open") is not None
    assert len(await store.read_events("open-child")) == 2
    assert unsound(postgres) == []


async def test_a_day_with_many_open_runs_is_left(
    postgres: str, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("executor.kernel.store.postgres.days.MOVED_RUNS_MIN", 2)
    for n in range(3):
        await store.create_run(new_run(f"open{n}"))
        await ended(store, f"old{n}")
    await begin(postgres, DAY)
    assert await retire(postgres) == Retired()
    assert len(await store.list_runs()) == 6
    assert (await collect(store, LATER + 1, DAY_MS)).runs == 3  # one by one, as without parts
    for n in range(3):
        (run,) = await store.claim("w", T0, LEASE_MS, run_id=f"open{n}")
        await finish(store, run)
    assert await retire(postgres) == Retired(3, 6, 1)


@pytest.mark.parametrize("point", POINTS)
async def test_a_process_that_is_killed(point: str, postgres: str, store: PostgresStore) -> None:
    """Behind each step: nothing is lost, nothing is half there, and the next one completes it."""

    def kill(name: str) -> None:
        if name == f"days.{point}":
            raise Killed

    for n in range(3):
        await ended(store, f"old{n}")
    await store.create_run(new_run("open"))
    with suppress(Killed):
        async with days(postgres, kill) as parts:
            await parts.begin(DAY)
    if point == "attached":
        assert await asked(postgres, "SELECT last_value FROM run_details_n_seq") == [(4,)]
        await begin(postgres, DAY)
    else:
        with pytest.raises(Killed):
            async with days(postgres, kill) as parts:
                await parts.retire(LATER)
    assert unsound(postgres) == []
    with closing(open_reading(postgres)) as reading:
        assert [each for each in examine(reading, reading.clock_ms()).findings if each.invariant == "I1"] == []
        assert "batches_first" not in reading.tables()
    assert len(await store.read_events("open")) == 1
    await ended(store, "new")
    await retire(postgres)
    assert await names(postgres) == [name_of_day(DAY), "batches_moved"]
    assert await asked(postgres, LOOSE) == []
    assert sorted(run.id for run in await store.list_runs()) == ["new", "open"]
    assert unsound(postgres) == []


async def test_readers_and_writers_are_not_in_the_way_of_one_another(postgres: str, store: PostgresStore) -> None:
    """A long report has read the journals: the part is dropped when it is over, and meanwhile runs are executed."""
    await ended(store, "old")
    run = await owned_run(store, "open")
    await begin(postgres, DAY)
    with psycopg.connect(postgres) as report:
        report.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        ((count,),) = report.execute("SELECT count(*) FROM batches").fetchall()
        retiring = asyncio.create_task(retire(postgres))
        appended = 0
        while not retiring.done():
            run = await row(store, "open")
            await store.append(change(run, record()))
            await ended(store, f"new{appended}")
            appended += 1
        assert (await retiring).parts == 0 and appended > 1
        assert report.execute("SELECT count(*) FROM batches").fetchall() == [(count,)]
        assert await retire(postgres) == Retired()
        with closing(open_reading(postgres)) as reading:
            conditions = {each.name: each for each in examine(reading, reading.clock_ms()).conditions}
        assert "batches_first" in conditions["parts of journals"].what
    await retire(postgres)
    assert await names(postgres) == [name_of_day(DAY), "batches_moved"]
    assert len(await store.read_events("open")) == 1 + appended
    assert unsound(postgres) == []


async def test_a_new_part_waits_for_writers_that_do_not_know_of_it(postgres: str, store: PostgresStore) -> None:
    await ended(store, "old")
    with psycopg.connect(postgres) as writer:
        writer.execute("INSERT INTO batches VALUES (1, 99, 99, 0, 0, '[]', '')")
        beginning = asyncio.create_task(begin(postgres, DAY))

        async def attached() -> bool:
            return name_of_day(DAY) in await names(postgres)

        await until(attached)
        assert await asked(postgres, "SELECT last_value FROM run_details_n_seq") == [(1,)]
        writer.execute(  # of a new run
            "INSERT INTO batches SELECT nextval('run_details_n_seq'), 1, 1, 0, 0, '[]', ''"
        )
        writer.rollback()
        await beginning
    await ended(store, "new")
    assert await asked(postgres, "SELECT n FROM run_details WHERE id = 'new'") == [(DAY * WIDTH,)]


async def test_cuts_are_days_apart_by_the_clock_of_the_database(postgres: str, store: PostgresStore) -> None:
    for _ in range(2):  # nothing to cut
        assert await store.retire_days(None, 1) == Retired()
    assert await names(postgres) == ["batches_first", "batches_moved"]
    await ended(store, "first")
    await store.retire_days(None, 1)
    ((today,),) = await asked(postgres, "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYYMMDD')")
    assert f"batches_{today}" in await names(postgres)
    await ended(store, "second")
    await store.retire_days(None, 1)
    assert len(await names(postgres)) == 3
    assert len(await store.read_events("second")) == 3


async def test_the_background_leaves_runs_to_their_day(postgres: str, store: PostgresStore) -> None:
    await ended(store, "old")
    now_ms = T0 + 30 * DAY_MS + 1
    assert (await collect(store, now_ms, 30 * DAY_MS, by_days=True)).runs == 1  # with its part
    await ended(store, "today")
    assert (await collect(store, now_ms, 30 * DAY_MS, by_days=True)).runs == 0
    assert (await collect(store, now_ms, 30 * DAY_MS)).runs == 1  # `weft gc` does not wait


async def test_what_is_named_by_number_and_by_id(postgres: str, store: PostgresStore) -> None:
    """A table of a later schema that has numbers or ids of runs has to be among those."""
    with closing(open_reading(postgres)) as reading:
        tables = reading.tables()
    own_numbers = {"fires", "deliveries", "inbox", "notifications", "audit", "audit_head", "agent_memory"} | {
        f"knowledge_{name}" for name in ("collections", "documents", "chunks")
    }
    assert {name for name, columns in tables.items() if "n" in columns} - own_numbers == set(NUMBERED)
    referring = {table for table, _, parent, key in REFERENCES if (parent, key) == ("run_details", "id")}
    assert referring == set(OWN) - {"alerts", "alert_messages"}  # one that is about no run has an empty id


async def test_what_runs_used_outlives_their_day(postgres: str, store: PostgresStore) -> None:
    for id in ("a", "b"):
        run = await owned_run(store, id)
        used = UsageRow(id, 5, "expense", "dev:m", "prices", Spent(1, 0, 10, cost_nanos=7))
        await store.append(change(run, record(), usage=(used, replace(used, day=6))))
        await finish(store, await row(store, id))
    before = await store.usage_between(0, 9, "day")
    await begin(postgres, DAY)
    assert (await retire(postgres)).runs == 2
    assert await store.usage_between(0, 9, "day") == before and await store.usage_of("a") == []
    assert [each.spent.calls for each in before] == [2, 2]
    assert await asked(postgres, "SELECT count(*) FROM usage") == [(2,)]


async def test_only_the_part_of_a_run_is_read(postgres: str, store: PostgresStore) -> None:
    await ended(store, "run")
    for day in range(5):
        await begin(postgres, DAY + day)
    values = {"run": "run", "after": 0, "upto": 100}
    async with await psycopg.AsyncConnection.connect(postgres) as db:
        plan = await (await db.execute(f"EXPLAIN {TEXTS[JOURNAL]}".encode(), values)).fetchall()
    text = "\n".join(line for (line,) in plan)
    assert text.count("Subplans Removed: 6") == 2 and "Seq Scan" not in text.replace("run_details", ""), text


@pytest.mark.parametrize("migrated", [False])
async def test_a_database_of_before_keeps_its_journals(postgres: str) -> None:
    session = Session(postgres, lambda name: None)
    migrate(session, packaged_migrations("postgres")[:2])
    session.connection.execute(
        """INSERT INTO run_details (id, workflow, plan_hash, request_hash, created_at_ms, input)
           SELECT 'r' || i, 'w', 'p', 'q', 0, '' FROM generate_series(1, 50) AS i"""
    )
    session.connection.execute(
        """INSERT INTO batches SELECT n, s, s, 0, 0, '[]', repeat('x', 3000)::bytea
             FROM run_details, generate_series(1, 9) AS s"""
    )
    digest = "SELECT count(*), md5(string_agg(b::text, ',' ORDER BY n, seq)) FROM batches AS b"
    before = session.connection.execute(digest).fetchall()
    session.drop()
    store = PostgresStore(postgres)
    await store.open()
    try:
        assert await asked(postgres, digest) == before
        await ended(store, "new")
        assert len(await store.read_events("new")) == 3
        await begin(postgres, DAY)
        for table in ("batches", "batches_first", name_of_day(DAY)):  # not compressed
            storage = f"""SELECT attstorage::text FROM pg_attribute
                           WHERE attrelid = '{table}'::regclass AND attname = 'payload'"""
            assert await asked(postgres, storage) == [("e",)]
    finally:
        await store.close()


async def test_a_file_with_numbers_of_any_day_moves_to_postgresql(postgres: str, tmp_path: Path) -> None:
    file = SQLiteStore(tmp_path / "weft.db")
    await file.open()
    await ended(file, "day")  # type: ignore[arg-type]  # any store
    await ended(file, "moved")  # type: ignore[arg-type]  # any store
    await file.close()
    with closing(sqlite3.connect(tmp_path / "weft.db")) as db, db:
        for id, number in (("day", 30_000 * WIDTH + 5), ("moved", -7)):
            ((n,),) = db.execute("SELECT n FROM run_details WHERE id = ?", (id,)).fetchall()
            for table in ("batches", "run_details"):
                db.execute(f"UPDATE {table} SET n = ? WHERE n = ?", (number, n))
    transfer(tmp_path / "weft.db", postgres)
    store = PostgresStore(postgres)
    await store.open()
    try:
        await ended(store, "new")
        assert [len(await store.read_events(id)) for id in ("day", "moved", "new")] == [3, 3, 3]
        assert await asked(postgres, "SELECT n FROM run_details WHERE id = 'new'") == [(30_000 * WIDTH + 6,)]
    finally:
        await store.close()
