"""One SQLite database in memory, and SQLiteStore on it: the product's SQL, transactions and look at uncertain commits.

Only the threads are replaced. A process's writer takes what was submitted, commits as much of it as the seed says when
the seed says, and tells the waiters later; so does a reader with its rows. COMMIT may raise, with or without having
committed.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable
from functools import cache, partial
from random import Random
from typing import Any, NamedTuple, cast

from executor.errors import DatabaseUnavailable, StoreError
from executor.kernel.store.migrate import packaged_migrations, split
from executor.kernel.store.sqlite.connection import Database
from executor.kernel.store.sqlite.dialect import BATCH_IS_THERE, TEXTS
from executor.kernel.store.sqlite.readers import Readers
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.sqlite.writer import ADD_WRITER, FORGET_OLD_WRITERS, LAST_GROUP, Stats, Writer
from executor.kernel.store.statements import Row, Values
from executor.kernel.store.topics import leases
from executor.kernel.store.topics.snapshots import CheckpointRow
from executor.kernel.store.writer import Item, Outcome, Retry, Settled
from tests.simulation.world.faults import HEALTHY


class Connection(sqlite3.Connection):
    """Says what COMMITs, and breaks there."""

    disk: Disk

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        if sql == "COMMIT":
            return cast(sqlite3.Cursor, _Rows(self.disk.commit(partial(self._whole, sql, parameters))))
        if self.disk.blind and sql in (LAST_GROUP, BATCH_IS_THERE):
            self.disk.blind = False
            raise _error("the simulation: unreadable", sqlite3.SQLITE_IOERR)
        return super().execute(sql, parameters)

    def _whole(self, sql: str, parameters: Any) -> list[Row]:
        """To its end: one that returns rows is committed behind the last of them."""
        return super().execute(sql, parameters).fetchall()


class _Rows(NamedTuple):
    """What is read of a cursor."""

    rows: list[Row]

    def fetchall(self) -> list[Row]:
        return self.rows


class Trap(NamedTuple):
    """Shuts when the process is about to do this."""

    write: Callable[..., Any]
    shut: Callable[[], None]


class Disk:
    """The file that all processes share. `committed(process)` is called after each commit, `kept_awake(run, epoch)`
    when an owner wanted to let go of its run and was refused."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.faults = HEALTHY
        self.committed: Callable[[str], None] = lambda process: None
        self.kept_awake: Callable[[str, int], None] = lambda run, epoch: None
        self.sick: Callable[[str], None] = lambda process: None
        self.process = ""  # whose transaction is open
        self.let_go: set[str] = set()  # runs that it lets go of in this transaction, or tries to
        self.traps: dict[str, Trap] = {}  # by process
        self.blind = False
        self.db = sqlite3.connect(":memory:", isolation_level=None, cached_statements=512, factory=Connection)
        self.db.disk = self
        self.db.deserialize(_empty())

    def commit(self, execute: Callable[[], list[Row]]) -> list[Row]:
        if self.rng.random() >= self.faults.uncertain:
            done = execute()
            self.committed(self.process)
            return done
        self.sick(self.process)
        if self.rng.random() < 0.5:
            execute()
            self.committed(self.process)
        self.blind = self.rng.random() < 0.3
        raise _error("the simulation: COMMIT failed", sqlite3.SQLITE_IOERR)

    def point(self, name: str) -> None:
        """A fault point of the product: see Database."""
        if name.endswith("after_commit") or not (self.faults.busy or self.faults.refused):
            return
        chance = self.rng.random()
        if chance < self.faults.refused:
            self.sick(self.process)
            raise _error("the simulation: disk I/O error", sqlite3.SQLITE_IOERR)
        if chance < self.faults.refused + self.faults.busy:
            self.sick(self.process)
            raise _error("the simulation: database is locked", sqlite3.SQLITE_BUSY)

    def delay_s(self) -> float:
        """Mostly none at all; now and then up to `slow_s`."""
        return self.rng.random() * self.faults.slow_s if self.rng.random() < 0.3 else 0.0


class WorldStore(SQLiteStore):
    """Of one process. `kept` is called with the attempt that has a checkpoint written: run, node, path, number."""

    def __init__(self, disk: Disk, process: str, kept: Callable[[str, str, str, int], None]) -> None:
        self._kept = kept
        self.path = ":memory:"
        self.stats = Stats()
        self._writer = _Writer(disk, process, self.stats)
        self._readers = _Readers(disk, process)

    async def put_checkpoint(self, epoch: int, row: CheckpointRow) -> None:
        node, _, path = row.node.partition("@")
        self._kept(row.run_id, node, path, row.attempt)
        await super().put_checkpoint(epoch, row)


class _Database(Database):
    def __init__(self, disk: Disk) -> None:
        super().__init__(":memory:", 0, lambda path: disk.db, disk.point)
        self._disk = disk

    @property
    def db(self) -> sqlite3.Connection:
        return self._disk.db

    def drop(self) -> None:
        if self._disk.db.in_transaction:
            self._disk.db.execute("ROLLBACK")


class _Writer(Writer):
    """The thread is a callback that comes again as long as there is something to do."""

    def __init__(self, disk: Disk, process: str, stats: Stats) -> None:
        super().__init__(_Database(disk), Retry(attempts=6), stats, commit_here_below_s=1.0)
        self._disk = disk
        self._process = process
        self._id = process
        self._will_work = False
        self._untold: deque[list[tuple[asyncio.Future[Any], Outcome]]] = deque()

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        await asyncio.sleep(self._disk.delay_s())
        self._disk.process = self._process
        healthy, self._disk.faults = self._disk.faults, HEALTHY  # a process that cannot open would only try again
        with self._database.tx("register") as tx:
            tx.db.execute(ADD_WRITER, (self._id,))
            tx.db.execute(FORGET_OLD_WRITERS)
        self._disk.faults = healthy
        self._closed = False

    async def close(self) -> None:
        self._closed = True
        self._hand_over()
        while self._waiting or self._untold:
            await asyncio.sleep(0.01)

    def _put(self, items: list[Item]) -> None:
        self._waiting += items
        self._go_on()

    def _wake(self) -> None:
        self._database.drop()  # a transaction that is in doubt is open on the connection that all processes share
        self._go_on()

    def _may_commit_here(self, item: Item) -> bool:
        self._disk.process = self._process
        self._disk.let_go = set()
        trap = self._disk.traps.get(self._process)
        return not (trap is not None and item.write is trap.write) and self._disk.rng.random() < 0.5

    def _go_on(self) -> None:
        if (self._waiting or self._doubt is not None) and not self._will_work:
            self._will_work = True
            self._loop.call_later(self._disk.delay_s(), self._work)

    def _work(self) -> None:
        trap = self._disk.traps.get(self._process)
        if trap is not None and any(item.write is trap.write for item in self._waiting):
            del self._disk.traps[self._process]
            trap.shut()
            self._loop.call_soon(self._work)
            return
        self._disk.process = self._process
        self._clear_up()
        many = self._disk.rng.randint(min(1, len(self._waiting)), len(self._waiting))
        group, self._waiting = self._waiting[:many], self._waiting[many:]
        self._disk.let_go = {item.args[0] for item in group if item.write is leases.release}
        settled: list[Settled] = []
        left = group
        while left:
            found, left = self._try(left, self._commit)
            settled += found
            if left:
                self._back_off(left[0].tries)
        for item, outcome in settled:
            if item.write is leases.release and outcome.result is False:
                self._disk.kept_awake(*item.args[:2])
        self._deliver([(item.future, outcome) for item, outcome in settled])
        self._will_work = False
        self._go_on()

    def _deliver(self, settled: list[tuple[asyncio.Future[Any], Outcome]]) -> None:
        self._untold.append(settled)
        self._loop.call_later(self._disk.delay_s(), self._tell)

    def _tell(self) -> None:
        self._resolve(self._untold.popleft())

    def _back_off(self, retry: int) -> None:
        self._stats.retries += 1


class _Readers(Readers):
    def __init__(self, disk: Disk, process: str) -> None:
        self._disk = disk
        self._process = process
        self._open = False

    async def open(self) -> None:
        self._open = True

    async def close(self) -> None:
        self._open = False

    async def all(self, sql: str, values: Values = ()) -> list[Row]:
        if not self._open:
            raise StoreError("the store is closed", code="store_closed")
        await asyncio.sleep(self._disk.delay_s())
        if self._disk.rng.random() < self._disk.faults.unread:
            self._disk.sick(self._process)
            raise DatabaseUnavailable("the simulation: the database cannot be read")
        rows: list[Row] = self._disk.db.execute(TEXTS[sql], values).fetchall()
        if self._disk.rng.random() < 0.3:
            await asyncio.sleep(self._disk.delay_s())
        return rows

    async def version(self) -> int:
        """Return how many rows were changed: the one connection of the world does not count its own commits."""
        await self.all("SELECT 1")
        return self._disk.db.total_changes


@cache
def _empty() -> bytes:
    """A database with the newest schema."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    for migration in packaged_migrations():
        for statement in split(migration.sql):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {migration.number:d}")
    data = db.serialize()
    db.close()
    return data


def _error(message: str, code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(message)
    error.sqlite_errorcode = code
    return error
