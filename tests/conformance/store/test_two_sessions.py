"""Two sessions of PostgreSQL at once: whatever two changes meet, the outcome is that of one after the other.

A change is stopped before each of its statements, and another one is made by a second session, which ends or waits for
a row that the first one has. Then the first continues, and both commit. A deadlock is tried again, as the writer does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, cast

import pytest
import pytest_asyncio

pytest.importorskip("psycopg")

import psycopg
from msgspec.structs import replace

from executor.errors import DatabaseWriteFailed, WeftError
from executor.kernel.store.postgres.connection import Tx, prepare, with_settings
from executor.kernel.store.postgres.errors import as_weft_error
from executor.kernel.store.postgres.hot.appends import newest_messages
from executor.kernel.store.postgres.hot.group import HotGroup
from executor.kernel.store.postgres.store import PostgresStore
from executor.kernel.store.run_rows import Append
from executor.kernel.store.topics.claims import claim
from executor.kernel.store.topics.inbox import post_message
from executor.kernel.store.topics.journal import append
from executor.kernel.store.topics.knowledge import DocumentRow
from executor.kernel.store.topics.leases import begin_run, release
from executor.kernel.store.topics.runs import create_run
from executor.kernel.store.topics.snapshots import SNAPSHOT_SEQ_MIN, SnapshotRow
from executor.kernel.store.topics.webhooks import WebhookRow
from executor.kernel.store.writer import Item
from tests.conformance.store.changes import CHANGES, LAPSED, NOW, Change, furnish
from tests.support.postgres import database
from tests.support.rows import LEASE_MS, new_run, record
from tests.support.size import WHOLE, size

Outcome = tuple[str, str, dict[str, list[str]]]  # what each of the two said, and what is in the database then

PATIENCE_S = 60.0
# They pass over what another session has in hand: the next claim finds it.
OF_CLAIMS = ("claim", "claim one", "claim what is free", "claim what has lapsed")
# A commit gives its locks back one after the other: who waited for a row of it may find the key still locked.
PASS_OVER = (*OF_CLAIMS, "ask for a place", "ask in vain", "assign places")
# Says how many runs it found: one that is made between its statements is repaired and not counted.
COUNTS = "set the clock back"
STEP = 9  # the fast sample meets some changes with some others
# Numbers that the database gives out are not given back; a batch is known by its run, a turn by its place among others,
# a chunk by its document.
ROWS = {
    "agent_memory": """
SELECT workflow, scope, key, row_number() OVER (PARTITION BY workflow, scope, key ORDER BY n) AS place, turn, run_id,
       at_ms, messages
  FROM agent_memory""",
    "batches": "SELECT d.id, b.seq, b.head, b.payload FROM batches AS b JOIN run_details AS d ON d.n = b.n",
    "knowledge_chunks": """
SELECT d.name, d.version, c.position, c.signs, c.text, c.vector
  FROM knowledge_chunks AS c LEFT JOIN knowledge_documents AS d ON d.n = c.document""",
    "knowledge_words": """
SELECT w.collection, w.word, d.name, d.version, c.position, w.count
  FROM knowledge_words AS w LEFT JOIN knowledge_chunks AS c ON c.n = w.chunk
  LEFT JOIN knowledge_documents AS d ON d.n = c.document""",
    "places": "SELECT p.key, p.n, p.epoch, p.node, p.attempt, p.asker, p.at_most, p.state FROM places AS p",
    "snapshots": "SELECT d.id, s.seq, s.data FROM snapshots AS s JOIN run_details AS d ON d.n = s.n",
}
TABLES = """
SELECT relname FROM pg_class
 WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition"""
NUMBERED = ("run_details", "heads", "fires", "deliveries", "knowledge_collections", "knowledge_documents")
OF_NO_CHANGE = ("writers", "weft_schema")


def _as_item(tx: Any, write: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """By the statement with arrays; by itself when that asks for it, as the writer does."""
    hot = HotGroup([Item(cast(Any, None), write, args)])
    assert hot.taken == {0}
    hot.write(tx)
    outcome = hot.outcomes(lambda posted: newest_messages(tx.cursor, list(posted)))[0]
    if outcome is None:
        return write(tx, *args)
    if outcome.error is not None:
        raise outcome.error
    return outcome.result


_snapshot = SnapshotRow(SNAPSHOT_SEQ_MIN, 1, "code", "plan", 0, b"folded")
_of_key = partial(new_run, idempotency_key="key", now_ms=NOW, document_hash="doc", document=b"1")
_end = partial(Append, records=(record("run.finished", None),), now_ms=NOW, status="failed", error=b"e", finished=True)
ITEMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "append events": (append, (Append("open", 1, 2, (record(),), NOW),)),
    "end the one that is open": (append, (_end("open", 1, 2),)),
    "end it fenced": (append, (_end("open", 1, 3),)),
    "create one of the key": (create_run, (_of_key("a new one"),)),
    "create one of the workflow": (create_run, (new_run("another idle one", NOW, "idle", document_hash="doc"),)),
    "begin one of the key": (begin_run, (_of_key("b"), "w9", LEASE_MS, Append("b", 1, 1, (record(),), NOW))),
    "begin one that ends": (begin_run, (_of_key("c"), "w9", LEASE_MS, _end("c", 1, 1))),
    "post to the one that is open": (post_message, ("open", b"m", NOW, "lone")),
    "post to one that has ended": (post_message, ("done", b"m", NOW)),
    "release the one that is open": (release, ("open", 1, 2, NOW, "running", _snapshot)),
    "let it wait": (release, ("open", 1, 2, None, "waiting")),
    "let the parent wait": (release, ("parent", 1, 2, None, "waiting")),
    "claim what is free": (claim, ("w2", NOW, LEASE_MS, 10)),
    "claim what has lapsed": (claim, ("w2", LAPSED, LEASE_MS, 10)),
}
ALL: dict[str, Change] = {
    **CHANGES,
    **{name: partial(_as_item, write=write, args=args) for name, (write, args) in ITEMS.items()},
}
del ALL["ping"]  # it writes the row of the writer


class Pair:
    """The furnished database, its two sessions, and a third that looks."""

    def __init__(self, address: str) -> None:
        self.one, self.two, self.third = (_connect(address) for _ in range(3))
        tables = [name for (name,) in self.third.execute(TABLES)]
        self.tables = sorted(set(tables) - set(OF_NO_CHANGE))
        self.third.execute("CREATE SCHEMA saved")
        for table in self.tables:
            self.third.execute(f"CREATE TABLE saved.{table} AS SELECT * FROM {table}")
        self.pool = ThreadPoolExecutor(1)
        self._all = " UNION ALL ".join(self._rows_of(table) for table in self.tables).encode()
        self._furnished = self.contents(self.third)
        self._left: dict[str, list[str]] | None = None  # what the last meeting left behind, if that is known

    def restore(self) -> None:
        """Only the tables that differ: to write all of them took most of the time."""
        left = self._left
        wrong = [t for t in self.tables if left is None or left[t] != self._furnished[t]]
        if wrong:
            self.third.execute("; ".join(f"DELETE FROM {t}; INSERT INTO {t} SELECT * FROM saved.{t}" for t in wrong))
        self._left = self._furnished

    def contents(self, session: psycopg.Connection[Any]) -> dict[str, list[str]]:
        """The rows of each table as text, by one statement: it is asked for some hundred thousand times."""
        found: dict[str, list[str]] = {table: [] for table in self.tables}
        for table, row in session.execute(self._all):
            found[table].append(row)
        for rows in found.values():
            rows.sort()
        return found

    def _rows_of(self, table: str) -> str:
        rows = ROWS.get(table, f"SELECT * FROM {table}")
        cursor = self.third.execute(f"{rows} LIMIT 0")
        assert cursor.description is not None
        shown = [column.name for column in cursor.description if not (column.name == "n" and table in NUMBERED)]
        columns = ", ".join(shown)
        return f"SELECT '{table}', shown::text FROM (SELECT {columns} FROM ({rows}) AS every) AS shown"

    def close(self) -> None:
        self.pool.shutdown()
        for session in (self.one, self.two, self.third):
            session.close()

    def alone(self, change: Change) -> tuple[str, dict[str, list[str]]]:
        """What it says, and what is in the database then; taken back."""
        self.one.execute("BEGIN")
        try:
            return _within(self.one, change), self.contents(self.one)
        finally:
            self.one.execute("ROLLBACK")

    def serial(self, first: str, second: str, *, swapped: bool = False) -> Outcome:
        """One after the other, taken back."""
        self.one.execute("BEGIN")
        try:
            said = [_within(self.one, ALL[name]) for name in (first, second)]
            return (*(said[::-1] if swapped else said), self.contents(self.one))  # type: ignore[return-value]  # two of them
        finally:
            self.one.execute("ROLLBACK")

    def interrupted(self, first: str, second: str, at: int, *, again: bool = False) -> Outcome | None:
        """`second` comes before statement `at` of `first`. None: `first` was over. `again`: then the one that passes
        over others is tried once more."""
        self.restore()
        self._left = None
        began: list[Future[str]] = []

        def other() -> None:
            began.append(self.pool.submit(_made, self.two, ALL[second]))
            self._wait_until_over_or_blocked(began[0])

        said = _made(self.one, ALL[first], _Before(at, other))
        if not began:
            return None
        outcome = said, began[0].result(PATIENCE_S)
        if again:
            for name in (first, second):
                if name in PASS_OVER:
                    _made(self.one, ALL[name])
        self._left = self.contents(self.third)
        return (*outcome, self._left)

    def _wait_until_over_or_blocked(self, change: Future[str]) -> None:
        until = time.monotonic() + PATIENCE_S
        pid = self.two.info.backend_pid
        while not change.done():
            ((waits_for,),) = self.third.execute("SELECT pg_blocking_pids(%s::integer)", (pid,)).fetchall()
            if waits_for:
                return
            assert time.monotonic() < until, "neither over nor waiting for the other"
            time.sleep(0.0005)


class _Before:
    """Calls `then` before a certain statement."""

    def __init__(self, at: int, then: Callable[[], None]) -> None:
        self._at, self._then = at, then

    def cursor(self, of: psycopg.Cursor[Any]) -> Any:
        return _Stepping(of, self)

    def step(self) -> None:
        if self._at == 0:
            self._then()
        self._at -= 1


class _Stepping:
    def __init__(self, cursor: psycopg.Cursor[Any], before: _Before) -> None:
        self._cursor, self._before = cursor, before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def execute(self, *args: Any) -> Any:
        self._before.step()
        return self._cursor.execute(*args)

    def executemany(self, *args: Any) -> Any:
        self._before.step()
        return self._cursor.executemany(*args)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def furnished(postgres_server: str) -> Any:
    with database(postgres_server, "two-sessions") as address:
        store = PostgresStore(address)
        await store.open()
        await furnish(store)
        await store.close()
        pair = Pair(address)
        yield pair
        pair.close()


@pytest.mark.parametrize("name", ITEMS)
def test_a_statement_with_arrays_does_what_the_statements_for_one_do(name: str, furnished: Pair) -> None:
    write, args = ITEMS[name]
    furnished.restore()
    in_arrays, by_itself = (furnished.alone(change) for change in (ALL[name], lambda tx: write(tx, *args)))
    differ = {table: (rows, by_itself[1][table]) for table, rows in in_arrays[1].items() if rows != by_itself[1][table]}
    assert in_arrays[0] == by_itself[0] and not differ, differ


@pytest.mark.parametrize("first", list(ALL)[::STEP])
def test_two_sessions_at_once(first: str, furnished: Pair) -> None:
    _meet(furnished, first, list(ALL)[:: STEP - 1])


@pytest.mark.proof
@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("first", list(ALL)[:: size(3, 1)])
def test_two_sessions_at_once_with_all_others(first: str, furnished: Pair) -> None:
    """Each third of them with each twelfth, and all with all in `make soak`."""
    at = list(ALL).index(first)
    _meet(furnished, first, list(ALL)[at % 12 :: 12] if not WHOLE else list(ALL))


def _meet(pair: Pair, first: str, others: list[str]) -> None:
    wrong = [said for second in others for said in _differences(pair, first, second)]
    assert not wrong, "\n\n".join(wrong)


def _differences(pair: Pair, first: str, second: str) -> Iterator[str]:
    pair.restore()
    serial = [pair.serial(first, second), pair.serial(second, first, swapped=True)]
    for at in range(100):
        outcome = pair.interrupted(first, second, at)
        if outcome is None:
            return
        if outcome in serial or (first == second and "Conflict" in outcome[:2]):
            continue  # the second: a run of the same id, and they are random
        if COUNTS in (first, second) and outcome[2] in (serial[0][2], serial[1][2]):
            continue
        if {first, second}.intersection(PASS_OVER):
            outcome = pair.interrupted(first, second, at, again=True)
            if outcome is not None and outcome[2] in (serial[0][2], serial[1][2]):
                continue
        assert outcome is not None
        yield f"{second!r} before statement {at} of {first!r}: {_difference(outcome, serial)}"


def _connect(address: str) -> psycopg.Connection[Any]:
    session = psycopg.connect(with_settings(address), autocommit=True)
    prepare(session)
    session.execute("SET deadlock_timeout = '20ms'")
    return session


def _made(session: psycopg.Connection[Any], change: Change, before: _Before | None = None) -> str:
    """What it returned or raised, in a transaction of its own."""
    for _ in range(10):
        session.execute("BEGIN")
        cursor: Any = session.cursor()
        try:
            said = _text(change(Tx(before.cursor(cursor) if before else cursor)))
        except WeftError as error:
            said = type(error).__name__
        except psycopg.Error as error:
            session.execute("ROLLBACK")
            failure = as_weft_error(error)
            if isinstance(failure, DatabaseWriteFailed):
                continue
            if isinstance(failure, WeftError):
                return type(failure).__name__
            raise
        except BaseException:
            session.execute("ROLLBACK")
            raise
        session.execute("COMMIT")
        return said
    raise AssertionError("ten deadlocks in a row")


def _within(session: psycopg.Connection[Any], change: Change) -> str:
    """As `_made`, inside a transaction."""
    session.execute("SAVEPOINT change")
    try:
        return _text(change(Tx(session.cursor())))
    except WeftError as error:
        return type(error).__name__
    except psycopg.Error as error:
        session.execute("ROLLBACK TO change")
        return type(as_weft_error(error)).__name__


def _text(said: Any) -> str:
    """A webhook has its last delivery with it, which does not take its row: it may be one behind. A document has a
    number of the database."""
    if isinstance(said, tuple) and said and isinstance(said[0], DocumentRow):
        said = (replace(said[0], n=0), *said[1:])
    return repr(replace(said, last_run_at_ms=None, last_run_id=None) if isinstance(said, WebhookRow) else said)


def _difference(outcome: Outcome, serial: list[Outcome]) -> str:
    lines = []
    for name, other in zip(("as first", "as second"), serial, strict=True):
        said = [
            f"said {mine!r}, not {theirs!r}"
            for mine, theirs in zip(outcome[:2], other[:2], strict=True)
            if mine != theirs
        ]
        tables = [
            f"{table}: {rows} not {other[2][table]}" for table, rows in outcome[2].items() if rows != other[2][table]
        ]
        lines.append(f"{name}: {said + tables}")
    return "\n".join(lines)
