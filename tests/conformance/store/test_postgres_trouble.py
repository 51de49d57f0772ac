"""PostgreSQL in trouble: answers to a COMMIT that are lost, sessions that are ended, a server that crashes, schemas of
other programs and of newer ones."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

pytest.importorskip("psycopg")

import psycopg

from executor.errors import (
    BadRequest,
    Conflict,
    DatabaseUnavailable,
    DatabaseWriteFailed,
    Fenced,
    ForeignDatabase,
    SchemaTooNew,
)
from executor.kernel.store.patience import patience
from executor.kernel.store.postgres.batch import Batched
from executor.kernel.store.postgres.connection import SETTINGS, with_settings
from executor.kernel.store.postgres.limited import LimitedConnection
from executor.kernel.store.postgres.store import PostgresStore
from executor.kernel.store.run_rows import RunRow
from tests.support.postgres import as_url, cluster, database
from tests.support.rows import LEASE_MS, T0, change, new_run, owned_run, record

RUNS = 8


@pytest_asyncio.fixture
async def opened(postgres: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgres)
    await store.open()
    yield store
    await store.close()


class Losing:
    """The answer to the next COMMIT is lost: behind it, or before it was made. `later`: not to so many before it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.next: str | None = None
        self.later = 0
        self.lost = 0
        execute, commit = psycopg.Cursor.execute, Batched.commit
        losing = self

        def lose(connection: psycopg.Connection[Any], commits: Callable[[], Any]) -> Any:
            if losing.next is None:
                return commits()
            if losing.later:
                losing.later -= 1
                return commits()
            how, losing.next = losing.next, None
            losing.lost += 1
            if how == "committed":
                commits()
                if (pipeline := connection._pipeline) is not None:
                    pipeline.sync()
            connection.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")

        def executing(cursor: psycopg.Cursor[Any], query: Any, *args: Any, **kwargs: Any) -> Any:
            if query != "COMMIT":
                return execute(cursor, query, *args, **kwargs)
            return lose(cursor.connection, lambda: execute(cursor, query))

        monkeypatch.setattr(psycopg.Cursor, "execute", executing)
        monkeypatch.setattr(Batched, "commit", lambda batched: lose(batched._connection, lambda: commit(batched)))


@pytest.mark.parametrize("how", ["committed", "not committed"])
async def test_a_lost_answer_to_a_commit(how: str, opened: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    losing = Losing(monkeypatch)
    run = await owned_run(opened)
    losing.next = how
    appended = await opened.append(change(run, record()))
    assert (appended.seq, losing.lost) == (run.seq + 1, 1)
    losing.next = how
    assert await opened.post_message(run.id, b"m", T0)
    losing.next = how
    _, created = await opened.create_run(new_run("another"))
    assert created and losing.lost == 3
    assert [row.seq for row in await opened.read_events(run.id)] == [1, 2]
    assert [row.n for row in await opened.read_inbox(run.id)] == [1]


async def test_a_group_that_the_server_reads_after_all_is_not_committed_again(
    opened: PostgresStore, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its session is lost, it is written again by another, and only then the server comes to read it."""
    run = await owned_run(opened)
    losing, asked, commit = Losing(monkeypatch), [], Batched.commit
    losing.next = "not committed"

    def keeping(batched: Batched) -> None:
        asked.append(list(batched._asked))
        commit(batched)

    monkeypatch.setattr(Batched, "commit", keeping)
    assert await opened.post_message(run.id, b"m", T0)
    assert (losing.lost, len(asked)) == (1, 2)
    with LimitedConnection.connect(postgres, autocommit=True) as late:
        batched = Batched(late)
        batched._asked = asked[0]
        with pytest.raises(psycopg.errors.DivisionByZero):
            commit(batched)
    assert [row.n for row in await opened.read_inbox(run.id)] == [1]


async def test_who_is_fenced_in_a_group_harms_no_other(opened: PostgresStore) -> None:
    runs = [await owned_run(opened, f"run-{n}") for n in range(RUNS)]
    behind = [run.seq - 1 if n % 2 else run.seq for n, run in enumerate(runs)]
    said = await asyncio.gather(
        *(
            opened.append(change(run, record(), record(), expected_seq=seq))
            for run, seq in zip(runs, behind, strict=True)
        ),
        return_exceptions=True,
    )
    assert [isinstance(each, Fenced) for each in said] == [bool(n % 2) for n in range(RUNS)]
    assert [len(await opened.read_events(run.id)) for run in runs] == [3, 1] * (RUNS // 2)


async def test_a_row_that_is_rejected_fails_alone(opened: PostgresStore) -> None:
    said = await asyncio.gather(
        *(opened.create_run(new_run(id)) for id in ("a", "b", "a", "c")), return_exceptions=True
    )
    assert [type(each) for each in said] == [tuple, tuple, Conflict, tuple]
    assert {run.id for run in await opened.list_runs()} == {"a", "b", "c"}


async def test_a_writer_whose_row_is_gone_makes_it_again(opened: PostgresStore, postgres: str) -> None:
    """Without it a lost answer to a COMMIT would be taken for one that is not on disk."""
    with psycopg.connect(postgres, autocommit=True) as other:
        other.execute("DELETE FROM writers")
        await opened.create_run(new_run("a"))
        assert other.execute("SELECT last_group > 0 FROM writers").fetchall() == [(True,)]
    assert [run.id for run in await opened.list_runs()] == ["a"]


async def test_a_lease_whose_row_is_gone_is_made_again(opened: PostgresStore, postgres: str) -> None:
    """Without it the run would never be free when its owner is killed."""
    run = await owned_run(opened)
    with psycopg.connect(postgres, autocommit=True) as other:
        other.execute("DELETE FROM workers")
    assert await opened.renew("w1", [run.id], T0 + 1, LEASE_MS) == {run.id}
    found = await opened.get_run(run.id)
    assert found is not None and found.lease_until_ms == T0 + 1 + LEASE_MS
    (claimed,) = await opened.claim("w2", T0 + 1 + LEASE_MS, LEASE_MS)
    assert (claimed.id, claimed.epoch) == (run.id, run.epoch + 1)


async def test_a_text_that_cannot_be_stored_is_refused(opened: PostgresStore) -> None:
    with pytest.raises(BadRequest, match="cannot store this text"):
        await opened.create_run(new_run("a", idempotency_key="nul\0"))
    assert await opened.list_runs() == []
    with pytest.raises(BadRequest):
        await opened.list_runs("nul\0")


async def test_sessions_that_are_ended_are_opened_again(opened: PostgresStore, postgres: str) -> None:
    await opened.ping()
    with psycopg.connect(postgres, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    await opened.ping()
    assert await opened.list_runs() == []


async def test_a_message_tells_the_next_append_of_a_group(opened: PostgresStore) -> None:
    runs = [await owned_run(opened, f"run-{n}") for n in range(RUNS)]
    await opened.post_message("run-3", b"m", T0)
    appended = await asyncio.gather(*(opened.append(change(run, record())) for run in runs))
    assert [each.inbox_n for each in appended] == [int(n == 3) for n in range(RUNS)]


async def test_a_server_that_crashes_loses_nothing_that_was_acknowledged() -> None:
    server = cluster()
    try:
        server.start()
        with database(server.address, "weft") as address:
            store = PostgresStore(address)
            await store.open()
            runs = [await owned_run(store, f"run-{n}") for n in range(RUNS)]
            acknowledged: Counter[str] = Counter()
            over = asyncio.Event()
            at_work = [asyncio.create_task(_append(store, run, acknowledged, over), name=run.id) for run in runs]
            for _ in range(3):
                before = acknowledged.total()
                while acknowledged.total() < before + 20 * RUNS:
                    await asyncio.sleep(0.01)
                await asyncio.to_thread(server.crash)
                await asyncio.to_thread(server.start)
            over.set()
            await asyncio.gather(*at_work)
            for run in runs:
                events = await store.read_events(run.id)
                assert [row.seq for row in events] == list(range(1, acknowledged[run.id] + run.seq + 1))
            await store.close()
    finally:
        server.remove()


async def _append(store: PostgresStore, run: RunRow, acknowledged: Counter[str], over: asyncio.Event) -> None:
    seq = run.seq
    while not over.is_set():
        seq = (await store.append(change(run, record(), expected_seq=seq))).seq
        acknowledged[run.id] += 1


async def test_who_waits_no_longer_is_told(postgres: str) -> None:
    """A row that another session has: the request is given up, and is not on disk."""
    store = PostgresStore(postgres)
    await store.open()
    await store.create_run(new_run("run-1"))
    with psycopg.connect(postgres) as other:
        other.execute("SELECT 1 FROM heads FOR UPDATE")
        with patience(0.1), pytest.raises(DatabaseWriteFailed, match="in time"):
            await store.post_message("run-1", b"m", T0)
        other.rollback()
    assert await store.read_inbox("run-1") == []
    await store.close()


@pytest.mark.parametrize("migrated", [False])
async def test_a_database_of_another_program_is_refused(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as other:
        other.execute("CREATE TABLE theirs (a int)")
    with pytest.raises(ForeignDatabase, match="another program"):
        await PostgresStore(postgres).open()
    with psycopg.connect(postgres, autocommit=True) as other:
        assert other.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall() == [("theirs",)]


async def test_a_newer_schema_is_refused(postgres: str) -> None:
    store = PostgresStore(postgres)
    await store.open()
    await store.close()
    with psycopg.connect(postgres, autocommit=True) as other:
        other.execute("UPDATE weft_schema SET version = 99")
    with pytest.raises(SchemaTooNew, match="schema 99"):
        await store.open()


@pytest.mark.parametrize("migrated", [False])
async def test_stores_that_open_at_once_make_one_schema(postgres: str) -> None:
    stores = [PostgresStore(postgres, readers=1) for _ in range(4)]
    await asyncio.gather(*(store.open() for store in stores))
    await asyncio.gather(*(store.ping() for store in stores))
    await asyncio.gather(*(store.close() for store in stores))
    with psycopg.connect(postgres) as other:
        assert other.execute("SELECT count(*) FROM writers").fetchone() == (0,)


async def test_no_server_is_told_as_such() -> None:
    with pytest.raises(DatabaseUnavailable, match="cannot be used"):
        await PostgresStore("host=/nonexistent dbname=weft user=weft").open()


@pytest.mark.parametrize("migrated", [False])
@pytest.mark.parametrize("commit", [1, 2], ids=["of the schema", "of the writer's row"])
async def test_a_lost_answer_while_it_opens_is_told_and_tried_again(
    commit: int, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    losing = Losing(monkeypatch)
    store = PostgresStore(postgres)
    losing.next, losing.later = "committed", commit - 1
    with pytest.raises(DatabaseUnavailable):
        await store.open()
    await store.open()
    await store.ping()
    await store.close()
    assert losing.lost == 1


def test_sessions_begin_with_their_settings_and_those_of_the_address(postgres: str) -> None:
    address = with_settings(as_url(postgres, options="-c weft.time=caller"), default_transaction_read_only="on")
    with psycopg.connect(address) as session:
        wanted = {**SETTINGS, "default_transaction_read_only": "on", "weft.time": "caller", "application_name": "weft"}
        units = {"lock_timeout": "1s", "statement_timeout": "30s", "idle_in_transaction_session_timeout": "10s"}
        for name, value in wanted.items():
            found = session.execute("SELECT current_setting(%s)", (name,)).fetchone()
            assert found == (units.get(name, value),), name
