"""Two stores at once: whatever two changes meet, the outcome is that of one after the other.

SQLite lets one process write at a time, so most of this would be true of worse code. Therefore a change is also
interrupted as no SQLite allows it: another one is made between two of its statements, as long as it has written nothing
and so has taken no row.
"""

from __future__ import annotations

import asyncio
import inspect
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_asyncio

from executor.errors import WeftError
from executor.kernel.store.sqlite.connection import Stale, Tx
from executor.kernel.store.sqlite.store import SQLiteStore
from tests.conformance.store.changes import CHANGES, Change, furnish
from tests.conformance.store.races import RACES, race
from tests.support.changes import submitted
from tests.support.size import size

Outcome = tuple[str, str, dict[str, list[Any]]]  # what each of the two said, and what is in the database then

# They pass over a run that another process has just changed: the next claim finds it.
PASS_OVER = ("claim", "claim one")
OF_NO_CHANGE = ("writers", "sqlite_sequence", "sqlite_stat1")
STEP = 9  # the fast sample meets some changes with some others


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def furnished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("two") / "weft.db"
    store = SQLiteStore(path)
    await store.open()
    await furnish(store)
    await store.close()
    return path


def test_every_change_of_the_store_is_among_them() -> None:
    made = {name for change in CHANGES.values() for name in _written_by(change)}
    assert submitted() - {"ping"} <= made


@pytest.mark.soak
@pytest.mark.parametrize("first", CHANGES)
def test_a_change_that_is_interrupted_is_as_before_or_after_the_other(first: str, furnished: Path) -> None:
    """By each other one in `make soak`, else by a third of them, another third for each."""
    names = list(CHANGES)
    with _copy(furnished) as db:
        interrupted = _interrupt(db, first, names[names.index(first) % size(3, 1) :: size(3, 1)])
    assert interrupted or first == "ping"


def _interrupt(db: sqlite3.Connection, first: str, others: list[str]) -> int:
    interrupted = 0
    for second in others:
        serial = [_serial(db, first, second), _serial(db, second, first, swapped=True)]
        for at in range(100):
            outcome = _interrupted(db, first, second, at)
            if outcome is None:
                break
            interrupted += 1
            if first == second and outcome[0] == "Conflict":
                continue  # a run of the same id: they are random
            if first in PASS_OVER and outcome not in serial:
                outcome = _interrupted(db, first, second, at, again=True)
                assert outcome is not None and outcome[1:] == serial[1][1:], f"{second!r} within {first!r}, then again"
                continue
            assert outcome in serial, f"{second!r} before statement {at} of {first!r}: {_difference(outcome, serial)}"
    return interrupted


@pytest.mark.parametrize("first", list(CHANGES)[::STEP])
async def test_two_stores_at_once(first: str, furnished: Path, tmp_path: Path) -> None:
    await _meet(first, list(CHANGES)[:: STEP - 1], furnished, tmp_path)


@pytest.mark.proof
@pytest.mark.soak
@pytest.mark.parametrize("first", list(CHANGES)[:: size(3, 1)])
async def test_two_stores_at_once_with_all_others(first: str, furnished: Path, tmp_path: Path) -> None:
    """Each two once in `make soak`, else each third with each eighth: which is first is up to the threads."""
    names = list(CHANGES)
    await _meet(first, names[names.index(first) :: size(8, 1)], furnished, tmp_path)


async def _meet(first: str, others: list[str], furnished: Path, tmp_path: Path) -> None:
    for n, second in enumerate(others):
        path = tmp_path / f"{n}.db"
        path.write_bytes(furnished.read_bytes())
        one, two = SQLiteStore(path, readers=1), SQLiteStore(path, readers=1)
        await asyncio.gather(one.open(), two.open())
        said = await asyncio.gather(
            one._writer.submit(CHANGES[first]), two._writer.submit(CHANGES[second]), return_exceptions=True
        )
        await asyncio.gather(one.close(), two.close())
        with closing(sqlite3.connect(path)) as db:
            outcome = (_text(said[0]), _text(said[1]), _contents(db))
        with _copy(furnished) as copy:
            serial = [_serial(copy, first, second), _serial(copy, second, first, swapped=True)]
        assert outcome in serial, f"{first!r} and {second!r}: {_difference(outcome, serial)}"
        path.unlink()


@pytest.mark.parametrize("name", RACES)
async def test_two_processes_race(name: str, database: str, tmp_path: Path) -> None:
    assert await race(database, tmp_path / "line", name, 10) == []


@pytest.mark.proof
@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", RACES)
async def test_two_processes_race_many_times(name: str, database: str, tmp_path: Path) -> None:
    assert await race(database, tmp_path / "line", name, size(100, 1000)) == []


# --- one after the other, and one within the other


def _serial(db: sqlite3.Connection, first: str, second: str, swapped: bool = False) -> Outcome:
    with _taken_back(db):
        said = _made(db, CHANGES[first]), _made(db, CHANGES[second])
        return (*(said[::-1] if swapped else said), _contents(db))


def _interrupted(db: sqlite3.Connection, first: str, second: str, at: int, again: bool = False) -> Outcome | None:
    """`second` comes before statement `at` of `first`. None: `first` had written by then, or was over. `again`: then
    `first` is tried once more."""
    with _taken_back(db):
        between = _Between(db, at, CHANGES[second])
        said = _made(cast(sqlite3.Connection, between), CHANGES[first])
        if again:
            _made(db, CHANGES[first])
        return None if between.said is None else (said, between.said, _contents(db))


@contextmanager
def _taken_back(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.execute("ROLLBACK")


class _Between:
    """A connection on which another change is made before a certain statement."""

    def __init__(self, db: sqlite3.Connection, at: int, change: Change) -> None:
        self._db = db
        self._at = at
        self._change = change
        self._before = db.total_changes
        self.said: str | None = None

    def execute(self, *args: Any) -> sqlite3.Cursor:
        if args[0].startswith(("SAVEPOINT", "ROLLBACK")):
            return self._db.execute(*args)
        self._pass()
        return self._db.execute(*args)

    def executemany(self, *args: Any) -> sqlite3.Cursor:
        self._pass()
        return self._db.executemany(*args)

    @property
    def total_changes(self) -> int:
        return self._db.total_changes

    def _pass(self) -> None:
        if self._at == 0 and self._db.total_changes == self._before:
            self.said = _made(self._db, self._change)
        self._at -= 1


def _made(db: sqlite3.Connection, change: Change) -> str:
    """What it returned or raised."""
    tx = Tx(db)
    db.execute("SAVEPOINT change")
    try:
        said = change(tx)
        tx.write_appends()
    except WeftError as error:
        return _text(error)
    except Stale:  # of a lone append, which has written nothing
        return "Fenced"
    except sqlite3.IntegrityError:  # as the writer does
        db.execute("ROLLBACK TO change")
        return "Conflict"
    return _text(said)


def _text(said: Any) -> str:
    if isinstance(said, AssertionError):
        raise said
    return type(said).__name__ if isinstance(said, Exception) else repr(said)


def _copy(furnished: Path) -> closing[sqlite3.Connection]:
    db = sqlite3.connect(":memory:", isolation_level=None)
    with closing(sqlite3.connect(furnished)) as source:
        source.backup(db)
    return closing(db)


def _contents(db: sqlite3.Connection) -> dict[str, list[Any]]:
    names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    return {name: sorted(db.execute(f"SELECT * FROM {name}"), key=repr) for name in names if name not in OF_NO_CHANGE}


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


def _written_by(change: Change) -> Iterator[str]:
    """The name of the function that it calls."""
    for value in inspect.getclosurevars(change).nonlocals.values():
        if callable(value):
            yield value.__name__
    if "journal" in inspect.getclosurevars(change).globals:
        yield "append"
