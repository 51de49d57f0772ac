"""What the doctor says of a PostgreSQL server, each provoked on a real one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

pytest.importorskip("psycopg")

import psycopg

from executor.kernel.store.postgres.reading import PostgresReading, open_reading
from executor.kernel.store.postgres.store import PostgresStore
from executor.service.upkeep import conditions
from executor.service.upkeep.conditions import conditions_of_server
from executor.service.upkeep.doctor import examine
from executor.service.upkeep.findings import Condition
from tests.support.until import until


@pytest.fixture
def address(postgres: str) -> str:
    async def make() -> None:
        store = PostgresStore(postgres)
        await store.open()
        await store.close()

    asyncio.run(make())
    return postgres


@pytest.fixture
def db(address: str) -> Iterator[PostgresReading]:
    with closing(open_reading(address)) as reading:
        yield reading


def found(db: PostgresReading, name: str, *clock: Callable[[], int]) -> Condition:
    (condition,) = (each for each in conditions_of_server(db, *clock) if each.name == name)
    assert (condition.level == "ok") == (condition.fix == "")
    return condition


def level(db: PostgresReading, name: str) -> str:
    return found(db, name).level


def test_a_server_that_is_as_it_should_be(db: PostgresReading) -> None:
    names = ("PostgreSQL", "clock", "connections", "long transactions", "idle in transaction")
    assert {name: level(db, name) for name in names} == dict.fromkeys(names, "ok")
    off = {name: found(db, name).what for name in ("durability", "vacuum")}  # as tests have it
    assert "fsync" in off["durability"] and "autovacuum is off" in off["vacuum"]
    assert {condition.name for condition in examine(db, db.clock_ms()).conditions} >= {*names, *off, "leases", "schema"}


def test_an_old_version(db: PostgresReading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "VERSION_MIN", 99)
    assert level(db, "PostgreSQL") == "error"


def test_few_connections_are_left(address: str, db: PostgresReading, monkeypatch: pytest.MonkeyPatch) -> None:
    before = int(found(db, "connections").what.split()[0])
    monkeypatch.setattr(conditions, "CONNECTIONS_SHARE_MAX", (before + 5) / 197)
    others = [psycopg.connect(address) for _ in range(8)]
    try:
        assert level(db, "connections") == "warning"
    finally:
        for other in others:
            other.close()


@pytest.mark.parametrize("ahead_ms", [5_000, -5_000])
def test_clocks_that_differ(db: PostgresReading, ahead_ms: int) -> None:
    assert found(db, "clock", conditions.wall_ms).level == "ok"
    condition = found(db, "clock", lambda: conditions.wall_ms() + ahead_ms)
    assert condition.level == "warning" and ("ahead of" if ahead_ms > 0 else "behind") in condition.what


def test_a_transaction_that_keeps_old_rows(address: str, db: PostgresReading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "LONG_S", 0)
    monkeypatch.setattr(conditions, "IDLE_S", 0)
    with psycopg.connect(address, application_name="a report") as other:
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT 1 FROM heads")
        for name in ("long transactions", "idle in transaction"):
            condition = found(db, name)
            assert (
                condition.level == "warning" and f"process {other.info.backend_pid} (a report, weft" in condition.what
            )
            assert "pg_terminate_backend" in condition.fix
    assert level(db, "long transactions") == level(db, "idle in transaction") == "ok"


def test_a_sweep_of_old_runs_keeps_nothing(address: str, db: PostgresReading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "LONG_S", 0)
    monkeypatch.setattr(conditions, "IDLE_S", 0)

    async def is_free() -> bool:
        async with PostgresStore(address).deleting() as later:
            return later

    async def go() -> None:
        store = PostgresStore(address)
        async with store.deleting() as alone:
            assert alone
            names = ("long transactions", "idle in transaction")
            assert [await asyncio.to_thread(level, db, name) for name in names] == ["ok", "ok"]
            async with PostgresStore(address).deleting() as other:
                assert not other
        await until(is_free)  # a session that was closed gives its lock back a moment later

    asyncio.run(go())


def test_an_old_transaction_of_two_phases_and_a_slot(db: PostgresReading, monkeypatch: pytest.MonkeyPatch) -> None:
    real = db.rows

    def rows(sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        """A server that allows neither has none; the statements are the real ones."""
        return [*real(sql, values), ("forgotten",)] if "prepared_xacts" in sql or "slots" in sql else real(sql, values)

    monkeypatch.setattr(db, "rows", rows)
    what = found(db, "long transactions").what
    assert "prepared transaction forgotten" in what and "replication slot forgotten" in what


async def test_tables_with_many_dead_rows(address: str, db: PostgresReading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "DEAD_ROWS_MIN", 500)
    with psycopg.connect(address, autocommit=True) as other:
        other.execute("INSERT INTO sessions SELECT n::text, '', 0, 0 FROM generate_series(1, 300) AS n")
        for _ in range(3):
            other.execute("UPDATE sessions SET seen_at_ms = seen_at_ms + 1")
    await until(lambda: "sessions (900 dead rows, 300 live; never)" in found(db, "vacuum").what)
    assert "VACUUM (ANALYZE) sessions" in found(db, "vacuum").fix
    with psycopg.connect(address, autocommit=True) as other:
        other.execute("VACUUM sessions")
    await until(lambda: "sessions" not in found(db, "vacuum").what)


def test_runs_that_no_worker_executes(address: str, db: PostgresReading) -> None:
    with psycopg.connect(address) as other:
        for n, owner in enumerate((None, "gone")):
            other.execute(
                """INSERT INTO heads (n, id, status, seq, epoch, stalls, owner, due_ms)
                   VALUES (%s, %s, 'running', 1, 1, 0, %s, 5)""",
                (n, f"r{n}", owner),
            )
        other.execute("INSERT INTO workers VALUES ('gone', 5, 0)")
    conditions = {condition.name: condition for condition in examine(db, db.clock_ms()).conditions}
    for name in ("leases", "due runs"):
        assert conditions[name].level == "warning" and conditions[name].what.startswith("1 runs"), conditions[name]
        assert "weft worker" in conditions[name].fix


def test_runs_that_are_given_back_again_and_again(address: str, db: PostgresReading) -> None:
    def blocks() -> Condition:
        return {condition.name: condition for condition in examine(db, db.clock_ms()).conditions}["blocks"]

    add = "INSERT INTO heads (n, id, status, seq, epoch, stalls, due_ms) VALUES (%s, %s, %s, %s, %s, 0, 9e15)"
    with psycopg.connect(address, autocommit=True) as other:
        other.execute(add, (1, "waits", "waiting", 30, 20))
        other.execute(add, (2, "no memory for it", "running", 1, 99))
        assert blocks().level == "ok"
        other.execute(add, (3, "lacking", "waiting", 1, 12))
        assert blocks().what.startswith("1 runs need") and blocks().what.endswith("run lacking")


def test_a_machine_whose_processes_do_not_listen(
    address: str, db: PostgresReading, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        psycopg.connect(address, application_name="weft"),
        psycopg.connect(address, application_name="weft-bus"),
    ):
        asyncio.run(until(lambda: level(db, "bus") == "ok"))
        for rows, said in (
            ("('10.0.0.1', 3, 1), ('10.0.0.2', 3, 1)", None),
            ("('10.0.0.1', 3, 1), ('10.0.0.2', 3, 0)", "none at 10.0.0.2"),
            ("('10.0.0.1', 0, 1), ('10.0.0.9', 3, 0)", None),  # a pool
        ):
            monkeypatch.setattr(conditions, "_HOSTS", f"VALUES {rows}")
            condition = found(db, "bus")
            assert (condition.level == "ok") == (said is None), rows
            assert said is None or said in condition.what


def test_processes_that_are_not_woken(address: str, db: PostgresReading, monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(until(lambda: level(db, "bus") == "ok"))  # the sessions that made the schema take a moment to leave
    with psycopg.connect(address, application_name="weft"):
        assert "WEFT_BUS_DB" in found(db, "bus").fix
        with psycopg.connect(address, application_name="weft-bus"):
            assert found(db, "bus").what == "1 processes listen"
    monkeypatch.setattr(conditions, "BUS_QUEUE_MAX_PERCENT", 0)
    assert "queue of notifications" in found(db, "bus").what
