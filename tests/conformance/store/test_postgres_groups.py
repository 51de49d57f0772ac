"""What groups and reads cost on PostgreSQL, counted: ways to the server, transactions, versions of rows, sessions."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import product
from typing import Any, cast

import pytest
import pytest_asyncio

pytest.importorskip("psycopg")

import psycopg

from executor.errors import Fenced, Unheard
from executor.kernel.store.postgres.batch import Batched, array_of
from executor.kernel.store.postgres.connection import Session, Tx, prepare
from executor.kernel.store.postgres.hot.group import HotGroup
from executor.kernel.store.postgres.store import PostgresStore
from executor.kernel.store.run_rows import Append, Appended, RunRow
from executor.kernel.store.topics.claims import claim
from executor.kernel.store.topics.snapshots import SNAPSHOT_SEQ_MIN, SnapshotRow
from executor.kernel.store.writer import Item
from tests.conformance.store.test_postgres_trouble import Losing
from tests.support.rows import LEASE_MS, T0, change, new_run, owned_run, placed, record, row, wait

RUNS = 8
STEPS = 150
LARGE = 900_000  # bytes; a batch has at most 1 MiB
SESSIONS = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY pid"
)
HEADS = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'heads'"


@pytest_asyncio.fixture
async def opened(postgres: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgres)
    await store.open()
    yield store
    await store.close()


class Counted:
    """`said`: the first word of each statement of the writer. `answers`: how often it waited for what was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.said: list[str] = []
        self.answers = 0
        ask, read = Batched.ask, Batched._receive
        counted = self

        def asking(batched: Batched, text: str, values: Any = ()) -> Any:
            counted.said.append(text.split()[0])
            return ask(batched, text, values)

        def reading(batched: Batched) -> Any:
            counted.answers += 1
            return read(batched)

        monkeypatch.setattr(Batched, "ask", asking)
        monkeypatch.setattr(Batched, "_receive", reading)


@pytest.mark.parametrize("count", [1, RUNS])
async def test_a_group_of_appends_is_one_way_to_the_server_and_one_transaction(
    count: int, opened: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [await owned_run(opened, f"run-{n}") for n in range(count)]
    counted, before = Counted(monkeypatch), opened.stats.commits
    await asyncio.gather(*(opened.append(change(run, record(), record())) for run in runs))
    assert counted.said == ["WITH", "WITH"]  # the mark, and all the appends
    assert (counted.answers, opened.stats.commits - before) == (1, 1)


async def test_a_group_larger_than_what_the_network_takes_at_once(opened: PostgresStore) -> None:
    """Much of it is answered while the rest is being sent."""
    runs = [await owned_run(opened, f"run-{n}") for n in range(RUNS)]
    before, output = opened.stats.commits, b'"' + b"x" * LARGE + b'"'
    await asyncio.gather(*(opened.append(change(run, record(output=output), record())) for run in runs))
    assert opened.stats.commits == before + 1
    for run in runs:
        assert [event.output for event in await opened.read_events(run.id, 1)] == [output, None]


async def test_lists_in_the_binary_form(postgres: str) -> None:
    lists: dict[str, list[Any]] = {
        "text": ["a", None, "", 'quote " \\ { , }', "ä€\U0001f600"],
        "bigint": [0, None, -(2**63), 2**63 - 1],
        "bytea": [b"\0\xff", None, b""],
    }
    with psycopg.connect(postgres, autocommit=True) as other:
        prepare(other)
        for type, values in lists.items():
            for each in (values, []):
                found = other.execute(f"SELECT %s::{type}[]".encode(), (array_of(type, each),)).fetchall()
                assert found == [(each,)]


KINDS = ["create", "begin", "begin and end", "end", "release", "release with a snapshot", "post"]
ENDED: dict[str, Any] = {"status": "succeeded", "finished": True, "output": b"1"}
SNAPSHOT = SnapshotRow(SNAPSHOT_SEQ_MIN, 1, "code", "plan", 0, b"folded")


async def changes_of(store: PostgresStore, kind: str, count: int, start: int = 0) -> list[Callable[[], Awaitable[Any]]]:
    """What makes the changes, one of each run."""
    begins = kind.startswith(("create", "begin"))
    runs = [None if begins else await owned_run(store, f"{kind} {n}") for n in range(start, start + count)]

    def change_of(n: int, run: RunRow | None) -> Callable[[], Awaitable[Any]]:
        if run is None:
            new = new_run(f"{kind} {n}", idempotency_key=f"{kind} key {n}")
            if kind == "create":
                return lambda: store.create_run(new)
            ended = ENDED if kind == "begin and end" else {}
            first = Append(new.id, 1, 1, (record(),), T0, **ended)
            return lambda: store.begin_run(new, "w1", LEASE_MS, first)
        if kind == "end":
            return lambda: store.append(change(run, record("run.finished", None), **ENDED))
        if kind == "post":
            return lambda: store.post_message(run.id, b"m", T0)
        snapshot = SNAPSHOT if "snapshot" in kind else None
        return lambda: store.release(run.id, run.epoch, run.seq, None, "waiting", snapshot)

    return [change_of(n, run) for n, run in enumerate(runs, start)]


async def _state(store: PostgresStore) -> list[Any]:
    """Of all runs."""
    runs = await store.list_runs(limit=1000)
    return [(run, await store.read_events(run.id), await store.read_inbox(run.id)) for run in runs]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, RUNS])
async def test_a_group_of_one_kind_is_one_way_to_the_server(
    count: int, kind: str, opened: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = await changes_of(opened, kind, count)
    counted, before = Counted(monkeypatch), opened.stats.commits
    await asyncio.gather(*(each() for each in changes))
    locked = [] if kind.startswith(("create", "begin")) else ["SELECT"]
    assert counted.said == ["WITH", *locked, "WITH"]
    assert (counted.answers, opened.stats.commits - before) == (1, 1)


async def test_a_group_of_all_kinds_is_one_way_to_the_server(
    opened: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [await owned_run(opened, f"run-{n}") for n in range(RUNS)]
    changes = [change for kind in reversed(KINDS) for change in await changes_of(opened, kind, RUNS)]
    counted, before = Counted(monkeypatch), opened.stats.commits
    await asyncio.gather(*(opened.append(change(run, record())) for run in runs), *(each() for each in changes))
    assert counted.said == ["WITH", "SELECT", *["WITH"] * 5]
    assert (counted.answers, opened.stats.commits - before) == (1, 1)


async def test_a_claim_is_one_way_to_the_server(opened: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(RUNS):
        await opened.create_run(placed(f"run-{n}", fair=str(n % 3)))
    run = (await opened.claim("w1", T0, LEASE_MS, 1))[0]
    counted, before = Counted(monkeypatch), opened.stats.commits
    claimed, _ = await asyncio.gather(opened.claim("w1", T0, LEASE_MS, RUNS), opened.append(change(run, record())))
    assert counted.said == ["WITH", "WITH", "UPDATE", "WITH"]
    assert (len(claimed), counted.answers, opened.stats.commits - before) == (RUNS - 1, 1, 1)
    await opened.create_run(placed("limited", limits=(("key", 1),)))
    before = opened.stats.commits
    assert [row.id for row in await opened.claim("w1", T0, LEASE_MS, RUNS)] == ["limited"]
    assert opened.stats.commits - before == 2  # the first group left it to the second


async def test_runs_of_a_claim_whose_answer_was_lost_are_given_back(
    opened: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await opened.create_run(new_run("run-1"))
    losing = Losing(monkeypatch)
    losing.next = "committed"
    assert await opened.claim("w1", T0, LEASE_MS, 1) == []
    assert (await row(opened, "run-1")).lease_owner == "w1"
    assert await opened.renew("w1", [], T0, LEASE_MS) == set()
    assert [row.id for row in await opened.claim("w2", T0, LEASE_MS, 1)] == ["run-1"]


@pytest.mark.parametrize(
    ("runs", "keys"),
    [
        (60, ["", "a", "a ", "b", "ä", "z", "zz"]),
        (90, [f"k{n:02}" for n in range(40)]),
        (40, [f"{n}" for n in range(99)]),
    ],
    ids=["few keys", "many keys", "a key a run"],
)
async def test_a_claim_in_one_statement_finds_what_the_function_finds(
    opened: PostgresStore, postgres: str, runs: int, keys: list[str]
) -> None:
    """Also where another claim has some of the runs, and some are for a newer version."""
    chance = random.Random(7)
    for n in range(runs):
        pool, fair = chance.choice(["default", "default", "other"]), chance.choice(keys)
        await opened.create_run(
            placed(f"run-{n}", T0 + chance.randrange(5), pool=pool, fair=fair, priority=chance.randrange(-1, 2))
        )
    with psycopg.connect(postgres, autocommit=True) as other, psycopg.connect(postgres) as third:
        prepare(other)
        other.execute("UPDATE heads SET needs = 1000 WHERE n % 11 = 3")
        third.execute("SELECT 1 FROM heads WHERE n % 7 = 2 FOR UPDATE")
        seen = 0
        for now_ms, limit, after in product(
            (T0 - 1, T0 + 2, T0 + 9), (1, 2, 5, 9, 20, 100), ("", keys[1], keys[3], keys[-1], "expense")
        ):
            said = []
            for hot in (True, False):
                args = ("w1", now_ms, LEASE_MS, limit, None, {"default": after})
                other.execute("BEGIN")
                tx: Any = Tx(other.cursor())
                group = HotGroup([Item(cast(Any, None), claim, args, alone=not hot)])
                group.write(tx)
                outcomes = [each.result for each in group.outcomes(lambda posted: {}).values() if each is not None]
                said.append(outcomes[0] if hot else claim(tx, *args))
                said.append(other.execute("SELECT * FROM heads ORDER BY id").fetchall())
                said.append(other.execute("SELECT * FROM workers").fetchall())
                other.execute("ROLLBACK")
            assert said[:3] == said[3:], (now_ms, limit, after)
            seen += len(said[0])
        assert seen > 300
        third.rollback()


@pytest.mark.parametrize("how", ["committed", "not committed"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_lost_answer_tells_what_a_group_of_one_kind_did(
    kind: str, how: str, opened: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await asyncio.gather(*(each() for each in await changes_of(opened, kind, 1)))
    changes = await changes_of(opened, kind, RUNS, 1)
    losing = Losing(monkeypatch)
    losing.next = how
    said = await asyncio.gather(*(each() for each in changes))
    assert losing.lost == 1
    assert [_shape(each) for each in said] == [_shape(first[0])] * len(changes)
    found = await _state(opened)
    assert len({_shape(each) for each in found}) == 1, found


def _shape(said: Any) -> str:
    """Without what differs from run to run."""
    return re.sub(r"(end|begin|create|post|release|snapshot|key) [0-9]+", "", repr(said))


async def test_a_key_that_comes_again_in_a_group_is_the_first_run(opened: PostgresStore) -> None:
    new = [new_run(f"run-{n}", idempotency_key=f"key {n % 2}") for n in range(RUNS)]
    said = await asyncio.gather(*(opened.create_run(each) for each in new))
    assert [(row.id, created) for row, created in said] == [(f"run-{n % 2}", n < 2) for n in range(RUNS)]
    again = await opened.create_run(new_run("late", idempotency_key="key 1"))
    assert (again[0].id, again[1]) == ("run-1", False)
    assert len(await opened.list_runs()) == 2


async def test_who_cannot_end_harms_no_other(opened: PostgresStore) -> None:
    runs = [await owned_run(opened, f"run-{n}") for n in range(RUNS)]
    await opened.cancel_run(runs[0].id, b"cancel", T0)
    end = record("run.finished", None)
    said = await asyncio.gather(
        *(opened.append(change(run, end, expected_seq=run.seq + (n == 1), **ENDED)) for n, run in enumerate(runs)),
        return_exceptions=True,
    )
    assert [type(each) for each in said] == [Unheard, Fenced, *[Appended] * (RUNS - 2)]
    assert [(await row(opened, run.id)).status for run in runs] == ["running"] * 2 + ["succeeded"] * (RUNS - 2)


async def test_who_has_a_message_does_not_go_to_sleep(opened: PostgresStore) -> None:
    """Also if that came in the same group."""
    runs = [await owned_run(opened, f"run-{n}") for n in range(RUNS)]
    await asyncio.gather(*(opened.post_message(run.id, b"m", T0) for run in runs[::2]))
    said = await asyncio.gather(*(opened.release(run.id, run.epoch, run.seq, None, "waiting") for run in runs))
    assert said == [bool(n % 2) for n in range(RUNS)]
    posted = await asyncio.gather(
        *(opened.release(run.id, run.epoch, run.seq, None, "waiting") for run in runs[::2]),
        *(opened.post_message(run.id, b"m", T0) for run in runs),
        *(opened.post_message(run.id, b"later", T0) for run in runs),
    )
    assert posted == [False] * (RUNS // 2) + [True] * 2 * RUNS
    inboxes = [[each.message for each in await opened.read_inbox(run.id)] for run in runs]
    assert inboxes == [[b"m", b"m", b"later"], [b"m", b"later"]] * (RUNS // 2)


async def test_changes_of_a_run_that_are_submitted_together_come_in_their_order(opened: PostgresStore) -> None:
    """As `durability: ahead` may do. The end waits for the append that is more than events, and for that behind it."""
    run = await owned_run(opened)
    said = await asyncio.gather(
        opened.append(change(run, record())),
        opened.append(change(run, record(), waits=(wait(run.id),), expected_seq=run.seq + 1)),
        opened.append(change(run, record(), expected_seq=run.seq + 2)),
        opened.append(change(run, record("run.finished", None), expected_seq=run.seq + 3, **ENDED)),
    )
    assert [each.seq for each in said] == [2, 3, 4, 5]
    found = await row(opened, run.id)
    assert (found.status, found.seq, found.output) == ("succeeded", 5, b"1")


@pytest.mark.parametrize("how", ["committed", "not committed"])
async def test_a_lost_answer_tells_who_of_a_group_is_fenced(
    how: str, opened: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [await owned_run(opened, f"run-{n}") for n in range(RUNS)]
    losing = Losing(monkeypatch)
    losing.next = how
    said = await asyncio.gather(
        *(opened.append(change(run, record(), expected_seq=run.seq - n % 2)) for n, run in enumerate(runs)),
        return_exceptions=True,
    )
    assert losing.lost == 1
    assert [isinstance(each, Fenced) for each in said] == [bool(n % 2) for n in range(RUNS)]
    assert [len(await opened.read_events(run.id)) for run in runs] == [2, 1] * (RUNS // 2)


async def test_an_append_puts_the_new_version_of_its_head_beside_the_old_one(postgres: str) -> None:
    """Then no index is written for it, and nothing is left for VACUUM."""
    store = PostgresStore(postgres)
    await store.open()
    runs = [await owned_run(store, f"run-{n}") for n in range(RUNS)]
    for n in range(STEPS):
        await asyncio.gather(*(store.append(change(run, record(), expected_seq=run.seq + n)) for run in runs))
    await store.close()  # a session says what it did at the latest when it ends
    with psycopg.connect(postgres, autocommit=True) as other:
        updates = hot = 0
        while updates < RUNS * STEPS:
            await asyncio.sleep(0.01)
            other.execute("SELECT pg_stat_clear_snapshot()")
            ((updates, hot),) = other.execute(HEADS).fetchall()
    assert hot >= 0.99 * updates


async def test_a_caller_of_a_read_that_is_cancelled_leaves_its_session_to_others(
    opened: PostgresStore, postgres: str
) -> None:
    readers = opened._readers
    async with asyncio.timeout(60):
        await asyncio.gather(
            *(readers.all("SELECT pg_sleep(0.05)") for _ in range(12))
        )  # the pool has all its sessions
        with psycopg.connect(postgres, autocommit=True) as other:
            before = other.execute(SESSIONS).fetchall()
            for _ in range(3):
                callers = [asyncio.create_task(readers.all("SELECT pg_sleep(0.1)")) for _ in range(12)]
                for _ in range(2):  # the second time while the first is being handled
                    await asyncio.sleep(0.02)
                    for caller in callers:
                        caller.cancel()
                await asyncio.gather(*callers, return_exceptions=True)
                assert await readers.all("SELECT 1") == [(1,)]
            assert other.execute(SESSIONS).fetchall() == before


def test_a_group_that_failed_leaves_no_statement_that_only_psycopg_knows(postgres: str) -> None:
    """psycopg counts a statement as prepared when it is sent the sixth time, also if the pipeline has failed before."""
    session = Session(postgres, lambda point: None)

    def add(*numbers: int) -> list[Any]:
        with session.group("test") as tx:
            return [tx.ask("SELECT %(n)s::bigint + 2", {"n": each}).fetchone() for each in numbers]

    def fail(*numbers: int) -> None:
        with pytest.raises(psycopg.errors.DivisionByZero), session.group("test") as tx:
            tx.send("SELECT 1 / %(n)s::bigint", {"n": 0})
            for each in numbers:
                tx.send("SELECT %(n)s::bigint + 2", {"n": each})

    try:
        fail()
        assert add(*range(5)) == [(2,), (3,), (4,), (5,), (6,)]
        fail(5)
        assert add(6) == [(8,)]
    finally:
        session.drop()
